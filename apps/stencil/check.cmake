# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P check.cmake
# headway-stencil refuses what cannot be, in one line, and goes both ways.
include(${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake)

expect_status("" "--way elemnts" 2 "--way: 'elemnts' is not allowed; .*did you mean 'elements'")
expect_status("" "--blocks 4" 2 "--blocks: '4' is not allowed; allowed are two numbers, such as 4,3")
expect_status("" "--blocks 4,0" 2 "--blocks: '0' is not allowed")
expect_status("" "--blocks-per-pe 0" 2 "--blocks-per-pe: '0' is not allowed")
expect_status("" "--side 5000" 2 "--side: '5000' is not allowed; allowed is a whole number from 1 to 4096")
foreach(option "--blocks-per-pe 2" "--blocks 2,2" "--whole-edges" "--balance rotate")
  string(REGEX MATCH "^[^ ]+" name "${option}")
  expect_status("" "--way pes ${option}" 2 "${name} is not allowed with --way pes; allowed is --way elements")
endforeach()
expect_status("HEADWAY_PES=1" "--blocks 1,1 --side 3 --steps 7" 0 " 0 messages .* verified")
expect_status("HEADWAY_PES=2" "--way pes --side 8 --steps 3" 0 " 48 messages .* verified")
expect_status("HEADWAY_PES=2" "--blocks-per-pe 1 --side 8 --steps 3" 0 " 48 messages .* verified")
expect_status("HEADWAY_PES=2" "--blocks-per-pe 1 --side 8 --steps 3 --whole-edges" 0
  " 6 messages of 64 bytes.* verified")
