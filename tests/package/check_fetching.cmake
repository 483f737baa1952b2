# SPDX-License-Identifier: BSD-3-Clause
# Configures ./fetching, which takes the source of Headway by FetchContent; with `build` it is also built and run.

# must(WHAT COMMAND ...): runs it, ends with its output when it fails.
function(must what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${what} failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${work})
set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${launcher}")
must("configuring" ${CMAKE_COMMAND} -S ${source} -B ${work} -G ${generator} -D HEADWAY_SOURCE=${headway}
     -D CMAKE_CXX_COMPILER=${compiler} "-DCMAKE_CXX_FLAGS=${flags}"
     -D HEADWAY_MPI=OFF -D HEADWAY_UCX=OFF -D CMAKE_BUILD_TYPE=Debug)
if(build)
  must("building" ${CMAKE_COMMAND} --build ${work} --target consumer)
  must("the consumer" ${CMAKE_COMMAND} -E env HEADWAY_PES=2 HEADWAY_BIND=none ${work}/consumer)
  if(NOT output MATCHES "2 PEs, sum 1001000")
    message(FATAL_ERROR "the consumer printed:\n${output}")
  endif()
else()
  must("looking for the rules of consumer" ${CMAKE_COMMAND} --build ${work} --target consumer -- -n)
endif()
file(REMOVE_RECURSE ${work})
