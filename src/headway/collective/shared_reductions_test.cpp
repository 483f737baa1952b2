// SPDX-License-Identifier: BSD-3-Clause
/// Calls of all PEs in shared memory: no member waits for one that computes, any number may be in flight, and results
/// are right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/epoch.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/random.hpp>
#include <headway/collective/gather.hpp>
#include <headway/collective/scan.hpp>
#include <optional>
#include <string>
#include <support/run_pes.hpp>
#include <thread>
#include <vector>

namespace headway {
namespace {

using collective::Collectives;
using testing::catch_run;
using testing::expect_run;
using testing::Outcome;
using testing::Settings;
using testing::Shape;
using testing::Shared;

const Settings shared{{"HEADWAY_COLLECTIVES", "shared"}};
// Half as many under ThreadSanitizer, which takes some six times as long over each; both ways to end are in either.
#if defined(__SANITIZE_THREAD__)
constexpr std::size_t repetitions = 1;
#else
constexpr std::size_t repetitions = 2;
#endif
constexpr Shape local_shapes[] = {{2, 1}, {3, 3}, {4, 1}, {5, 2}, {8, 4}, {8, 1}, {13, 13}};

/// Without looking at the library, for 30 s at most.
template <class Done>
bool spin_until(Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return done();
}

TEST(SharedReductions, a_pe_that_computes_delays_nobody_wherever_it_is) {
  for (const Shape shape : {Shape{4, 1}, Shape{8, 4}, Shape{8, 1}, Shape{8, 8}}) {
    for (std::size_t busy = 1; busy < shape.pes;
         busy += busy == 1 ? 3 : 2) {  // in trees from 0 also members with children
      for (const bool comes_last : {false, true}) {
        Shared<std::atomic<std::size_t>> come, ready;
        expect_run(
            shape,
            [&](Pe& pe) {
              const std::size_t n = pe.size(), id = pe.id();
              static_cast<void>(allreduce_async(pe, 1, std::plus<>()).get());  // all are there
              if (id == busy && comes_last) {
                ASSERT_TRUE(spin_until([&] { return come->load() == n - 1; }));
              }
              // In a row: messages of later calls must not wait for what follows.
              Future<std::optional<int>> sum = reduce_async(pe, int(id), std::plus<>(), 0);
              Future<int> most = allreduce_async(pe, int(id), [](int a, int b) { return std::max(a, b); });
              Future<> all_came = barrier_async(pe);
              come->fetch_add(1);
              if (id == busy) {
                EXPECT_TRUE(sum.ready()) << "it has given its part";
                EXPECT_TRUE(spin_until([&] { return ready->load() == n - 1; })) << "PE " << busy << " of " << n;
              }
              EXPECT_EQ(sum.get(), id == 0 ? std::optional(int(n * (n - 1) / 2)) : std::nullopt);
              EXPECT_EQ(most.get(), int(n - 1));
              all_came.get();
              ready->fetch_add(1);
            },
            shared);
      }
    }
  }
}

TEST(SharedReductions, the_settings_say_whether_there_are_any) {
  expect_run(
      {2, 1}, [](Pe& pe) { EXPECT_TRUE(Collectives::of(pe).shares()); }, shared);
  expect_run({2, 1}, [](Pe& pe) { EXPECT_FALSE(Collectives::of(pe).shares()); }, {{"HEADWAY_COLLECTIVES", "messages"}});
  expect_run(
      {1, 1}, [](Pe& pe) { EXPECT_FALSE(Collectives::of(pe).shares()); }, shared);
  const Outcome outcome = catch_run({2, 1}, [](Pe&) {}, {{"HEADWAY_COLLECTIVES", "tree"}});
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.text.find("auto, messages or shared"), std::string::npos) << outcome.text;
}

double wild(std::size_t pe, std::size_t i) {
  const std::uint64_t v = Random(pe * 10'007 + i).next();
  return double(std::int64_t(v)) * std::exp2(double(v % 60));
}

// 96 and 8192 bytes are the most that lie in a slot, and in a cell at all.
constexpr std::size_t lengths[] = {0, 1, 12, 13, 100, 1024, 1025};
constexpr std::size_t sums_per_run = 3 * (0 + 1 + 12 + 13 + 100 + 1024 + 1025);

TEST(SharedReductions, sums_in_order_are_to_the_bit_those_of_the_way_by_messages) {
  for (const Shape shape : local_shapes) {
    Shared<std::array<double, sums_per_run>> sums(2);
    for (const char* way : {"messages", "shared"}) {
      double* to = (way[0] == 'm' ? sums[0] : sums[1]).data();
      expect_run(shape,
                 [&](Pe& pe) {
                   double* at = to;
                   for (const std::size_t root : {std::size_t(0), pe.size() / 2, pe.size() - 1}) {
                     std::vector<Future<std::vector<double>>> futures;
                     for (const std::size_t length : lengths) {
                       std::vector<double> mine(length);
                       for (std::size_t i = 0; i < length; ++i) mine[i] = wild(pe.id(), i);
                       futures.push_back(reduce_async(pe, std::span(mine), std::plus<>(), root, {.ordered = true}));
                       std::vector<double> all = mine;
                       allreduce_in_place(pe, std::span(all), std::plus<>(), {.ordered = true});
                       const std::vector<double> own = futures.back().get();
                       EXPECT_EQ(own.size(), pe.id() == root ? length : 0);
                       if (pe.id() == root) {
                         EXPECT_EQ(own, all);
                         std::ranges::copy(own, at);
                       }
                       at += length;
                     }
                   }
                 },
                 {{"HEADWAY_COLLECTIVES", way}});
    }
    EXPECT_EQ(sums[0], sums[1]) << shape.pes << " PEs";
    EXPECT_NE(sums[0][sums_per_run - 1], 0);
  }
}

/// Calls that go by cells among others, all under way at once.
struct Mixed {
  std::vector<Future<std::uint64_t>> sums;
  std::vector<Future<std::vector<std::uint64_t>>> vectors;
  std::vector<Future<std::optional<std::uint64_t>>> at_root;

  void call(Pe& pe, std::size_t i) {
    const std::uint64_t mine = pe.id() + i;
    switch (i % 5) {
      case 0: sums.push_back(allreduce_async(pe, mine, std::plus<>())); break;
      case 1: at_root.push_back(reduce_async(pe, mine, std::plus<>(), i % pe.size())); break;
      case 2: {
        const std::vector<std::uint64_t> values(i % 3 == 0 ? 2000 : i % 40, mine);
        vectors.push_back(allreduce_async(pe, std::span(values), std::plus<>()));
        break;
      }
      case 3: static_cast<void>(reduce_async(pe, mine, std::plus<>(), 0)); break;  // dropped
      case 4:
        sums.push_back(i % 2 == 0 ? scan_async(pe, mine, std::plus<>()) : broadcast_async(pe, mine, i % pe.size()));
        break;
    }
  }
  bool all_ready() const {
    const auto ready = [](const auto& future) { return future.ready(); };
    return std::ranges::all_of(sums, ready) && std::ranges::all_of(vectors, ready) &&
           std::ranges::all_of(at_root, ready);
  }
  void check(Pe& pe, std::size_t many) {
    const std::uint64_t n = pe.size();
    const auto sum = [&](std::size_t i) { return n * (n - 1) / 2 + n * i; };
    std::size_t next_sum = 0, next_vector = 0, next_at_root = 0;
    for (std::size_t i = 0; i < many; ++i) {
      switch (i % 5) {
        case 0: ASSERT_EQ(sums[next_sum++].get(), sum(i)); break;
        case 1: {
          const bool is_root = i % n == pe.id();
          ASSERT_EQ(at_root[next_at_root++].get(), is_root ? std::optional(sum(i)) : std::nullopt);
          break;
        }
        case 2:
          for (const std::uint64_t value : vectors[next_vector++].get()) ASSERT_EQ(value, sum(i));
          break;
        case 3: break;
        case 4: {
          const std::uint64_t up_to_own = pe.id() * (pe.id() + 1) / 2 + (pe.id() + 1) * i;
          ASSERT_EQ(sums[next_sum++].get(), i % 2 == 0 ? up_to_own : i % n + i);
          break;
        }
      }
    }
  }
};

void sleep_us(std::uint64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

TEST(SharedReductions, any_number_are_under_way_whoever_is_late) {
  constexpr std::size_t many = 700;
  for (const Shape shape : local_shapes) {
    for (std::uint64_t seed = 1; seed <= 2 * repetitions; ++seed) {
      expect_run(
          shape,
          [&](Pe& pe) {
            Random random(seed * 100 + pe.id());
            Mixed calls;
            for (std::size_t i = 0; i < many; ++i) {
              if (random.between(0, 99) == 0) sleep_us(random.between(1, 500));
              if (random.between(0, 19) == 0) pe.progress();
              calls.call(pe, i);
            }
            if (seed % 2 == 0) {
              pe.quiesce();
              EXPECT_TRUE(calls.all_ready());
              EXPECT_EQ(Collectives::of(pe).size(), 0u) << "dropped ones count as well";
            }
            calls.check(pe, many);
            pe.quiesce();
            EXPECT_EQ(Collectives::of(pe).size(), 0u);
          },
          shared);
    }
  }
}

TEST(SharedReductions, an_epoch_waits_for_those_called_in_it_that_wait_for_cells) {
  constexpr std::size_t many = 4 * collective::cells_count;
  for (const Shape shape : local_shapes) {
    expect_run(
        shape,
        [&](Pe& pe) {
          for (std::size_t round = 0; round < 2 * repetitions; ++round) {
            Epoch outer(pe);
            Mixed first, second;
            for (std::size_t i = 0; i < many; ++i) {
              if (i == many / 2 && pe.id() == round % pe.size()) sleep_us(2000);
              first.call(pe, i);
            }
            {
              Epoch inner(pe);
              for (std::size_t i = 0; i < many; ++i) second.call(pe, i);
              inner.wait();
              ASSERT_TRUE(second.all_ready());
            }
            outer.wait();
            ASSERT_TRUE(first.all_ready());
            ASSERT_EQ(Collectives::of(pe).size(), 0u);
            first.check(pe, many);
            second.check(pe, many);
          }
        },
        shared);
  }
}

TEST(SharedReductions, quiescence_and_epochs_wait_for_none_that_a_member_calls_later) {
  constexpr std::size_t many = 3 * collective::cells_count, rounds = 6 * repetitions;
  for (const Shape shape : local_shapes) {
    expect_run(
        shape,
        [&](Pe& pe) {
          const auto comes_late = [](std::size_t id, std::size_t round) { return (id * 7 + round) % 3 == 0; };
          for (std::size_t round = 0; round < rounds; ++round) {
            std::vector<Future<int>> sums;
            const auto call = [&] {
              for (std::size_t i = 0; i < many; ++i) sums.push_back(allreduce_async(pe, int(i), std::plus<>()));
            };
            const bool is_late = comes_late(pe.id(), round);
            bool any_is_late = false;
            for (std::size_t id = 0; id < pe.size(); ++id) any_is_late |= comes_late(id, round);
            std::size_t handled = 0;
            Aggregator<int> words(pe);
            words.on([&](int) { ++handled; });
            {
              Epoch epoch(pe);
              if (!is_late) call();
              words.send((pe.id() + 1) % pe.size(), 1);
              epoch.wait();
            }
            ASSERT_EQ(handled, 1u);
            if (round % 2 == 0) pe.quiesce();
            if (round % 2 == 0 || !any_is_late) {
              for (const Future<int>& sum : sums) ASSERT_EQ(sum.ready(), !any_is_late);
            }
            if (is_late) call();
            pe.quiesce();
            for (std::size_t i = 0; i < many; ++i) {
              ASSERT_TRUE(sums[i].ready());
              ASSERT_EQ(sums[i].get(), int(i * pe.size()));
            }
          }
        },
        shared);
  }
}

TEST(SharedReductions, handlers_may_call_more_than_there_are_cells) {
  constexpr std::uint32_t many = 3 * collective::cells_count;
  for (const Shape shape : local_shapes) {
    expect_run(
        shape,
        [&](Pe& pe) {
          std::uint64_t done = 0;
          Aggregator<std::uint32_t> words(pe);
          words.on([&](std::uint32_t left) {
            for (std::uint32_t i = 0; i < left; ++i) {
              allreduce_async(pe, std::uint64_t(1), std::plus<>()).then([&](std::uint64_t sum) {
                EXPECT_EQ(sum, pe.size());
                // Called where an earlier one completes.
                if (++done == many) static_cast<void>(barrier_async(pe).then([&] { ++done; }));
              });
            }
          });
          words.send(pe.id(), many);
          pe.quiesce();
          EXPECT_EQ(done, many + 1u);
        },
        shared);
  }
}

void expect_named(const Outcome& outcome, std::initializer_list<std::string> parts) {
  EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
  for (const std::string& part : parts)
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << " in " << outcome.text;
}

// No message of one meets the other: a caller by a cell and a caller by a tree both wait.
TEST(SharedReductionsMismatch, of_ways_is_found_whoever_comes_first) {
  for (const bool is_late : {false, true}) {
    for (const std::size_t different : {0, 2}) {
      const Outcome outcome = catch_run(
          {4, 1},
          [&](Pe& pe) {
            static_cast<void>(allreduce_async(pe, 1, std::plus<>()).get());
            if ((pe.id() == different) == is_late) sleep_us(5000);
            const std::vector<double> values(pe.id() == different ? 1025 : 1024);
            static_cast<void>(allreduce_async(pe, std::span(values), std::plus<>()).get());
          },
          shared);
      expect_named(outcome, {"as collective number 1 of all PEs, PE ", "PE " + std::to_string(different),
                             "allreduce of 1025 double with", "allreduce of 1024 double with"});
    }
  }
}

TEST(SharedReductionsMismatch, of_two_is_found_by_who_looks_later) {
  Shared<std::atomic<int>> called;
  const Outcome outcome = catch_run(
      {2, 1},
      [&](Pe& pe) {
        static_cast<void>(allreduce_async(pe, 1, std::plus<>()).get());
        if (pe.id() == 0) {
          ASSERT_TRUE(spin_until([&] { return called->load() == 1; }));
          static_cast<void>(gather(pe, 1, 0));
        } else {
          Future<int> sum = allreduce_async(pe, 1, std::plus<>());
          called->store(1);
          static_cast<void>(sum.get());
        }
      },
      shared);
  expect_named(outcome,
               {"as collective number 1 of all PEs, PE 0 has called gather of 1 int", "PE 1 allreduce of 1 int"});
}

TEST(SharedReductionsMismatch, of_those_that_call_another_one_before_is_found) {
  const Outcome outcome = catch_run(
      {3, 1},
      [](Pe& pe) {
        if (pe.id() == 1) static_cast<void>(gather_async(pe, 1, 0));
        static_cast<void>(allreduce_async(pe, 1, std::plus<>()).get());
      },
      shared);
  expect_named(outcome,
               {"as collective number 0 of all PEs, PE ", "allreduce of 1 int", "the same ones in the same order"});
}

TEST(SharedReductionsMismatch, of_roots_is_found_by_who_comes_last) {
  const Outcome outcome = catch_run(
      {5, 1},
      [](Pe& pe) {
        static_cast<void>(allreduce_async(pe, 1, std::plus<>()).get());
        static_cast<void>(reduce(pe, 1, std::plus<>(), pe.id() == 3 ? 1 : 2));
      },
      shared);
  expect_named(outcome, {"as collective number 1 of all PEs, PE ", "reduce of 1 int with std::plus<>, root 1",
                         "reduce of 1 int with std::plus<>, root 2"});
}

TEST(SharedReductionsUnfinished, who_has_not_called_is_named_though_more_are_called_than_there_are_cells) {
  constexpr std::size_t cells = collective::cells_count;
  for (const std::size_t many : {std::size_t(1), cells, cells + 1, std::size_t(500)}) {
    const Outcome outcome = catch_run(
        {4, 1},
        [&](Pe& pe) {
          if (pe.id() == 2) return;
          for (std::size_t i = 0; i < many; ++i) static_cast<void>(reduce_async(pe, 1, std::plus<>(), 0));
        },
        shared);
    EXPECT_EQ(outcome.status, exit_status::undelivered) << outcome.text;
    const auto says = [&](const std::string& part) { return outcome.text.find(part) != std::string::npos; };
    // Chance decides which PE reports first. PE 1 and 3 have finished the calls with a free cell.
    const bool on_0 = says(fmt::format("{} on PE 0 {} at the end of the run", base::counted(many, "collective"),
                                       base::by_number(many, "waits", "wait"))) &&
                      says("for PE 2");
    const bool on_others =
        many > cells && says(base::counted(many - cells, "collective") + " on PE ") && says("for PE 2");
    const bool on_2 =
        says(fmt::format("{} contributions on PE 2 are for collectives that it has not called: "
                         "reduce of 1 int with std::plus<>, root 0, number 0, from PE 0",
                         3 * many));
    EXPECT_TRUE(on_0 || on_others || on_2) << outcome.text;
  }
}

}  // namespace
}  // namespace headway
