# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P warns.cmake
# Two PEs on one core say once that they cannot hold the dialled values; simulated PEs can hold them.
find_program(taskset taskset)
if(NOT taskset)
  message("SKIPPED: there is no taskset here")
  return()
endif()
execute_process(COMMAND sh -c "taskset -cp $$ | sed 's/.*: *//; s/[-,].*//'" OUTPUT_VARIABLE core
                OUTPUT_STRIP_TRAILING_WHITESPACE)

function(warnings out)
  set(settings HEADWAY_PES=2 HEADWAY_STALL=30s HEADWAY_DIAL=L=100us ${ARGN})
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${settings} taskset -c ${core} ${program} --messages 20
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors TIMEOUT 100)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${program} with ${settings} ended with ${status}:\n${output}${errors}")
  endif()
  string(REGEX MATCHALL "HEADWAY_DIAL: there are more PEs than cores" found "${errors}")
  list(LENGTH found count)
  set(${out} ${count} PARENT_SCOPE)
endfunction()

foreach(case IN ITEMS "1 HEADWAY_PES_PER_PROCESS=1" "1 HEADWAY_PES_PER_PROCESS=2" "0 HEADWAY_TRANSPORT=sim")
  separate_arguments(case)
  list(POP_FRONT case expected)
  if(case STREQUAL "HEADWAY_TRANSPORT=sim" AND NOT sim)
    continue()
  endif()
  warnings(count ${case})
  if(NOT count EQUAL expected)
    message(FATAL_ERROR "with ${case} the run warns ${count} times, and ${expected} are expected")
  endif()
endforeach()
