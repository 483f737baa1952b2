# cmake -D program=FILE -P check.cmake
# headway-leanmd refuses what cannot be, in one line; conserves what is to be conserved where nobody computes all again;
# and particles in one corner are spread over the PEs.
set(ENV{HEADWAY_BIND} none)
set(ENV{HEADWAY_STALL} 30s)

function(expect_status settings arguments expected)
  separate_arguments(words UNIX_COMMAND "${arguments}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${settings} ${program} ${words} TIMEOUT 60
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL expected OR NOT "${output}${errors}" MATCHES "${ARGN}")
    message(SEND_ERROR "${settings} ${program} ${arguments}: status ${expected} and '${ARGN}' were expected\n"
                       "status ${status}\n${output}${errors}")
  endif()
endfunction()

expect_status("" "--cells 3,3" 2 "--cells: '3,3' is not allowed; allowed are three numbers, such as 4,4,2")
expect_status("" "--cells 3,1,3" 2 "--cells: '1' is not allowed; allowed is a whole number from 2 to 4096")
expect_status("" "--cells 4,4,3 --away 2" 2
              "--cells: '4,4,3' is not allowed; allowed with --away 2 is 4 or more in each dimension")
expect_status("" "--cells 4096,4096,4096" 2 "4096 x 4096 x 4096 cells are not allowed; allowed are 16777216")
expect_status("" "--away 3" 2 "--away: '3' is not allowed; allowed is a whole number from 1 to 2")
expect_status("" "--corner 28" 2 "--corner: '28' is not allowed; allowed is at most --particles, 27")
expect_status("" "--particles 0" 2 "--particles: '0' is not allowed")
expect_status("" "--migrate-every 0" 2 "--migrate-every: '0' is not allowed; allowed is a whole number from 1 to 100")
expect_status("" "--steps x" 2 "--steps")
expect_status("" "--verify serail" 2 "--verify: 'serail' is not allowed; .*did you mean 'serial'")
expect_status("" "--balance gredy" 2 "--balance: 'gredy' is not allowed; .*did you mean 'greedy'")

expect_status("HEADWAY_PES=2" "--particles 1 --cells-per-pe 1 --steps 8" 0 "verified")
expect_status("HEADWAY_PES=3" "--particles 8 --steps 20 --verify invariants" 0 "verified")
# The particles are with PE 0 alone, and so is nearly all of the load, also where others make PE 1 wait.
expect_status("HEADWAY_PES=2" "--cells 4,4,4 --particles 216 --corner 0 --steps 10 --balance greedy --balance-every 5" 0
              "verified.*balance by greedy.*max/mean (1\\.[2-9]|2\\.)")
