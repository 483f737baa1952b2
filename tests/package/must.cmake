# SPDX-License-Identifier: BSD-3-Clause
# Steps of the tests of packages.

# must(WHAT COMMAND ...): runs it, ends with its output when it fails.
function(must what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(run_consumer program)
  must("the consumer" ${CMAKE_COMMAND} -E env HEADWAY_PES=2 HEADWAY_BIND=none ${program})
  if(NOT output MATCHES "2 PEs, sum 1001000")
    message(FATAL_ERROR "the consumer printed:\n${output}")
  endif()
endfunction()
