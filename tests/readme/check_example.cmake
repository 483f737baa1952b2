# SPDX-License-Identifier: BSD-3-Clause
# The program succeeds with each number of PEs, and prints the line that it should, once.
string(REPLACE "," ";" pes "${pes}")
foreach(n IN LISTS pes)
  set(ENV{HEADWAY_PES} ${n})
  execute_process(COMMAND ${program} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL 0 OR NOT output STREQUAL "${prints}\n")
    message(SEND_ERROR "with ${n} PEs the program ended with status ${status}; expected are status 0 and\n${prints}\n"
                       "It printed:\n${output}${errors}")
  endif()
endforeach()
