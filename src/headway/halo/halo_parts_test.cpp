// SPDX-License-Identifier: BSD-3-Clause
// Errors of programs with parts, which the checks of random plans and the report of a stall must show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <headway/halo/exchange.hpp>
#include <headway/halo/random_plans_test.hpp>
#include <string>
#include <support/run_pes.hpp>
#include <thread>
#include <vector>

namespace headway {
namespace {

using random_plans::Planted;
using testing::catch_run;
using testing::Outcome;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(HaloParts, a_part_that_is_marked_before_its_elements_are_written_fails_the_check_of_values) {
  for (const std::size_t per_process : {1, 3}) {
    for (std::uint64_t seed = 1; seed != 7; ++seed) {
      const Outcome outcome = catch_run(
          {3, per_process}, [seed](Pe& pe) { random_plans::run(pe, seed, true, Planted::marks_before_writing); });
      EXPECT_NE(outcome.status, 0) << "seed " << seed;
      EXPECT_TRUE(has(outcome.text, "is wrong in exchange 1")) << outcome.text;
    }
  }
}

TEST(HaloParts, a_part_that_no_thread_marks_stalls_the_run) {
  const Outcome outcome = catch_run({3, 1}, [](Pe& pe) { random_plans::run(pe, 3, true, Planted::never_marks); },
                                    {{"HEADWAY_STALL", "1s"}});
  EXPECT_EQ(outcome.status, 122) << outcome.text;
  EXPECT_TRUE(has(outcome.text, " without part 0 of 3, which no thread has marked as ready")) << outcome.text;
}

/// PE 1 sends element 8 to PE 2 and element 0 to PE 0, by other parts. `unmarked` of them are never marked.
Outcome stall_of(const std::vector<std::size_t>& unmarked, bool is_mapped) {
  return catch_run({3, 1},
                   [&](Pe& pe) {
                     const std::size_t left = (pe.id() + 2) % 3, right = (pe.id() + 1) % 3;
                     const auto plan = halo::Plan::receiving(pe, 10, std::vector<halo::Place>{{left, 8}, {right, 0}});
                     halo::Field<double> mapped(pe, 12);
                     std::vector<double> heap(12);
                     halo::Exchange exchange(pe, plan, {is_mapped ? halo::field(mapped) : halo::field(heap)});
                     exchange.divide(4, [](std::uint64_t index) { return std::size_t(index / 3); });
                     exchange.begin_parts();
                     std::vector<std::jthread> threads;
                     for (std::size_t part = 0; part != 4; ++part) {
                       if (pe.id() == 1 && std::ranges::find(unmarked, part) != unmarked.end()) continue;
                       threads.emplace_back([&exchange, part] { exchange.ready(part); });
                     }
                     exchange.end();
                   },
                   {{"HEADWAY_STALL", "1s"}});
}

TEST(HaloParts, the_report_of_a_stall_names_unmarked_parts_and_their_partners) {
  Outcome outcome;
  for (const bool is_mapped : {false, true}) {
    outcome = stall_of({2}, is_mapped);
    EXPECT_EQ(outcome.status, 122) << outcome.text;
    EXPECT_TRUE(
        has(outcome.text,
            "1 message of halo exchange number 0 without part 2 of 4, which no thread has marked as ready, in an "
            "open buffer: 1 for PE 2"))
        << outcome.text;
    EXPECT_TRUE(has(outcome.text, "waits in a blocking collective for PE 1")) << outcome.text;
  }
  outcome = stall_of({0, 1, 2}, true);  // part 1 has no element of a partner
  EXPECT_EQ(outcome.status, 122) << outcome.text;
  EXPECT_TRUE(
      has(outcome.text,
          "2 messages of halo exchange number 0 without parts 0, 2 of 4, which no thread has marked as ready, in "
          "open buffers: 1 for PE 0, 1 for PE 2"))
      << outcome.text;
}

}  // namespace
}  // namespace headway
