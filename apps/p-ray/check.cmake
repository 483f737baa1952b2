# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P check.cmake
# headway-p-ray refuses what cannot be, in one line, finds each error that it makes itself, and writes the image that it
# rendered.
include(${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake)

expect_status("" "--scale 0" 2 "--scale: '0' is not allowed; allowed is a number from 1e-09 to 16")
expect_status("" "--scale 17" 2 "--scale: '17' is not allowed; allowed is a number from 1e-09 to 16")
expect_status("" "--objects 1" 2 "--objects: '1' is not allowed; allowed is a whole number from 2 to ")
expect_status("" "--scene balls2 --objects 5" 2 "--objects: '5' is not allowed; allowed is none with --scene balls2")
expect_status("" "--scene balls5" 2 "--scene: 'balls5' is not allowed; .*balls4")
expect_status("" "--way ray" 2 "--way: 'ray' is not allowed; .*did you mean 'rays'")
expect_status("" "--cache 0" 2 "--cache: '0' is not allowed")
expect_status("HEADWAY_PES=1" "--scale 0.001 --image /none/such.png" 121 "--image: '/none/such.png' cannot be opened")

set(small "--scale 0.003 --checked 3000")
foreach(pes 1 3)
  expect_status("HEADWAY_PES=${pes}" "${small}" 0 " verified")
  expect_status("HEADWAY_PES=${pes}" "${small} --spoil pixel" 1 "WRONG.*of [0-9]+ checked pixels differ")
  expect_status("HEADWAY_PES=${pes}" "${small} --spoil object" 1 "WRONG.*of [0-9]+ checked pixels differ")
  expect_status("HEADWAY_PES=${pes}" "${small} --spoil image" 1 "WRONG.*gathered image is not the one")
endforeach()

# The pixels of the file have the checksum of those that were rendered. Two of the images take several stored blocks.
find_program(python python3)
if(NOT python)
  message("no python3 here, so images are not read back")
  return()
endif()
foreach(size "1;1" "50;33" "200;170" "300;211")
  list(GET size 0 width)
  list(GET size 1 height)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/p-ray-${width}.png)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env HEADWAY_PES=3 ${program} --objects 50 --width ${width}
                          --height ${height} --image ${file} --json -
                  RESULT_VARIABLE status OUTPUT_VARIABLE record TIMEOUT 60)
  string(JSON checksum GET "${record}" image_checksum)
  execute_process(COMMAND ${python} ${CMAKE_CURRENT_LIST_DIR}/read_png.py ${file} OUTPUT_VARIABLE read
                  ERROR_VARIABLE errors TIMEOUT 60)
  if(NOT status EQUAL 0 OR NOT read STREQUAL "${width} x ${height}, ${checksum}\n")
    message(SEND_ERROR "status ${status}, ${file}: '${read}${errors}' where ${checksum} was expected")
  endif()
  file(REMOVE ${file})
endforeach()
