# cmake -D program=FILE -D pes_as=processes|threads|both -P check.cmake
# The program must end well and print the same line however many PEs there are, wherever they run, over every topology.
set(expected "")
foreach(pes 1 2 3 5 8 13)
  set(pes_per_process 1)
  if(pes_as STREQUAL "threads")
    set(pes_per_process ${pes})
  elseif(pes_as STREQUAL "both")
    set(pes_per_process 3)
  endif()
  foreach(topology direct 1d 2d 3d)
    set(run "HEADWAY_PES=${pes} HEADWAY_PES_PER_PROCESS=${pes_per_process} ${program} ${topology}")
    execute_process(COMMAND ${CMAKE_COMMAND} -E env HEADWAY_PES=${pes} HEADWAY_PES_PER_PROCESS=${pes_per_process}
                            ${program} ${topology}
                    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
    if(expected STREQUAL "")
      set(expected "${output}")
    endif()
    if(NOT status EQUAL 0 OR output STREQUAL "" OR NOT output STREQUAL expected OR NOT errors STREQUAL "")
      message(FATAL_ERROR "${run}\nended with ${status} and printed\n${output}${errors}\nwhere\n${expected}\nwas expected")
    endif()
  endforeach()
endforeach()
