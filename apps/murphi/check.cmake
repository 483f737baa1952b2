# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P check.cmake
# headway-murphi finds the published numbers of states, shortest counterexamples and spoilt states, and refuses what
# cannot be.
include(${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake)

expect_status("" "--model petersen" 2 "--model: 'petersen' is not allowed; .*did you mean 'peterson'")
expect_status("" "--n 9" 2 "--n: '9' is not allowed; allowed is 2 to 6 processes for --model peterson")
expect_status("" "--model german --n 1" 2 "--n: '1' is not allowed; allowed is 2 to 4 nodes for --model german")
expect_status("" "--memory 4K" 2 "--memory: '4K' is not allowed; allowed is 1M or more")
expect_status("" "--states-max 0" 2 "--states-max: '0' is not allowed")
expect_status("" "--spoil 1 --no-check" 2 "--spoil: not allowed with --no-check")
expect_status("HEADWAY_PES=2" "--n 4 --states-max 9000" 121 "--states-max: 9000 states are not enough for this PE")
expect_status("HEADWAY_PES=2" "--n 5 --memory 2M" 121 "--memory: 2 MiB are not enough for the states of this PE")
expect_status("HEADWAY_PES=3" "--n 4 --spoil 1" 1 "WRONG")
expect_status("HEADWAY_PES=3" "--n 4 --spoil 1 --search levels" 1 "WRONG")

# expect_counts("arguments" STATES RULES): by levels and freely.
function(expect_counts arguments states rules)
  foreach(search levels free)
    expect_status("HEADWAY_PES=2" "${arguments} --search ${search} --json -" 0
                  "\"states\": ${states},.*\"rules\": ${rules},.*\"errors\": 0,")
  endforeach()
endfunction()
expect_counts("--model peterson --n 2" 47 94)
expect_counts("--model peterson --n 3" 882 2646)
expect_counts("--model peterson --n 4" 22281 89124)
expect_counts("--model peterson --n 5" 628868 3144340)
expect_counts("--model german --n 2" 3381 9888)
expect_counts("--model german --n 3" 58077 235764)
expect_counts("--model german --n 4" 1105353 5921856)
expect_counts("--model mcs --n 4" 554221 2216884)

# Shortest counterexamples, and any.
expect_status("HEADWAY_PES=2" "--bug --model mcs --n 3" 0 "two processes are in the critical.* verified")
expect_status("HEADWAY_PES=2" "--bug --model mcs-swap" 0 "two processes are in the critical.* verified")
expect_status("HEADWAY_PES=2" "--bug --model directory" 0 "\n  8 cluster .*\n    a cache has .* verified")
foreach(pes 1 3)
  expect_status("HEADWAY_PES=${pes}" "--bug --n 2" 0 "  8 process [01] .*two processes are in the critical.*verified")
  expect_status("HEADWAY_PES=${pes}" "--bug --model german --n 3" 0 "\n  8 node .*\n    a cache .* verified")
  expect_status("HEADWAY_PES=${pes}" "--bug --n 3 --search free" 0 "process.*two processes are in the .* verified")
endforeach()
