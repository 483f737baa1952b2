# SPDX-License-Identifier: BSD-3-Clause
# Instructions per message in all, and frames, over two dimensions and over one: callgrind's totals for 2N rounds less
# those for N, over the messages of N rounds.
#   cmake -DPROGRAM=build/release/tests/headway_routes -DWORK=... -P routes.cmake
# Prints a table; fails where few messages go to each pair of PEs and a bound of docs/performance.md is exceeded.
find_program(VALGRIND valgrind)
if(NOT VALGRIND)
  message(FATAL_ERROR "valgrind is not installed: the instructions per message cannot be counted")
endif()
file(MAKE_DIRECTORY ${WORK})

# Sets ${route}_instructions, in hundredths a message, ${route}_frames, of one round, and ${route}_sum.
function(count route side messages rounds)
  math(EXPR twice "2 * ${rounds}")
  foreach(n ${rounds} ${twice})
    set(file ${WORK}/routes.${route}.${side}.${messages}.${n})
    execute_process(
      COMMAND ${VALGRIND} --tool=callgrind --callgrind-out-file=${file} ${PROGRAM} ${route} ${side} ${messages} ${n}
      OUTPUT_VARIABLE printed ERROR_VARIABLE errors RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "${PROGRAM} ${route} ${side} ${messages} ${n}: ${status}\n${errors}")
    endif()
    file(STRINGS ${file} totals REGEX "^totals: ")
    string(REGEX MATCH "[0-9]+" total_${n} "${totals}")
    string(REGEX MATCHALL "[0-9]+" printed "${printed}")
    list(GET printed 0 sum)
    list(GET printed 1 handled_${n})
    list(GET printed 2 frames_${n})
  endforeach()
  math(EXPR handled "${messages} * ${rounds} * ${side} * ${side} * (${side} * ${side} - 1)")
  if(NOT handled_${rounds} EQUAL handled)
    message(FATAL_ERROR
      "${route} of ${side} x ${side}: ${handled_${rounds}} messages were handled, ${handled} were sent")
  endif()
  math(EXPR hundredths "(${total_${twice}} - ${total_${rounds}}) * 100 / ${handled}")
  math(EXPR frames "(${frames_${twice}} - ${frames_${rounds}}) / ${rounds}")
  set(${route}_instructions ${hundredths} PARENT_SCOPE)
  set(${route}_frames ${frames} PARENT_SCOPE)
  set(${route}_sum ${sum} PARENT_SCOPE)
endfunction()

# 1234 hundredths as 12.34
function(decimal hundredths result)
  math(EXPR whole "${hundredths} / 100")
  math(EXPR rest "${hundredths} % 100 + 100")
  string(SUBSTRING ${rest} 1 2 rest)
  set(${result} ${whole}.${rest} PARENT_SCOPE)
endfunction()

# Bounds in hundredths: of the instructions, and of the frames.
function(compare side messages rounds instructions_most frames_most)
  foreach(route 1d 2d)
    count(${route} ${side} ${messages} ${rounds})
    decimal(${${route}_instructions} ${route}_shown)
  endforeach()
  math(EXPR instructions "100 * ${2d_instructions} / ${1d_instructions}")
  math(EXPR frames "100 * ${2d_frames} / ${1d_frames}")
  decimal(${instructions} instructions_shown)
  decimal(${frames} frames_shown)
  math(EXPR pes "${side} * ${side}")
  message("| ${pes} | ${messages} | ${1d_frames} | ${2d_frames} | ${frames_shown} | ${1d_shown} | ${2d_shown} | "
          "${instructions_shown} |")
  if(NOT 1d_sum STREQUAL 2d_sum)
    message(SEND_ERROR "${pes} PEs: what was handled over two dimensions is not what was handled over one")
  endif()
  if(instructions GREATER instructions_most)
    message(SEND_ERROR
      "${pes} PEs: ${instructions} hundredths of the instructions of 1d, at most ${instructions_most} are allowed")
  endif()
  if(frames GREATER frames_most)
    message(SEND_ERROR "${pes} PEs: ${frames} hundredths of the frames of 1d, at most ${frames_most} are allowed")
  endif()
endfunction()

message("| PEs | messages a pair | frames, 1d | 2d | 2d / 1d | instructions a message, 1d | 2d | 2d / 1d |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |")
compare(4 10 10 200 42)
compare(8 10 10 200 24)
