# SPDX-License-Identifier: BSD-3-Clause
# The MPIs that are here, by their compiler wrappers: the list HEADWAY_MPIS of openmpi, mpich, mpi-abi for one through
# the standard ABI of MPI 5.0, or mpi for one that is none of these, and for each HEADWAY_MPI_NAME_INCLUDES, _DEFINES,
# _LINKS and _WRAPPER. None found is no error.

option(HEADWAY_MPI "Build the plug-ins for the MPIs that are found, and the programs that need an MPI" ON)
set(HEADWAY_MPIS)
if(NOT HEADWAY_MPI)
  return()
endif()

# headway_look_for_mpi(WRAPPER FOLDERS...): adds the MPI of this compiler wrapper, in PATH or these, unless it is known
# already.
macro(headway_look_for_mpi wrapper)
  string(MAKE_C_IDENTIFIER "HEADWAY_${wrapper}" variable)
  find_program(${variable} ${wrapper} PATHS ${ARGN})
  mark_as_advanced(${variable})
  set(line)
  set(status 1)
  set(beside)
  if(${variable})
    get_filename_component(beside ${${variable}} DIRECTORY)
    execute_process(COMMAND ${${variable}} -show OUTPUT_VARIABLE line ERROR_QUIET RESULT_VARIABLE status
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(line MATCHES "-lmpi_abi")
    set(mpi mpi-abi)
  elseif(line MATCHES "openmpi|open-mpi|open_rte")
    set(mpi openmpi)
  elseif(line MATCHES "mpich" OR EXISTS ${beside}/mpichversion)
    set(mpi mpich)
  else()
    set(mpi mpi)
  endif()
  if(status EQUAL 0 AND NOT mpi IN_LIST HEADWAY_MPIS)
    # What the wrapper adds to its compiler, the C++ bindings of old excepted.
    list(APPEND HEADWAY_MPIS ${mpi})
    set(HEADWAY_MPI_${mpi}_WRAPPER ${${variable}})
    set(HEADWAY_MPI_${mpi}_INCLUDES)
    set(HEADWAY_MPI_${mpi}_DEFINES OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    set(HEADWAY_MPI_${mpi}_LINKS)
    separate_arguments(flags UNIX_COMMAND "${line}")
    list(POP_FRONT flags)
    foreach(flag IN LISTS flags)
      if(flag MATCHES "^-I(.+)")
        list(APPEND HEADWAY_MPI_${mpi}_INCLUDES ${CMAKE_MATCH_1})
      elseif(flag MATCHES "^-D(.+)")
        list(APPEND HEADWAY_MPI_${mpi}_DEFINES ${CMAKE_MATCH_1})
      elseif(HEADWAY_WHEEL AND flag MATCHES "^-Wl,")
        continue()  # a folder of this machine, where libraries are searched at run time
      elseif(flag MATCHES "^(-L|-l|-Wl,|-pthread|/)" AND NOT flag MATCHES "^-l(mpi_cxx|mpichcxx|mpicxx)$")
        list(APPEND HEADWAY_MPI_${mpi}_LINKS ${flag})
      endif()
    endforeach()
  endif()
endmacro()

if(NOT HEADWAY_WHEEL)
  foreach(wrapper mpicxx.openmpi mpicxx.mpich mpicxx mpic++)
    headway_look_for_mpi(${wrapper})
  endforeach()
endif()
headway_look_for_mpi(mpicc_abi ${PROJECT_SOURCE_DIR}/build/mpi-abi/bin)  # where scripts/setup puts one
# In a wheel also the ABI of MPICH's own, of the same MPI: mpi4py takes that one, and a process can have one MPI only.
if(HEADWAY_WHEEL AND HEADWAY_mpicc_abi)
  get_filename_component(beside ${HEADWAY_mpicc_abi} DIRECTORY)
  find_program(HEADWAY_mpicxx mpicxx PATHS ${beside} NO_DEFAULT_PATH)
  headway_look_for_mpi(mpicxx)
  list(FILTER HEADWAY_MPIS INCLUDE REGEX "^mpi-abi$|^mpich$")
endif()
