# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P check.cmake
# headway-ebarnes refuses what cannot be, in one line, and says WRONG for each kind of wrong result.
include(${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake)

expect_status("" "--bodies 0" 2 "--bodies: '0' is not allowed; allowed is a whole number from 1 to 16777216")
expect_status("" "--theta 2" 2 "--theta: '2' is not allowed; allowed is a number from 0.01 to 1.1")
expect_status("" "--softening 0" 2 "--softening: '0' is not allowed; allowed is a number from 0.0001 to 1")
expect_status("" "--bucket 17" 2 "--bucket: '17' is not allowed; allowed is a whole number from 1 to 16")
expect_status("" "--way walk" 2 "--way: 'walk' is not allowed; .*did you mean 'walks'")
expect_status("" "--way walks --cache 100" 2
  "--cache: '100' is not allowed; allowed with --walks 256 is a whole number from 512 on")

# As many bodies as PEs, fewer, one; leaves of one body; the smallest caches.
set(small "--bodies 300 --steps 3")
expect_status("HEADWAY_PES=1" "--bodies 1" 0 " verified")
expect_status("HEADWAY_PES=3" "--bodies 2 --steps 5 --drift 1" 0 " verified")
expect_status("HEADWAY_PES=3" "--bodies 3 --bucket 1 --drift 1" 0 " verified")
expect_status("HEADWAY_PES=2" "${small} --bucket 1 --cache 2" 0 " verified")
expect_status("HEADWAY_PES=2" "${small} --bucket 16 --way walks --walks 3 --cache 6 --messages-only" 0 " verified")
expect_status("HEADWAY_PES=2" "${small} --theta 0.3" 0 " verified")

expect_status("HEADWAY_PES=2" "${small} --spoil force" 1 "WRONG.*forces of 100 bodies are wrong by")
expect_status("HEADWAY_PES=2" "${small} --spoil lost" 1 "WRONG.*299 bodies, the hash of their ids")
expect_status("HEADWAY_PES=2" "${small} --spoil id" 1 "WRONG.*300 bodies, the hash of their ids")
expect_status("HEADWAY_PES=2" "${small} --spoil energy --no-serial" 1 "WRONG.*the energy has changed by")
expect_status("HEADWAY_PES=2" "${small} --spoil bit" 1 "WRONG.*the checksum of all bodies is")
