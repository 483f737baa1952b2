# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P check.cmake
# headway-sample refuses what cannot be, sends a message for each key that moves, and finds what is wrong.
include(${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake)

expect_status("" "--keys 0" 2 "--keys: '0' is not allowed; allowed is a whole number from 1 to 2147483648")
expect_status("" "--oversampling 0" 2 "--oversampling: '0' is not allowed")
expect_status("" "--way merge" 2 "--way: 'merge' is not allowed; .*std, radix")
expect_status("" "--spoil 1 --spoil-what index" 2 "--spoil-what: 'index' is not allowed")

# About keys (P - 1) / P: 30,000 of 40,000 on 4 PEs. With equal keys one PE gets all.
foreach(mode IN ITEMS direct 1d)
  expect_status("HEADWAY_PES=4" "--keys 40000 --mode ${mode} --json -" 0
    "\"messages\": (29[5-9]|30[0-4])[0-9][0-9],.*\"balance\": 1[.][012].*\"errors\": 0,")
endforeach()
expect_status("HEADWAY_PES=4" "--keys 40000 --distinct 1 --json -" 0 "\"messages\": 30000,.*\"balance\": 4.0,")
expect_status("HEADWAY_PES=1" "--keys 1000 --json -" 0 "\"messages\": 0,.*\"balance\": 1.0,")

foreach(way IN ITEMS std radix)
  expect_status("HEADWAY_PES=3" "--keys 5000 --way ${way} --spoil 1" 1
    "headway-sample: wrong: 3 keys are less than the key before")
  expect_status("HEADWAY_PES=3" "--keys 5000 --way ${way} --spoil 1 --spoil-what key" 1
    "headway-sample: wrong: the sorted keys are not those of the input")
endforeach()
