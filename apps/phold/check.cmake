# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P check.cmake
# headway-phold refuses what cannot be, in one line.
include(${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake)

expect_status("" "--processes 0" 2 "--processes: '0' is not allowed; allowed is a whole number from 1 to ")
expect_status("" "--processes-per-pe many" 2 "--processes-per-pe: 'many' is not allowed")
expect_status("" "--events 0" 2 "--events: '0' is not allowed; allowed is a whole number from 1 to 100000")
expect_status("" "--words -1" 2 "--words: '-1' is not allowed; allowed is a whole number from 0 to 100000")
expect_status("" "--lookahead 0" 2 "--lookahead: '0' is not allowed; allowed is a number from 0.001 to ")
expect_status("" "--mean -1" 2 "--mean: '-1' is not allowed; allowed is a number from 0 to ")
expect_status("" "--end-time never" 2 "--end-time: 'never' is not allowed")
expect_status("" "--balance gredy" 2 "--balance: 'gredy' is not allowed; .*did you mean 'greedy'")
expect_status("" "--balance-every 0" 2 "--balance-every: '0' is not allowed")
expect_status("HEADWAY_PES=1" "--processes 3 --events 2 --end-time 0" 0 " 0 messages .* verified")
