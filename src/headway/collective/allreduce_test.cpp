// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <headway/aggregate/aggregator.hpp>
#include <headway/base/error.hpp>
#include <headway/collective/allreduce.hpp>
#include <memory>
#include <string>
#include <support/run_pes.hpp>
#include <thread>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::Outcome;
using testing::Shape;
using testing::shapes;
using testing::Shared;

TEST(Allreduce, gives_every_pe_the_sum_the_minimum_and_the_maximum) {
  for (std::size_t pes = 1; pes <= 17; ++pes) {
    expect_run({pes, pes > 8 ? std::size_t(5) : std::size_t(1)}, [](Pe& pe) {
      const std::uint64_t id = pe.id(), n = pe.size();
      EXPECT_EQ(allreduce(pe, id + 1, std::plus<>()), n * (n + 1) / 2);
      EXPECT_EQ(allreduce(pe, int(id) - 5, [](int a, int b) { return std::min(a, b); }), -5);
      EXPECT_EQ(allreduce(pe, double(id), [](double a, double b) { return std::max(a, b); }), double(n - 1));
      EXPECT_TRUE(allreduce(pe, true, std::logical_and<>()));
      EXPECT_EQ(allreduce(pe, id == n - 1, std::logical_or<>()), true);
    });
  }
}

TEST(Allreduce, combines_in_the_order_of_the_pes) {
  struct Range {
    std::uint64_t first, last, parts, gaps;
  };
  for (std::size_t pes = 1; pes <= 20; ++pes) {
    expect_run({pes, 4}, [](Pe& pe) {
      const Range all = allreduce(pe, Range{pe.id(), pe.id(), 1, 0}, [](const Range& a, const Range& b) {
        return Range{a.first, b.last, a.parts + b.parts, a.gaps + b.gaps + (a.last + 1 != b.first)};
      });
      EXPECT_EQ(all.first, 0u);
      EXPECT_EQ(all.last, pe.size() - 1);
      EXPECT_EQ(all.parts, pe.size());
      EXPECT_EQ(all.gaps, 0u);
    });
  }
}

TEST(Allreduce, many_in_a_row_do_not_mix) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (std::uint64_t i = 0; i < 500; ++i) {
        if ((i + pe.id()) % 37 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // skew
        ASSERT_EQ(allreduce(pe, i * pe.size() + pe.id(), std::plus<>()),
                  pe.size() * (i * pe.size()) + pe.size() * (pe.size() - 1) / 2);
      }
    });
  }
}

TEST(Allreduce, values_of_up_to_64_KiB_and_of_no_content_go) {
  struct Nothing {};
  using Table = std::array<std::uint64_t, 8192>;
  expect_run({7, 1},
             [](Pe& pe) {
               for (int round = 0; round < 5; ++round) {
                 auto table = std::make_unique<Table>();
                 for (std::size_t i = 0; i < table->size(); ++i) (*table)[i] = i * (pe.id() + 1);
                 const Table sum = allreduce(pe, *table, [](Table a, const Table& b) {
                   for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
                   return a;
                 });
                 for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], i * 28);
                 (void)allreduce(pe, Nothing{}, [](Nothing, Nothing) { return Nothing{}; });
               }
             },
             {{"HEADWAY_BUDGET", "1M"}});
}

template <std::size_t bytes>
void expect_sum_of(Pe& pe, std::uint8_t add) {
  using Values = std::array<std::uint8_t, bytes>;
  Values values;
  for (std::size_t i = 0; i < bytes; ++i) values[i] = std::uint8_t(i + pe.id() + add);
  const Values sum = allreduce(pe, values, [](Values a, const Values& b) {
    for (std::size_t i = 0; i < bytes; ++i) a[i] = std::uint8_t(a[i] + b[i]);
    return a;
  });
  const std::size_t n = pe.size();
  for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(sum[i], std::uint8_t(n * (i + add) + n * (n - 1) / 2)) << bytes;
}

/// Up to 112 bytes lie in memory that up to 32 PEs share, more go along the tree.
TEST(Allreduce, values_of_all_lengths_follow_one_another) {
  for (const Shape shape : {Shape{2, 1}, Shape{3, 3}, Shape{32, 8}, Shape{33, 8}}) {
    expect_run(shape, [](Pe& pe) {
      for (std::uint8_t round = 0; round < 20; ++round) {
        if ((round + pe.id()) % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
        expect_sum_of<1>(pe, round);
        expect_sum_of<111>(pe, round);
        expect_sum_of<112>(pe, round);
        expect_sum_of<113>(pe, round);
        barrier(pe);
        expect_sum_of<1000>(pe, round);
        expect_sum_of<8>(pe, round);
      }
    });
  }
}

/// Whether values meet or climb, and wherever PEs are.
TEST(Allreduce, has_the_brackets_of_the_tree) {
  struct Text {
    char text[96];
  };
  const auto bracket = [](const Text& a, const Text& b) {
    Text both{};
    both.text[0] = '(';
    std::size_t end = 1;
    for (const Text* part : {&a, &b}) {
      for (const char* c = part->text; *c != 0; ++c) both.text[end++] = *c;
    }
    both.text[end] = ')';
    return both;
  };
  const auto expect_text = [&](std::size_t pes, std::size_t pes_per_process, const std::string& expected) {
    expect_run({pes, pes_per_process}, [&](Pe& pe) {
      const Text all = allreduce(pe, Text{char('a' + pe.id())}, bracket);
      EXPECT_EQ(all.text, expected);
    });
  };
  for (const std::size_t pes_per_process : {1, 3}) {
    expect_text(2, pes_per_process, "(ab)");
    expect_text(3, pes_per_process, "((ab)c)");
    expect_text(4, pes_per_process, "((ab)(cd))");
    expect_text(7, pes_per_process, "(((ab)(cd))((ef)g))");
    expect_text(13, pes_per_process, "((((ab)(cd))((ef)(gh)))(((ij)(kl))m))");
  }
}

TEST(Allreduce, who_sleeps_is_told_that_all_have_come) {
  using namespace std::chrono;
  for (const Shape shape : {Shape{2, 1}, Shape{4, 4}, Shape{5, 2}}) {
    expect_run(shape, [](Pe& pe) {
      const auto begin = steady_clock::now();
      constexpr int rounds = 20;
      for (int round = 0; round < rounds; ++round) {
        if (pe.id() == std::size_t(round) % pe.size()) std::this_thread::sleep_for(milliseconds(2));
        barrier(pe);
      }
      // A PE sleeps at most 100 ms at a time, so a PE that is not woken continues then.
      EXPECT_LT(steady_clock::now() - begin, rounds * milliseconds(100) / 2);
    });
  }
}

TEST(Allreduce, handlers_run_while_it_waits) {
  expect_run({5, 1}, [](Pe& pe) {
    Aggregator<std::uint32_t> pings(pe);
    std::uint32_t handled = 0;
    pings.on([&](std::uint32_t left) {
      ++handled;
      if (left != 0) pings.send((pe.id() + 1) % pe.size(), left - 1);
    });
    // PE 0 comes only after the ping has gone round ten times, through PEs that wait in the reduction.
    if (pe.id() == 0) {
      pings.send(1, 50);
      for (int i = 0; i < 10'000'000 && handled < 10; ++i) pe.progress();
      EXPECT_GE(handled, 10u);
    }
    EXPECT_EQ(allreduce(pe, 1, std::plus<>()), 5);
    EXPECT_EQ(pe.quiesce(), 51u);
  });
}

TEST(Barrier, nobody_leaves_before_all_have_come) {
  for (const Shape shape : shapes) {
    Shared<std::atomic<std::uint64_t>> come;
    expect_run(shape, [&](Pe& pe) {
      for (std::uint64_t round = 1; round <= 100; ++round) {
        if ((round + pe.id()) % 13 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
        come->fetch_add(1);
        barrier(pe);
        EXPECT_GE(come->load(), round * pe.size());
      }
    });
  }
}

TEST(Allreduce, in_a_handler_is_an_error) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    Aggregator<std::uint32_t> words(pe);
    words.on([&](std::uint32_t) { (void)allreduce(pe, 1, std::plus<>()); });
    words.send(1, 1);
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
  EXPECT_NE(outcome.text.find("inside a handler"), std::string::npos) << outcome.text;
}

template <std::size_t of_0, std::size_t of_others>
void expect_different_sizes() {
  const auto first = [](const auto& a, const auto&) { return a; };
  const Outcome outcome = catch_run({3, 1}, [&](Pe& pe) {
    if (pe.id() == 0)
      (void)allreduce(pe, std::array<char, of_0>(), first);
    else
      (void)allreduce(pe, std::array<char, of_others>(), first);
  });
  EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
  EXPECT_NE(outcome.text.find("different sizes"), std::string::npos) << outcome.text;
}

TEST(Allreduce, values_of_different_sizes_end_the_run) {
  expect_different_sizes<8, 2>();
  expect_different_sizes<8, 1000>();
  expect_different_sizes<1000, 8>();
  expect_different_sizes<1000, 2000>();
}

}  // namespace
}  // namespace headway
