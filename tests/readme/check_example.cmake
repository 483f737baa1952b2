# The example ends well and prints what it should, once.
execute_process(COMMAND ${program} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT status EQUAL 0 OR NOT output STREQUAL prints)
  message(FATAL_ERROR "the example ended with ${status} and printed:\n${output}${errors}")
endif()
