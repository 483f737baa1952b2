# SPDX-License-Identifier: BSD-3-Clause
# For the checks of programs, which are run by cmake -D program=FILE -P check.cmake.
set(ENV{HEADWAY_BIND} none)
set(ENV{HEADWAY_STALL} 30s)

# expect_status("NAME=VALUE ..." "arguments" STATUS "expression"): the program ends so, and what it prints matches. Why
# it refuses arguments, with status 2, it says in one line.
function(expect_status settings arguments expected expression)
  separate_arguments(words UNIX_COMMAND "${arguments}")
  separate_arguments(set UNIX_COMMAND "${settings}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${set} ${program} ${words} TIMEOUT 120
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL expected OR NOT "${output}${errors}" MATCHES "${expression}")
    message(SEND_ERROR "${settings} ${program} ${arguments}: status ${expected} and '${expression}' were expected\n"
                       "status ${status}\n${output}${errors}")
  endif()
  string(REGEX REPLACE "headway: the run was simulated[^\n]*\n$" "" said "${output}${errors}")
  if(status EQUAL 2 AND NOT said MATCHES "^[^\n]+\n$")
    message(SEND_ERROR "${settings} ${program} ${arguments}: one line was expected\n${output}${errors}")
  endif()
endfunction()
