// SPDX-License-Identifier: BSD-3-Clause
/// Asynchronous collectives over shapes of PEs, compared with a serial program.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/epoch.hpp>
#include <headway/am/task.hpp>
#include <headway/am/wait.hpp>
#include <headway/base/bytes.hpp>
#include <headway/collective/exchange.hpp>
#include <headway/collective/gather.hpp>
#include <headway/collective/scan.hpp>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <thread>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::shapes;
using testing::Shared;

TEST(Reduce, gives_the_root_what_a_serial_program_does) {
  for (std::size_t pes = 1; pes <= 33; pes += pes < 9 ? 1 : 6) {
    expect_run({pes, pes > 8 ? std::size_t(11) : std::size_t(1)}, [](Pe& pe) {
      const std::size_t n = pe.size();
      for (std::size_t root = 0; root < n; root += 1 + n / 4) {
        std::vector<std::int64_t> mine(root * 3);
        std::iota(mine.begin(), mine.end(), std::int64_t(pe.id() * 100));
        Future<std::vector<std::int64_t>> sums = reduce_async(pe, std::span(mine), std::plus<>(), root);
        std::ranges::fill(mine, -1);  // consumed
        const std::vector<std::int64_t> got = sums.get();
        ASSERT_EQ(got.size(), pe.id() == root ? mine.size() : 0);
        for (std::size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i], std::int64_t(n * i + 100 * (n * (n - 1) / 2)));
        }
        const std::optional<double> most =
            reduce_async(
                pe, double(pe.id()), [](double a, double b) { return std::max(a, b); }, root)
                .get();
        ASSERT_EQ(most, pe.id() == root ? std::optional(double(n - 1)) : std::nullopt);
      }
    });
  }
}

template <class T>
T value_of(std::size_t pe, std::size_t i) {
  return T((pe * 7 + i * 3) % 5 + 1);
}

template <class T, class Op>
void check_operator(Pe& pe, Op op) {
  std::vector<T> mine(17), expected(17);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    mine[i] = value_of<T>(pe.id(), i);
    expected[i] = value_of<T>(0, i);
    for (std::size_t p = 1; p < pe.size(); ++p) expected[i] = T(op(expected[i], value_of<T>(p, i)));
  }
  Future<std::vector<T>> in_any_order = allreduce_async(pe, std::span(mine), op);
  Future<std::vector<T>> in_order = allreduce_async(pe, std::span(mine), op, {.ordered = true});
  Future<T> first = allreduce_async(pe, mine[0], op);
  Future<> in_place = allreduce_in_place_async(pe, std::span(mine), op);
  EXPECT_EQ(in_any_order.get(), expected);
  EXPECT_EQ(in_order.get(), expected);
  EXPECT_EQ(first.get(), expected[0]);
  in_place.get();
  EXPECT_EQ(mine, expected);
}

template <class T>
void check_type(Pe& pe) {
  check_operator<T>(pe, std::plus<>());
  check_operator<T>(pe, std::multiplies<T>());
  check_operator<T>(pe, [](T a, T b) { return std::min(a, b); });
  check_operator<T>(pe, [](const T& a, const T& b) { return std::max(a, b); });
  check_operator<T>(pe, std::logical_and<>());
  check_operator<T>(pe, std::logical_or<>());
  if constexpr (std::is_integral_v<T>) {
    check_operator<T>(pe, std::bit_and<>());
    check_operator<T>(pe, std::bit_or<>());
    check_operator<T>(pe, std::bit_xor<>());
  }
}

TEST(Reduce, takes_every_operator_and_type) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      check_type<std::int8_t>(pe);
      check_type<std::uint16_t>(pe);
      check_type<int>(pe);
      check_type<std::uint64_t>(pe);
      check_type<float>(pe);
      check_type<double>(pe);
    });
  }
}

struct Extremes {
  double least, most;
  std::uint32_t where;
};
/// No closure: it has a value.
struct PlusModulo {
  std::uint64_t modulus;
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return (a + b) % modulus; }
};
int take_larger(int a, int b) { return std::max(a, b); }

TEST(Reduce, takes_what_a_program_makes_its_operators_and_types) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      const std::size_t n = pe.size();
      const auto wider = [](const Extremes& a, const Extremes& b) {
        return Extremes{std::min(a.least, b.least), std::max(a.most, b.most), a.most < b.most ? b.where : a.where};
      };
      const Extremes all =
          allreduce_async(pe, Extremes{-double(pe.id()), double(pe.id()), std::uint32_t(pe.id())}, wider).get();
      EXPECT_EQ(all.least, -double(n - 1));
      EXPECT_EQ(all.where, n - 1);
      EXPECT_EQ(allreduce_async(pe, std::uint64_t(5), PlusModulo{7}).get(), 5 * n % 7);
      EXPECT_EQ(allreduce_async(pe, int(pe.id()), take_larger).get(), int(n - 1));
      EXPECT_TRUE(allreduce_async(pe, true, std::logical_and<>()).get());

      using Counts = std::map<std::string, std::vector<int>>;
      const Counts mine{{"all", {1}}, {pe.id() % 2 == 0 ? "even" : "odd", {int(pe.id())}}};
      const auto merge = [](const Counts& a, const Counts& b) {
        Counts sum = a;
        for (const auto& [key, values] : b) {
          if (key == "all" && sum.contains(key))
            sum[key][0] += values[0];
          else
            sum[key].insert(sum[key].end(), values.begin(), values.end());
        }
        return sum;
      };
      const Counts counts = allreduce_async(pe, mine, merge, {.ordered = true}).get();
      EXPECT_EQ(counts.at("all"), std::vector<int>{int(n)});
      EXPECT_EQ(counts.at("even").size(), (n + 1) / 2);
      EXPECT_TRUE(std::ranges::is_sorted(counts.at("even")));
    });
  }
}

constexpr std::size_t million = 1'000'000;

TEST(Reduce, a_million_elements_and_none_go_in_little_memory) {
  for (const Shape shape : {Shape{1, 1}, Shape{2, 1}, Shape{5, 2}, Shape{8, 4}}) {
    expect_run(shape,
               [](Pe& pe) {
                 const std::size_t n = pe.size(), id = pe.id();
                 const auto expected = [n](std::size_t i) { return double(n * i + n * (n - 1) / 2); };
                 std::vector<double> mine(million);
                 for (std::size_t i = 0; i < million; ++i) mine[i] = double(i + id);
                 Future<std::vector<double>> to_last =
                     reduce_async(pe, std::span(mine), std::plus<>(), n - 1, {.ordered = true});
                 Future<std::vector<double>> before = scan_async(pe, std::span(mine).first(million / 4), std::plus<>());
                 const auto nothing = std::span<const double>();
                 EXPECT_TRUE(allreduce_async(pe, nothing, std::plus<>()).get().empty());
                 EXPECT_TRUE(scan(pe, nothing, std::plus<>()).empty());
                 EXPECT_TRUE(all_to_all(pe, nothing).empty());
                 EXPECT_EQ(gather(pe, nothing, 0).size(), id == 0 ? n : 0);
                 // A late member: the memory of the messages of the others is bounded.
                 if (id == n / 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
                 allreduce_in_place(pe, std::span(mine), std::plus<>());
                 const std::vector<double> sums = to_last.get();
                 ASSERT_EQ(sums.size(), id == n - 1 ? million : 0);
                 const std::vector<double> prefixes = before.get();
                 for (std::size_t i = 0; i < million; i += 17) {
                   ASSERT_EQ(mine[i], expected(i));
                   if (id == n - 1) {
                     ASSERT_EQ(sums[i], expected(i));
                   }
                   if (i < prefixes.size()) {
                     ASSERT_EQ(prefixes[i], double((id + 1) * i + id * (id + 1) / 2));
                   }
                 }
                 if (id != 0) std::ranges::fill(mine, 0);
                 const std::vector<double> copies = broadcast(pe, std::span(mine), 0);
                 ASSERT_EQ(copies.size(), million);
                 ASSERT_EQ(copies[million - 1], expected(million - 1));
                 const std::vector<std::vector<double>> blocks = gather(pe, std::span(copies).first(id * 100'000), 0);
                 for (std::size_t r = 0; r < blocks.size(); ++r) ASSERT_EQ(blocks[r].size(), r * 100'000);
                 const std::vector<double> exchanged = all_to_all(pe, std::span(copies).first(n * 50'000));
                 ASSERT_EQ(exchanged[0], copies[id * 50'000]);
                 ASSERT_EQ(exchanged.back(), copies[id * 50'000 + 49'999]);
               },
               {{"HEADWAY_BUDGET", "1M"}, {"HEADWAY_SPILL", "8M"}});
  }
}

TEST(Reduce, who_has_given_its_part_goes_on_before_others_have_come) {
  for (const Shape shape : {Shape{2, 1}, Shape{7, 1}, Shape{8, 4}}) {
    expect_run(shape, [](Pe& pe) {
      Aggregator<int> words(pe);
      std::size_t left = 0;
      words.on([&](int) { ++left; });
      const bool is_leaf = pe.id() % 2 == 1;
      if (pe.id() == 0) {
        // It comes only after the leaves have told that they are through.
        wait_until(pe, [&] { return left == pe.size() / 2; });
        EXPECT_EQ(reduce(pe, 1, std::plus<>(), 0), int(pe.size()));
      } else {
        Future<std::optional<int>> mine = reduce_async(pe, 1, std::plus<>(), 0);
        if (is_leaf) {
          EXPECT_TRUE(mine.ready());
          words.send(0, 1);
        }
        EXPECT_EQ(mine.get(), std::nullopt);
      }
      pe.quiesce();
    });
  }
}

TEST(Reduce, what_a_pe_has_given_leaves_though_it_looks_no_more) {
  Shared<std::atomic<int>> sum;
  expect_run({2, 1}, [&](Pe& pe) {
    static_cast<void>(allreduce_async(pe, 1, std::plus<>()).get());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // what follows is no burst
    Future<std::optional<int>> own = reduce_async(pe, 20 + int(pe.id()), std::plus<>(), 0);
    if (pe.id() == 0) {
      sum->store(*own.get());
    } else {
      for (int i = 0; i < 20'000 && sum->load() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(sum->load(), 41);
    }
  });
}

TEST(Reduce, any_number_may_be_under_way) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      constexpr std::size_t many = 300;
      const std::size_t n = pe.size();
      std::vector<Future<std::uint64_t>> sums;
      std::vector<Future<std::optional<std::string>>> texts;
      std::size_t called_back = 0;
      for (std::size_t i = 0; i < many; ++i) {
        if ((i + pe.id()) % 37 == 0) pe.progress();
        sums.push_back(allreduce_async(pe, std::uint64_t(i * pe.id()), std::plus<>()));
        const std::string text(i % 7, char('a' + pe.id()));
        texts.push_back(reduce_async(
            pe, text, [](const std::string& a, const std::string& b) { return a.size() < b.size() ? b : a; }, i % n));
        allreduce_async(pe, std::uint64_t(i), std::plus<>()).then([&called_back, i, n](std::uint64_t sum) {
          EXPECT_EQ(sum, i * n);
          ++called_back;
        });
        static_cast<void>(allreduce_async(pe, 1, std::plus<>()));  // dropped
      }
      for (std::size_t i = many; i-- > 0;) {
        EXPECT_EQ(sums[i].get(), i * (n * (n - 1) / 2));
        const std::optional<std::string> text = texts[i].get();
        EXPECT_EQ(text.has_value(), i % n == pe.id());
        EXPECT_EQ(text.value_or(std::string(i % 7, ' ')).size(), i % 7);
      }
      pe.quiesce();  // all have called all: they are done now
      EXPECT_EQ(called_back, many);
      EXPECT_EQ(collective::Collectives::of(pe).size(), 0u);
    });
  }
}

TEST(Reduce, may_be_called_in_handlers_and_coroutines) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      const std::size_t n = pe.size();
      Aggregator<std::uint32_t> words(pe);
      std::uint64_t from_handlers = 0;
      // A chain of handlers, each of which calls a collective and informs the next PE.
      words.on([&](std::uint32_t next) {
        allreduce_async(pe, std::uint64_t(pe.id()), std::plus<>()).then([&](std::uint64_t sum) {
          from_handlers = sum;
        });
        if (next < n) words.send(next, next + 1);
      });
      if (pe.id() == 0) words.send(0, 1);
      pe.quiesce();
      EXPECT_EQ(from_handlers, n * (n - 1) / 2);

      const auto power = [](Pe& here) -> Task<std::uint64_t> {
        std::uint64_t value = 1;
        for (int i = 0; i < 5; ++i) {
          value = co_await allreduce_async(here, value, std::plus<>());
          co_await barrier_async(here);
          const std::optional<std::uint64_t> at_root = co_await reduce_async(here, value, std::plus<>(), 0);
          value = co_await broadcast_async(here, at_root.value_or(0) / here.size(), 0);
        }
        co_return value;
      };
      EXPECT_EQ(run_task(pe, power(pe)), n * n * n * n * n);
    });
  }
}

TEST(Reduce, an_epoch_waits_for_what_was_called_in_it) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (int round = 0; round < 5; ++round) {
        Epoch epoch(pe);
        Future<int> sum = allreduce_async(pe, 1, std::plus<>());
        Future<std::vector<int>> all = gather_async(pe, int(pe.id()), 0);
        epoch.wait();
        ASSERT_TRUE(sum.ready());
        ASSERT_TRUE(all.ready());
        EXPECT_EQ(sum.get(), int(pe.size()));
      }
    });
  }
}

TEST(BarrierAsync, is_ready_when_all_have_come) {
  for (const Shape shape : shapes) {
    Shared<std::atomic<std::uint64_t>> come;
    expect_run(shape, [&](Pe& pe) {
      for (std::uint64_t round = 1; round <= 30; ++round) {
        come->fetch_add(1);
        barrier_async(pe).get();
        EXPECT_GE(come->load(), round * pe.size());
      }
    });
  }
}

TEST(Scan, combines_in_the_order_of_ranks) {
  for (std::size_t pes = 1; pes <= 33; pes += pes < 9 ? 1 : 8) {
    expect_run({pes, pes > 8 ? std::size_t(11) : std::size_t(1)}, [](Pe& pe) {
      const auto join = [](const std::string& a, const std::string& b) { return a + b; };
      const std::string letter(1, char('A' + pe.id()));
      std::string before;
      for (std::size_t p = 0; p < pe.id(); ++p) before += char('A' + p);
      EXPECT_EQ(scan(pe, letter, join), before + letter);
      EXPECT_EQ(exclusive_scan(pe, letter, "> ", join), "> " + before);
      const std::vector<std::size_t> reversed = [&] {
        std::vector<std::size_t> list(pe.size());
        for (std::size_t i = 0; i < list.size(); ++i) list[i] = pe.size() - 1 - i;
        return list;
      }();
      const Team backwards(pe, reversed);
      EXPECT_EQ(scan(backwards, 1, std::plus<>()), int(pe.size() - pe.id()));
    });
  }
}

TEST(AllToAll, gives_each_its_block_of_each) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      const std::size_t n = pe.size();
      for (const std::size_t block : {0, 1, 5, 100}) {
        std::vector<std::uint32_t> mine(n * block);
        for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::uint32_t(pe.id() * 1'000'000 + i);
        const std::vector<std::uint32_t> got = all_to_all(pe, std::span(mine));
        ASSERT_EQ(got.size(), mine.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i], i / block * 1'000'000 + pe.id() * block + i % block);
        }
      }
      if (n > 1) {
        const std::vector<int> uneven(n + 1);
        testing::expect_usage_error([&] { static_cast<void>(all_to_all_async(pe, std::span(uneven))); },
                                    "of equal length");
      }
    });
  }
}

TEST(Team, those_that_overlap_do_not_mix) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      const std::size_t n = pe.size(), id = pe.id();
      std::vector<std::size_t> all_backwards, third, same_parity;
      for (std::size_t p = n; p-- > 0;) all_backwards.push_back(p);
      for (std::size_t p = id % 3; p < n; p += 3) third.push_back(p);
      for (std::size_t p = id % 2; p < n; p += 2) same_parity.push_back(p);
      const Team backwards(pe, all_backwards), by_three(pe, third), by_two(pe, same_parity), again(pe, same_parity);
      EXPECT_EQ(backwards.rank(), n - 1 - id);
      EXPECT_EQ(backwards.size(), n);
      EXPECT_EQ(backwards.pe(0).value, n - 1);
      EXPECT_EQ(by_two.pe(by_two.rank()), pe.id());
      std::vector<Future<std::uint64_t>> sums;
      std::vector<std::uint64_t> expected;
      const auto sum_of = [](const std::vector<std::size_t>& pes, std::uint64_t i) {
        return std::accumulate(pes.begin(), pes.end(), std::uint64_t(0)) + i * pes.size();
      };
      for (std::uint64_t i = 0; i < 50; ++i) {
        // Those of different teams may be called in different orders.
        const auto on = [&](const Team& team, const std::vector<std::size_t>& pes) {
          sums.push_back(allreduce_async(team, id + i, std::plus<>()));
          expected.push_back(sum_of(pes, i));
        };
        if ((id + i) % 2 == 0) on(by_three, third);
        on(by_two, same_parity);
        if ((id + i) % 3 == 0) on(again, same_parity);
        on(backwards, all_backwards);
        if ((id + i) % 3 != 0) on(again, same_parity);
        if ((id + i) % 2 != 0) on(by_three, third);
      }
      for (std::size_t i = sums.size(); i-- > 0;) EXPECT_EQ(sums[i].get(), expected[i]);
    });
  }
}

/// Each PE makes every team that it is in, in an order of its own.
TEST(Team, every_list_of_up_to_three_pes_is_a_team_of_its_own) {
  constexpr std::size_t pes = 6;
  std::vector<std::vector<std::size_t>> lists;
  for (std::size_t a = 0; a < pes; ++a) {
    lists.push_back({a});
    for (std::size_t b = 0; b < pes; ++b) {
      if (b == a) continue;
      lists.push_back({a, b});
      for (std::size_t c = 0; c < pes; ++c) {
        if (c != a && c != b) lists.push_back({a, b, c});
      }
    }
  }
  expect_run({pes, 1}, [&](Pe& pe) {
    std::vector<std::size_t> mine;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (std::ranges::find(lists[i], std::size_t(pe.id())) != lists[i].end()) mine.push_back(i);
    }
    std::ranges::rotate(mine, mine.begin() + std::ptrdiff_t(mine.size() * pe.id() / pes));
    std::map<std::size_t, Team> teams;
    for (const std::size_t i : mine) teams.emplace(i, Team(pe, lists[i]));
    std::map<std::size_t, Future<std::size_t>> sums;
    for (const auto& [i, team] : teams) sums.emplace(i, allreduce_async(team, i * pes + pe.id(), std::plus<>()));
    for (auto& [i, sum] : sums) {
      const std::size_t members = std::accumulate(lists[i].begin(), lists[i].end(), std::size_t(0));
      EXPECT_EQ(sum.get(), lists[i].size() * i * pes + members);
    }
  });
}

TEST(Team, may_be_gone_before_what_was_called_on_it_is_done) {
  expect_run({5, 1}, [](Pe& pe) {
    std::optional<Future<int>> sum;
    {
      const Team all(pe, {4, 3, 2, 1, 0});
      sum = allreduce_async(all, 1, std::plus<>());
    }
    EXPECT_EQ(sum->get(), 5);
  });
}

TEST(Team, refuses_what_is_none) {
  expect_run({3, 1}, [](Pe& pe) {
    const std::size_t me = pe.id(), other = (me + 1) % 3;
    testing::expect_usage_error(
        [&] {
          Team(pe, {me, 3});
        },
        "of PE " + std::to_string(me) + " has PE 3, allowed are PEs 0 to 2");
    testing::expect_usage_error([&] { Team(pe, {me, other, me}); }, "twice in the list");
    testing::expect_usage_error([&] { Team(pe, {other}); }, "makes a team of 1 PE without itself");
    const Team alone(pe, {me});
    testing::expect_usage_error([&] { static_cast<void>(alone.pe(1)); },
                                "rank 1 of a team of 1 PE, allowed are ranks 0 to 0");
    testing::expect_usage_error([&] { static_cast<void>(reduce_async(alone, 1, std::plus<>(), 1)); },
                                "root 1 of a collective of a team of 1 PE, allowed are ranks 0 to 0");
    EXPECT_EQ(allreduce_async(alone, 7, std::plus<>()).get(), 7);
    EXPECT_EQ(scan(alone, 7, std::plus<>()), 7);
    EXPECT_EQ(gather(alone, 7, 0), std::vector<int>{7});
  });
}

}  // namespace
}  // namespace headway
