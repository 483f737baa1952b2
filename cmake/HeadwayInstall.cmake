# SPDX-License-Identifier: BSD-3-Clause
# What `cmake --install` gives: headers as <headway/LAYER/...>, one static library a layer, the headway command and the
# headway-NAME programs, the CMake package (find_package(headway): headway::headway, or headway::LAYER alone) and
# headway.pc. Also the targets headway_programs, everything that belongs into bin/, and headway_demo.

option(HEADWAY_INSTALL "Make the rules for cmake --install" ${PROJECT_IS_TOP_LEVEL})

# headway_executables(OUT FOLDER): the executables made in FOLDER and below.
function(headway_executables out folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  set(found)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(place ${target} RUNTIME_OUTPUT_DIRECTORY)
    if(type STREQUAL "EXECUTABLE" AND place STREQUAL CMAKE_RUNTIME_OUTPUT_DIRECTORY)
      list(APPEND found ${target})
    endif()
  endforeach()
  get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS subfolders)
    headway_executables(more ${subfolder})
    list(APPEND found ${more})
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

set(programs)
if(HEADWAY_TOOLS)
  foreach(folder IN ITEMS apps bench tools)
    headway_executables(found ${PROJECT_SOURCE_DIR}/${folder})
    list(APPEND programs ${found})
  endforeach()
endif()
get_property(plugins GLOBAL PROPERTY HEADWAY_PLUGINS)
add_custom_target(headway_programs DEPENDS ${programs} ${plugins})
add_dependencies(headway_programs headway-l7)
if(TARGET headway_shared)
  add_dependencies(headway_programs headway_shared)
endif()
if(TARGET headway_fortran)
  add_dependencies(headway_programs headway_fortran)
endif()
# What scripts/demo runs.
set(demo ${programs})
list(FILTER demo INCLUDE REGEX "^headway-(command$|randomaccess$|peer-)")
add_custom_target(headway_demo DEPENDS ${demo})

if(NOT HEADWAY_INSTALL)
  return()
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
get_property(layers GLOBAL PROPERTY HEADWAY_LAYERS)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/headway)

# Headers and libraries.
install(FILES src/headway/headway.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headway)
set(libraries)
foreach(layer IN LISTS layers)
  install(DIRECTORY src/headway/${layer} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headway
          FILES_MATCHING PATTERN "*.hpp" PATTERN "wire.h" PATTERN "fake_*" EXCLUDE PATTERN "ucx_wire*" EXCLUDE
          PATTERN "*_test*" EXCLUDE PATTERN "*_fuzz*" EXCLUDE PATTERN "*_bench*" EXCLUDE)
  list(APPEND libraries headway_${layer})
endforeach()
install(FILES src/headway/c/halo.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headway)
# Machine files, for people; the library has their texts.
install(DIRECTORY machines DESTINATION ${CMAKE_INSTALL_DATADIR}/headway FILES_MATCHING PATTERN "*.machine")
# The Python package of `headway report`.
install(DIRECTORY python/headway_report DESTINATION ${CMAKE_INSTALL_DATADIR}/headway/python
        FILES_MATCHING PATTERN "*.py" PATTERN "*.html" PATTERN "*.css" PATTERN "__pycache__" EXCLUDE)
# For C and Fortran, and programs that use L7.
install(FILES src/l7/l7.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES src/l7/l7/l7.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/l7)
install(TARGETS headway-l7 ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET headway_fortran)
  install(TARGETS headway_fortran ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  get_target_property(modules headway_fortran Fortran_MODULE_DIRECTORY)
  install(FILES ${modules}/headway_halo.mod DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headway)
endif()
if(HEADWAY_SHARED)
  list(APPEND libraries headway_shared)
endif()
install(TARGETS headway ${libraries} EXPORT headwayTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Users of a wheel may not have the one library that the static ones need.
if(HEADWAY_WHEEL AND HEADWAY_SIM)
  get_target_property(boost_context Boost::context IMPORTED_LOCATION_RELEASE)
  if(NOT boost_context)
    get_target_property(boost_context Boost::context IMPORTED_LOCATION)
  endif()
  if(NOT boost_context)
    get_target_property(boost_context Boost::context IMPORTED_LOCATION_NONE)
  endif()
  install(FILES ${boost_context} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# Programs: those with names of ours; helpers of the tests stay here.
foreach(program IN LISTS programs)
  get_target_property(name ${program} OUTPUT_NAME)
  if(NOT name)
    set(name ${program})
  endif()
  if(name MATCHES "^headway(-.*)?$")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

# Plug-ins, which programs look for beside themselves and here.
get_property(plugins GLOBAL PROPERTY HEADWAY_PLUGINS)
if(plugins)
  install(TARGETS ${plugins} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

# The CMake package.
install(EXPORT headwayTargets NAMESPACE headway:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/headwayConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/headwayConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a new minor version may break what was.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/headwayConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/headwayConfig.cmake ${PROJECT_BINARY_DIR}/package/headwayConfigVersion.cmake
        DESTINATION ${package_dir})

# pkg-config: the libraries highest layer first, found from where the file lies.
set(flags)
foreach(layer IN LISTS layers)
  list(PREPEND flags -lheadway_${layer})
endforeach()
if(HEADWAY_SIM)
  list(APPEND flags -lboost_context)
endif()
list(JOIN flags " " flags)
file(RELATIVE_PATH up_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" up_to_prefix ${up_to_prefix})
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/package/headway.pc @ONLY CONTENT [[
prefix=${pcfiledir}/@up_to_prefix@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@

Name: headway
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Cflags: -I${includedir}
Libs: -L${libdir} @flags@ -pthread
]])
install(FILES ${PROJECT_BINARY_DIR}/package/headway.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
