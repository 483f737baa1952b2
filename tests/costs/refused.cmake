# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -D kept=DIR -D unsteady=DIR -D folder=DIR -P refused.cmake
# Kept results that are missing or damaged end the run before any PE starts, in one line and with status 120. Results
# of a machine that changed its speed are not used, and the run says so.
function(ends_with status_expected line)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env HEADWAY_PES=2 HEADWAY_COSTS=probed ${ARGN}
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors TIMEOUT 60)
  if(NOT status EQUAL status_expected OR NOT output STREQUAL "" OR NOT errors MATCHES "^headway: HEADWAY_COSTS=${line}\n$")
    message(SEND_ERROR "${ARGN} ended with ${status} instead of ${status_expected}:\n${output}${errors}")
  endif()
endfunction()

set(cure "run `headway probe --save`, or set HEADWAY_COSTS=default")
ends_with(120 "probed: ${folder}/none/[^ ]*\\.costs: it cannot be read \\(No such file or directory\\): ${cure}"
          XDG_CACHE_HOME=${folder}/none ${program} process)
ends_with(120 "measured: allowed is default or probed" HEADWAY_COSTS=measured ${program} process)
ends_with(0 "probed: the results in [^ ]* are not used: a cache line took 45 to 200 ns, so the machine changed its speed while they were measured; ${cure}"
          XDG_CACHE_HOME=${unsteady} ${program} default)

# Each line of the text damaged in turn.
file(GLOB text ${kept}/headway/*-local.costs)
file(READ ${text} good)
get_filename_component(name ${text} NAME)
set(damaged ${folder}/damaged)
foreach(change IN ITEMS "headway costs 1+headway costs 2" "thread +thread x " "process +processes " " 7 + 7 x ")
  string(REPLACE "+" ";" words "${change}")
  list(GET words 0 from)
  list(GET words 1 to)
  string(REPLACE "${from}" "${to}" bad "${good}")
  if(bad STREQUAL good)
    message(SEND_ERROR "'${from}' is not in ${text}")
  endif()
  file(WRITE ${damaged}/headway/${name} "${bad}")
  ends_with(120 "probed: [^ ]*: '[^']*' is no line of kept costs: ${cure}" XDG_CACHE_HOME=${damaged} ${program} process)
endforeach()
string(REGEX REPLACE "process[^\n]*\n" "" bad "${good}")
file(WRITE ${damaged}/headway/${name} "${bad}")
ends_with(120 "probed: [^ ]*: it has no results of the pair process: ${cure}" XDG_CACHE_HOME=${damaged} ${program}
          process)
