# SPDX-License-Identifier: BSD-3-Clause
# cmake -D pingpong=FILE -D dial=LIST -D added_us=N [-D transport=local|sim] -P check.cmake
# The one-way time of pingpong grows by at least N us: each run with HEADWAY_DIAL=LIST stands beside one without. No
# time has an upper bound.
if(NOT transport)
  set(transport local)
endif()
set(settings HEADWAY_TRANSPORT=${transport} HEADWAY_PES=2 HEADWAY_BIND=none HEADWAY_STALL=30s)

# one_way_ns(OUT SETTING...): the median of one run, in whole nanoseconds.
function(one_way_ns out)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${settings} ${ARGN} ${pingpong} --messages 200 --json -
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors TIMEOUT 100)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${pingpong} with ${ARGN} ended with ${status}:\n${output}${errors}")
  endif()
  string(JSON median GET "${output}" one_way_us median)
  if(NOT median MATCHES "^([0-9]+)[.]?([0-9]*)(e([-+]?[0-9]+))?$")
    message(FATAL_ERROR "one_way_us is ${median}")
  endif()
  if(CMAKE_MATCH_4)
    set(median 0)  # below a nanosecond, or so long that the test has failed already
    set(CMAKE_MATCH_1 0)
    set(CMAKE_MATCH_2 0)
  endif()
  string(SUBSTRING "${CMAKE_MATCH_2}000" 0 3 fraction)
  math(EXPR ns "${CMAKE_MATCH_1} * 1000 + 1${fraction} - 1000")
  set(${out} ${ns} PARENT_SCOPE)
endfunction()

math(EXPR added_ns "${added_us} * 1000")
set(grown)
foreach(pair RANGE 1 5)
  one_way_ns(without)
  one_way_ns(with HEADWAY_DIAL=${dial})
  message(STATUS "without: ${without} ns, with ${dial}: ${with} ns")
  if(with LESS added_ns)
    message(FATAL_ERROR "a frame with ${dial} took ${with} ns")
  endif()
  math(EXPR difference "${with} - ${without}")
  list(APPEND grown ${difference})
endforeach()
list(SORT grown COMPARE NATURAL)
list(GET grown 2 median)
if(median LESS added_ns)
  message(FATAL_ERROR "with ${dial} the one-way time grows by ${median} ns, which is less than ${added_ns} ns")
endif()
