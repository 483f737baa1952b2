# SPDX-License-Identifier: BSD-3-Clause
# Configures ./fetching, which takes the source of Headway by FetchContent; with `build` it is also built and run.

include(${CMAKE_CURRENT_LIST_DIR}/must.cmake)

file(REMOVE_RECURSE ${work})
set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${launcher}")
must("configuring" ${CMAKE_COMMAND} -S ${source} -B ${work} -G ${generator} -D HEADWAY_SOURCE=${headway}
     -D CMAKE_CXX_COMPILER=${compiler} "-DCMAKE_CXX_FLAGS=${flags}"
     -D HEADWAY_MPI=OFF -D HEADWAY_UCX=OFF -D CMAKE_BUILD_TYPE=Debug)
if(build)
  must("building" ${CMAKE_COMMAND} --build ${work} --target consumer)
  run_consumer(${work}/consumer)
else()
  must("looking for the rules of consumer" ${CMAKE_COMMAND} --build ${work} --target consumer -- -n)
endif()
file(REMOVE_RECURSE ${work})
