# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P check.cmake
# headway-bfs refuses what cannot be, in one line, and starts from as many vertices as lead to others, each once.
include(${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake)

expect_status("" "--scale 31" 2 "--scale: '31' is not allowed; allowed is a whole number from 1 to 30")
expect_status("" "--edge-factor 0" 2 "--edge-factor: '0' is not allowed; allowed is a whole number from 1 to 1024")
expect_status("" "--roots 0" 2 "--roots: '0' is not allowed; allowed is a whole number from 1 to 1024")
expect_status("" "--parts two" 2 "--parts: 'two' is not allowed")
expect_status("" "--spoil -1" 2 "--spoil: '-1' is not allowed")
expect_status("" "--balance rotat" 2 "--balance: 'rotat' is not allowed; .*did you mean 'rotate'")
expect_status("HEADWAY_PES=1" "--scale 4 --parts 3" 121
              "--parts: '3' is not allowed; allowed is a power of two up to the vertices, 16")
expect_status("HEADWAY_PES=1" "--scale 4 --parts 32" 121
              "--parts: '32' is not allowed; allowed is a power of two up to the vertices, 16")

# Two vertices and two edges. Of some seeds' graphs both join a vertex to itself.
expect_status("HEADWAY_PES=2 HEADWAY_SEED=1" "--scale 1 --edge-factor 1 --roots 9 --every-edge" 0
  " 8 messages .* verified")
expect_status("HEADWAY_PES=1 HEADWAY_SEED=3" "--scale 1 --edge-factor 1" 121
              "--scale: '1' is not allowed with --edge-factor 1 and HEADWAY_SEED=3: no vertex has an edge to another")
