# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P check.cmake
# headway-sssp refuses what cannot be, in one line, and finds the same however wide its buckets are.
include(${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake)

expect_status("" "--scale 0" 2 "--scale: '0' is not allowed; allowed is a whole number from 1 to 30")
expect_status("" "--delta 0" 2 "--delta: '0' is not allowed; allowed is a number from 0.0001 to 1000")
expect_status("" "--delta wide" 2 "--delta: 'wide' is not allowed")
expect_status("" "--bucketed 2" 2 "--bucketed: '2' is not allowed; allowed is a number from 0 to 1")
expect_status("" "--zeros -1" 2 "--zeros: '-1' is not allowed")
expect_status("" "--spoil-what distanc" 2 "--spoil-what: 'distanc' is not allowed; .*did you mean 'distance'")
expect_status("HEADWAY_PES=1" "--scale 4 --parts 3" 121 "--parts: '3' is not allowed; allowed is a power of two")

# All at once, all by buckets, and each distance in a bucket of its own or all in one.
foreach(arguments "--bucketed 0" "--bucketed 1" "--bucketed 1 --delta 0.0001" "--bucketed 1 --delta 1000")
  expect_status("HEADWAY_PES=2" "--scale 7 --roots 2 ${arguments}" 0 " verified")
endforeach()
