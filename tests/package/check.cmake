# SPDX-License-Identifier: BSD-3-Clause
# Installs the build into an empty folder, moves that, and builds and runs the consumer against it, once through
# find_package and once through pkg-config.

include(${CMAKE_CURRENT_LIST_DIR}/must.cmake)

file(REMOVE_RECURSE ${work})
file(MAKE_DIRECTORY ${work})
must("installing" ${CMAKE_COMMAND} --install ${build} --prefix ${work}/first)
file(RENAME ${work}/first ${work}/prefix)  # a package may be moved

# What came along: programs, and headers without tests and without private dependencies.
if(NOT EXISTS ${work}/prefix/bin/headway)
  message(FATAL_ERROR "bin/headway is not installed")
endif()
foreach(file IN ITEMS __main__.py templates/page.html templates/page.css)
  if(NOT EXISTS ${work}/prefix/share/headway/python/headway_report/${file})
    message(FATAL_ERROR "headway_report/${file} is not installed")
  endif()
endforeach()
must("headway report of the installation" ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1
     ${work}/prefix/bin/headway report --help)
file(GLOB_RECURSE headers ${work}/prefix/include/*.hpp)
foreach(header IN LISTS headers)
  if(header MATCHES "_(test|fuzz|bench)[^/]*$")
    message(FATAL_ERROR "installed without need: ${header}")
  endif()
  file(STRINGS ${header} private REGEX "#include *[<\"](fmt|CLI|nlohmann|gtest)/")
  if(private)
    message(FATAL_ERROR "${header} needs what users of the package may not have: ${private}")
  endif()
endforeach()
file(GLOB_RECURSE texts ${work}/prefix/${libdir}/*.cmake ${work}/prefix/${libdir}/*.pc)
foreach(text IN LISTS texts)
  file(READ ${text} content)
  if(content MATCHES "fmt|headway_warnings|-W[a-z]")
    message(FATAL_ERROR "${text} lets out what is private: ${CMAKE_MATCH_0}")
  endif()
  string(FIND "${content}" "${build}" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${text} names the build folder")
  endif()
endforeach()

must("configuring the consumer" ${CMAKE_COMMAND} -S ${source} -B ${work}/build -G ${generator}
     -D CMAKE_PREFIX_PATH=${work}/prefix -D CMAKE_CXX_COMPILER=${compiler} "-DCMAKE_CXX_FLAGS=${flags}"
     -D CMAKE_BUILD_TYPE=Debug)
must("building the consumer" ${CMAKE_COMMAND} --build ${work}/build)
run_consumer(${work}/build/consumer)

find_program(pkg_config NAMES pkg-config pkgconf)
if(pkg_config)
  set(ENV{PKG_CONFIG_PATH} ${work}/prefix/${libdir}/pkgconfig)
  must("pkg-config" ${pkg_config} --cflags --libs headway)
  string(STRIP "${output}" line)
  separate_arguments(line UNIX_COMMAND "${line}")
  separate_arguments(flags UNIX_COMMAND "${flags}")
  must("building with pkg-config" ${compiler} -std=c++20 ${flags} ${source}/main.cpp ${line} -o ${work}/by-pkg-config)
  run_consumer(${work}/by-pkg-config)
endif()
# The same with the flags that the installed command prints.
must("headway cxxflags" ${work}/prefix/bin/headway cxxflags)
separate_arguments(compile_flags UNIX_COMMAND "${output}")
must("headway ldflags" ${work}/prefix/bin/headway ldflags)
separate_arguments(link_flags UNIX_COMMAND "${output}")
string(REPLACE ";" " " own_flags "${flags}")  # a list by now where there is pkg-config
separate_arguments(own_flags UNIX_COMMAND "${own_flags}")
must("building with headway ldflags" ${compiler} ${compile_flags} ${own_flags} ${source}/main.cpp ${link_flags}
     -o ${work}/by-flags)
run_consumer(${work}/by-flags)
file(REMOVE_RECURSE ${work})
