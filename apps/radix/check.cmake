# SPDX-License-Identifier: BSD-3-Clause
# cmake -D program=FILE -P check.cmake
# headway-radix refuses what cannot be, sends as many messages as the study, and finds what is wrong.
include(${CMAKE_CURRENT_LIST_DIR}/../support/expect.cmake)

expect_status("" "--digit-bits 3" 2 "--digit-bits: '3' is not allowed; allowed is a whole number from 4 to 16")
expect_status("" "--keys 0" 2 "--keys: '0' is not allowed; allowed is a whole number from 1 to 2147483648")
expect_status("" "--distinct 0" 2 "--distinct: '0' is not allowed")
expect_status("" "--way put" 2 "--way: 'put' is not allowed; .*store, bulk")
expect_status("" "--spoil 1 --spoil-what index" 2 "--spoil-what: 'index' is allowed only with --pairs")
expect_status("" "--scale 17" 2 "--scale: '17' is not allowed")

# The study's count: each PE but the last sends two messages for each bucket and pass; here 2 passes of 65,536 buckets.
# Equal keys are in their places, so no key is sent.
foreach(mode IN ITEMS direct 1d)
  expect_status("HEADWAY_PES=2" "--keys 1000 --distinct 1 --mode ${mode} --json -" 0
    "\"messages\": 393216,.*\"key_messages\": 0,.*\"scan_messages\": 393216,.*\"messages_max\": 262144,")
  # 4 passes of 256 buckets on 3 PEs. The program compares how many keys each PE sends with a sort of one processor.
  expect_status("HEADWAY_PES=3" "--keys 30000 --digit-bits 8 --mode ${mode} --json -" 0
    "\"key_messages\": (79|80)[0-9][0-9][0-9],.*\"scan_messages\": 5120,.*\"errors\": 0,")
endforeach()
# Three messages from each PE to each other in each pass.
expect_status("HEADWAY_PES=4" "--keys 30000 --way bulk --json -" 0 "\"messages\": 72,.*\"scan_messages\": 48,")
expect_status("HEADWAY_PES=1" "--keys 30000 --json -" 0 "\"messages\": 0,")

foreach(way IN ITEMS store bulk)
  expect_status("HEADWAY_PES=3" "--keys 5000 --way ${way} --spoil 1" 1
    "headway-radix: wrong: 3 keys are less than the key before")
  expect_status("HEADWAY_PES=3" "--keys 5000 --way ${way} --spoil 1 --spoil-what key" 1
    "headway-radix: wrong: the sorted keys are not those of the input")
  expect_status("HEADWAY_PES=3" "--keys 5000 --way ${way} --pairs --distinct 99 --spoil 1 --spoil-what index" 1
    "headway-radix: wrong: 3 equal keys have changed their order")
endforeach()
