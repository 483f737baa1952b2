# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P check.cmake
# headway-amr refuses wrong options in one line, and says WRONG for a wrong result.
include(${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake)

expect_status("" "--level 12" 2 "--level: '12' is not allowed; allowed is a whole number from 0 to 11")
expect_status("" "--levels 15" 2 "--levels: '15' is not allowed; allowed is a whole number from 0 to 14")
expect_status("" "--level 6 --levels 9" 2
  "--levels: '9' is not allowed; allowed with --level 6 is a whole number from 0 to 8")
expect_status("" "--steps 0" 2 "--steps: '0' is not allowed")
expect_status("" "--refine-every 0" 2 "--refine-every: '0' is not allowed")
expect_status("" "--setps 3" 2 "--setps")

set(small "--level 4 --levels 2 --steps 20")
expect_status("HEADWAY_PES=1" "${small}" 0 "amr 1d: 1 PE, [0-9]+ cells, 20 steps, 4 changes .* verified")
expect_status("HEADWAY_PES=2" "${small}" 0 "verified.*finite_difference.*push_boundary.*load_balance")
expect_status("HEADWAY_PES=2" "${small} --no-serial --json -" 0 "\"beside_one_pe\": *false")

# The volume tells on its own that cells were raised, and so does one PE alone.
expect_status("HEADWAY_PES=2" "${small} --spoil" 1 "WRONG")
expect_status("HEADWAY_PES=2" "${small} --spoil --json -" 1 "\"errors\": *3")
expect_status("HEADWAY_PES=2" "${small} --spoil --no-serial --json -" 1 "\"errors\": *2")
