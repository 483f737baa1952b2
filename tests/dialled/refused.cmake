# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -D command=FILE -P refused.cmake
# Settings whose data the dials cannot delay are refused before any PE starts, in one line and with status 120.
function(refused status_expected line)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env HEADWAY_PES=2 ${ARGN}
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors TIMEOUT 60)
  if(NOT status EQUAL status_expected OR NOT output STREQUAL "" OR NOT errors STREQUAL "headway${line}\n")
    message(SEND_ERROR "${ARGN} ended with ${status} instead of ${status_expected}:\n${output}${errors}")
  endif()
endfunction()

foreach(path IN ITEMS mapped cma network)
  set(allowed "allowed is auto or frames with HEADWAY_DIAL, which delays content in frames alone")
  refused(120 ": HEADWAY_TRANSFER=${path}: ${allowed}" HEADWAY_DIAL=L=1us HEADWAY_TRANSFER=${path} ${program})
  refused(2 " run: HEADWAY_TRANSFER=${path}: ${allowed}" ${command} run --dial L=1us --transfer ${path} ${program})
endforeach()
set(allowed "allowed is auto or messages with HEADWAY_DIAL, which delays frames alone")
refused(120 ": HEADWAY_COLLECTIVES=shared: ${allowed}" HEADWAY_DIAL=L=1us HEADWAY_COLLECTIVES=shared ${program})
refused(2 " run: HEADWAY_COLLECTIVES=shared: ${allowed}" ${command} run --dial L=1us --collectives shared ${program})
