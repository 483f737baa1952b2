# SPDX-License-Identifier: BSD-3-Clause
# Programs for SimGrid's SMPI, which runs all ranks of an MPI program in one process, each over a copy of the program,
# on a simulated network and clock. HEADWAY_SMPI builds everything for that, in a folder of its own (preset smpi); other
# programs of such a build still run, but what they take for time stands still. tests/smpi/run starts what
# headway_smpi_program makes.

option(HEADWAY_SMPI "Build for SimGrid's SMPI, and the programs that run there (needs SimGrid)" OFF)
if(NOT HEADWAY_SMPI)
  return()
endif()

find_path(HEADWAY_SMPI_INCLUDE smpi/mpi.h REQUIRED)
find_library(HEADWAY_SIMGRID simgrid REQUIRED)
find_program(HEADWAY_SMPIRUN smpirun REQUIRED)
mark_as_advanced(HEADWAY_SMPI_INCLUDE HEADWAY_SIMGRID HEADWAY_SMPIRUN)

# Without -fno-gnu-unique all ranks would share inline variables and statics of templates.
add_compile_options(-fno-gnu-unique -include ${CMAKE_CURRENT_LIST_DIR}/smpi_time.hpp)
add_compile_definitions(HEADWAY_SMPI)
link_libraries(${HEADWAY_SIMGRID})
set(HEADWAY_MPIS)  # its MPI_Send is in every program of this build

# headway_smpi_program(NAME [WIRE] SOURCES ... USES ...): NAME in bin/, for smpirun. It is copied once a rank: stripped,
# and with all that is ours in it. With WIRE it is a program on the library: the plug-in for MPI is linked in, as
# headway_wire_plugin(), for none can be loaded there, and smpi_main.cpp calls its main().
function(headway_smpi_program name)
  cmake_parse_arguments(ARG "WIRE" "" "SOURCES;USES" ${ARGN})
  if(ARG_WIRE)
    list(APPEND ARG_SOURCES ${PROJECT_SOURCE_DIR}/src/headway/transport/mpi/mpi_wire.cpp)
    list(APPEND ARG_SOURCES ${PROJECT_SOURCE_DIR}/cmake/smpi_main.cpp)
    list(APPEND ARG_USES headway_base)
  endif()
  add_library(${name} MODULE EXCLUDE_FROM_ALL ${ARG_SOURCES})
  if(ARG_WIRE)
    target_compile_definitions(${name} PRIVATE main=main_of_rank)
  endif()
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  target_include_directories(${name} SYSTEM PRIVATE ${HEADWAY_SMPI_INCLUDE}/smpi)
  target_include_directories(${name} PRIVATE ${PROJECT_BINARY_DIR}/include-roots/transport)
  target_compile_definitions(${name} PRIVATE HEADWAY_MPI="smpi")
  target_link_libraries(${name} PRIVATE ${ARG_USES} headway_warnings)
  target_link_options(${name} PRIVATE -s -Wl,-z,defs)
endfunction()
