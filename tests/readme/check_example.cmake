# The example ends well and prints, once, the line that the README shows.
execute_process(COMMAND ${program} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT status EQUAL 0 OR NOT output STREQUAL "4 PEs applied 10000000 updates\n")
  message(FATAL_ERROR "the example ended with ${status} and printed:\n${output}${errors}")
endif()
