# SPDX-License-Identifier: BSD-3-Clause
# Compiles precompiled.cpp with headers that come precompiled, and expects no warning.
file(STRINGS ${include_dirs} dirs)
list(TRANSFORM dirs PREPEND -I)
set(headers ${work}/precompiled.hpp)
file(WRITE ${headers} "#include <headway/call/calls.hpp>\n")
set(compile ${CMAKE_COMMAND} -E env LC_ALL=C ${compiler} -std=c++20 -O2 -Wall ${dirs})
foreach(arguments "-x;c++-header;${headers};-o;${headers}.gch"
  "-include;${headers};-c;${source};-o;${work}/precompiled.o")
  execute_process(COMMAND ${compile} ${arguments} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0 OR output MATCHES "warning:")
    message(FATAL_ERROR "not without a warning (${status}):\n${output}")
  endif()
endforeach()
