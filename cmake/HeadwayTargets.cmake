# SPDX-License-Identifier: BSD-3-Clause
# Helper functions for targets. A layer is one folder of src/headway and one static library whose include root shows
# that folder alone, as <headway/LAYER/...>; a layer that it does not name cannot be included.

add_library(headway_warnings INTERFACE)
target_compile_options(headway_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
                                                  -Woverloaded-virtual -Wno-sign-conversion
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)  # GCC 12 sees overlaps in the concatenation of strings
if(HEADWAY_WERROR)
  target_compile_options(headway_warnings INTERFACE -Werror)
endif()

# fmt, as headers whose larger half is compiled once, in headway_base (base/fmt.cpp), in a namespace of our own: no
# program that brings fmt along meets this one.
add_library(headway_fmt INTERFACE)
target_include_directories(headway_fmt
  SYSTEM INTERFACE $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(headway_fmt INTERFACE "FMT_BEGIN_NAMESPACE=namespace fmt { inline namespace headway {"
  FMT_END_NAMESPACE=}})

# Of a GoogleTest executable, its own sources alone: the compiler takes longer over most of them than they run. The
# presets say.
set(HEADWAY_TEST_FLAGS "" CACHE STRING "Compiler flags of the sources of tests, after all others")
add_library(headway_test_flags INTERFACE)
target_compile_options(headway_test_flags INTERFACE ${HEADWAY_TEST_FLAGS})

# headway_build_in_check_long(TARGET): `make check` does without it; `make check-long` builds it.
add_custom_target(headway_long)
function(headway_build_in_check_long target)
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  add_dependencies(headway_long ${target})
endfunction()

# headway_layer(NAME SOURCES a.cpp ... USES lower-layer ...): the library headway_NAME, alias headway::NAME.
function(headway_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  set(root ${PROJECT_BINARY_DIR}/include-roots/${name})
  file(MAKE_DIRECTORY ${root}/headway)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/headway/${name} SYMBOLIC)

  add_library(headway_${name} STATIC ${ARG_SOURCES})
  add_library(headway::${name} ALIAS headway_${name})
  set_target_properties(headway_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(headway_${name} PUBLIC cxx_std_20)
  target_include_directories(headway_${name} PUBLIC $<BUILD_INTERFACE:${root}> $<INSTALL_INTERFACE:include>)
  list(TRANSFORM ARG_USES PREPEND headway_)
  target_link_libraries(headway_${name} PUBLIC ${ARG_USES} Threads::Threads
    PRIVATE $<BUILD_INTERFACE:headway_warnings> $<BUILD_INTERFACE:headway_fmt>)
  set_property(GLOBAL APPEND PROPERTY HEADWAY_LAYERS ${name})

  # Every header of the layer compiles on its own, with nothing but the include roots the layer has.
  if(HEADWAY_TESTS)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.hpp)
    set(checks)
    list(FILTER headers EXCLUDE REGEX "^ucx/ucx_wire[.]hpp$")  # needs UCX, which may be missing
    foreach(header IN LISTS headers)
      string(MAKE_C_IDENTIFIER ${header} id)
      set(check ${PROJECT_BINARY_DIR}/header-checks/${name}/${id}.cpp)
      if(NOT EXISTS ${check})
        file(WRITE ${check} "#include <headway/${name}/${header}>\n#include <headway/${name}/${header}>\n")
      endif()
      list(APPEND checks ${check})
    endforeach()
    if(checks)
      add_library(headway_${name}_headers OBJECT ${checks})
      target_link_libraries(headway_${name}_headers PRIVATE headway_${name} headway_warnings)
      target_compile_options(headway_${name}_headers PRIVATE -O0)
      headway_build_in_check_long(headway_${name}_headers)
    endif()
  endif()
endfunction()

# headway_sanitize(TEST TARGET asan|tsan ...): `make check` runs the test TEST, of the executable TARGET, in these
# presets, and in no other; `make check-long` runs it in the release preset, where it has the label `sanitized`.
function(headway_sanitize test target)
  if(ARGN)
    set_property(TEST ${test} APPEND PROPERTY LABELS sanitized)
  endif()
  foreach(preset IN LISTS ARGN)
    set_property(TEST ${test} APPEND PROPERTY LABELS ${preset})
    if(NOT TARGET headway_${preset}_tests)
      add_custom_target(headway_${preset}_tests)
    endif()
    add_dependencies(headway_${preset}_tests ${target})
  endforeach()
endfunction()

# headway_test(NAME SOURCES x_test.cpp ... USES headway_am ... [TIMEOUT s] [LABELS ...] [SANITIZE asan|tsan ...]): a
# GoogleTest executable.
function(headway_test name)
  if(NOT HEADWAY_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;USES;LABELS;SANITIZE" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_USES} headway_warnings headway_test_flags GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
                       ENVIRONMENT "HEADWAY_BIND=none")
  headway_sanitize(${name} ${name} ${ARG_SANITIZE})
  if(ARG_SANITIZE)
    headway_build_in_check_long(${name})
  endif()
endfunction()

# headway_more_seeds(TEST VARIABLE first FIRST count COUNT sanitized COUNT): `make check-long` runs TEST, a name that
# ends with _test, with the seeds from FIRST on, in the release build and under AddressSanitizer. TEST reads the first
# seed from VARIABLE_SEED and their number from VARIABLE_SEEDS.
function(headway_more_seeds test variable)
  if(NOT HEADWAY_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "first;count;sanitized" "" ${ARGN})
  string(REGEX REPLACE "_test$" "" name ${test})
  foreach(long_and_count IN ITEMS long:${ARG_count} sanitized_long:${ARG_sanitized})
    string(REGEX MATCH "^(.*):(.*)$" ignored ${long_and_count})
    add_test(NAME ${name}_${CMAKE_MATCH_1} COMMAND ${test})
    set_tests_properties(${name}_${CMAKE_MATCH_1} PROPERTIES TIMEOUT 1800 LABELS long
      ENVIRONMENT "HEADWAY_BIND=none;${variable}_SEED=${ARG_first};${variable}_SEEDS=${CMAKE_MATCH_2}")
  endforeach()
  headway_sanitize(${name}_sanitized_long ${test} asan)
endfunction()

# headway_fuzz(NAME SOURCES x_fuzz.cpp ... USES headway_am ... RUNS n [LONG_RUNS n] [ARGUMENTS ...]): an
# executable over <fuzz/fuzz.hpp>. Its test NAME decodes n inputs, NAME_long the same and more, LONG_RUNS or 10^8; both
# under AddressSanitizer.
function(headway_fuzz name)
  if(NOT HEADWAY_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "RUNS;LONG_RUNS" "SOURCES;USES;ARGUMENTS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_USES} headway_fuzz_support headway_warnings)
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGUMENTS} --runs ${ARG_RUNS} --corpus ${corpus})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  headway_sanitize(${name} ${name} asan)
  headway_build_in_check_long(${name})
  if(NOT ARG_LONG_RUNS)
    set(ARG_LONG_RUNS 100000000)
  endif()
  if(NOT ARG_ARGUMENTS)
    add_test(NAME ${name}_long COMMAND ${name} --runs ${ARG_LONG_RUNS} --corpus ${corpus})
    set_tests_properties(${name}_long PROPERTIES TIMEOUT 14400 LABELS long)
    headway_sanitize(${name}_long ${name} asan)
  endif()
endfunction()

# headway_program(NAME SOURCES ... USES ...): an executable in bin/; in a build for SMPI also NAME-smpi, for smpirun.
function(headway_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_USES} headway_warnings)
  if(HEADWAY_SMPI)
    headway_smpi_program(${name}-smpi WIRE SOURCES ${ARG_SOURCES} USES ${ARG_USES})
  endif()
endfunction()
