// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <headway/am/wait.hpp>
#include <headway/base/random.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/global/array.hpp>
#include <headway/global/memory.hpp>
#include <numeric>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <support/task.hpp>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::expect_usage_error;
using testing::Outcome;
using testing::Shape;
using testing::shapes;

/// On all shapes, with memory that is mapped where it can be and by messages alone.
template <class Body>
void everywhere(Body body) {
  for (const Shape shape : shapes) {
    for (const bool mapped : {true, false}) {
#if defined(__SANITIZE_THREAD__)
      // Two threads may know of each other by messages through another process, which the sanitizer does not see.
      if (mapped && shape.pes_per_process > 1 && shape.pes_per_process < shape.pes) continue;
#endif
      expect_run(shape, [&](Pe& pe) {
        GlobalMemory memory(pe, {.mapped = mapped});
        body(pe, memory);
        pe.quiesce();
      });
    }
  }
}

struct Point {
  double x, y, z;
  bool operator==(const Point&) const = default;
};

TEST(GlobalMemory, gets_of_the_same_words_ask_for_each_once_in_a_batch) {
  for (const std::uint64_t words : {7u, 100'000u}) {
    expect_run({2, 1}, [words](Pe& pe) {
      GlobalMemory memory(pe, {.mapped = false});
      constexpr std::size_t gets = 256 * 200;
      DistArray<std::uint64_t> table(pe, 2 * words, words);
      for (std::size_t j = 0; j < words; ++j) table.local()[j] = table.layout().global(pe.id(), j) * 77;
      pe.quiesce();
      Random random(pe.id() + 1);
      std::vector<std::uint64_t> values(gets), places(gets);
      for (std::uint64_t& place : places) place = (1 - pe.id()) * words + random.below(words);
      for (std::size_t i = 0; i < gets; ++i) memory.get(table.at(places[i]), &values[i]);
      memory.sync();
      for (std::size_t i = 0; i < gets; ++i) ASSERT_EQ(values[i], places[i] * 77);
      pe.quiesce();
      const std::uint64_t asked_bytes = memory.statistics()[2].payload_bytes;
      if (words == 7)
        EXPECT_LT(asked_bytes, gets * 8 / 10);
      else
        EXPECT_GE(asked_bytes, gets * 8 * 9 / 10);
    });
  }
}

TEST(GlobalMemory, gets_are_there_after_sync) {
  everywhere([](Pe& pe, GlobalMemory& memory) {
    constexpr std::size_t n = 3000;
    DistArray<std::uint64_t> words(pe, n, 16);
    DistArray<std::uint16_t> shorts(pe, n, 5);
    DistArray<Point> points(pe, n / 10);
    for (std::size_t j = 0; j < words.local().size(); ++j) words.local()[j] = words.layout().global(pe.id(), j) * 77;
    for (std::size_t j = 0; j < shorts.local().size(); ++j) {
      shorts.local()[j] = std::uint16_t(shorts.layout().global(pe.id(), j));
    }
    for (std::size_t j = 0; j < points.local().size(); ++j) {
      const auto i = double(points.layout().global(pe.id(), j));
      points.local()[j] = {i, -i, i / 3};
    }
    barrier(pe);
    std::vector<std::uint64_t> got(n);
    std::vector<std::uint16_t> got_shorts(n);
    std::vector<Point> got_points(n / 10);
    for (std::size_t i = 0; i < n; ++i) {
      memory.get(words[i], &got[i]);
      memory.get(shorts[n - 1 - i], &got_shorts[n - 1 - i]);
      if (i % 10 == 0) memory.get(points[i / 10], &got_points[i / 10]);
    }
    memory.sync();
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(got[i], i * 77);
      ASSERT_EQ(got_shorts[i], i);
    }
    for (std::size_t i = 0; i < n / 10; ++i) ASSERT_EQ(got_points[i], (Point{double(i), -double(i), double(i) / 3}));
    EXPECT_EQ(memory.read(points[7]), got_points[7]);
    barrier(pe);  // others may still read this PE's part
  });
}

TEST(GlobalMemory, puts_are_in_place_after_sync) {
  everywhere([](Pe& pe, GlobalMemory& memory) {
    const std::size_t n = 500 * pe.size();
    DistArray<std::uint32_t> a(pe, n, 3);
    DistArray<Point> points(pe, n);
    barrier(pe);
    for (std::size_t i = pe.id(); i < n; i += pe.size()) {
      memory.put(a[i], std::uint32_t(i + 9));
      memory.put(points[i], Point{double(i), 1, 2});
    }
    memory.sync();
    for (std::size_t i = pe.id(); i < n; i += pe.size()) {  // by each owner
      ASSERT_EQ(memory.read(a[i]), i + 9);
      ASSERT_EQ(memory.read(points[i]), (Point{double(i), 1, 2}));
    }
    memory.write(a[pe.id()], 5u);
    EXPECT_EQ(memory.read(a[pe.id()]), 5u);
    barrier(pe);
  });
}

TEST(GlobalMemory, what_handlers_put_while_one_syncs_does_not_hold_it_up) {
  everywhere([](Pe& pe, GlobalMemory& memory) {
    DistArray<std::uint64_t> a(pe, 64 * pe.size());
    Aggregator<std::uint64_t> pings(pe);
    const PeId next = (pe.id() + 1) % pe.size();
    pings.on([&](std::uint64_t left) {
      memory.put(a[64 * next + left % 64], left);
      if (left > 0) pings.send(next, left - 1);
    });
    barrier(pe);
    pings.send(next, 500);
    for (std::uint64_t i = 0; i < 50; ++i) {
      memory.put(a[(64 * next + 70) % a.size()], i);
      memory.sync();
    }
    pe.quiesce();
  });
}

TEST(GlobalMemory, what_handlers_get_among_the_main_programs_is_all_there) {
  everywhere([](Pe& pe, GlobalMemory& memory) {
    constexpr std::size_t n = 4000;
    DistArray<std::uint64_t> a(pe, n, 1);
    for (std::size_t j = 0; j < a.local().size(); ++j) a.local()[j] = a.layout().global(pe.id(), j) + 5;
    std::vector<std::uint64_t> got(n, 0), got_by_handlers(n, 0);
    Aggregator<std::uint64_t> asked(pe);
    asked.on([&](std::uint64_t i) { memory.get(a[i], &got_by_handlers[i]); });
    barrier(pe);
    for (std::size_t i = 0; i < n; ++i) {
      asked.send((pe.id() + i) % pe.size(), n - 1 - i);
      memory.get(a[i], &got[i]);
    }
    pe.quiesce();
    memory.sync();
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(got[i], i + 5);
    std::size_t by_handlers = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (got_by_handlers[i] == 0) continue;
      ASSERT_EQ(got_by_handlers[i], i + 5);
      ++by_handlers;
    }
    EXPECT_EQ(allreduce(pe, by_handlers, std::plus<>()), n * pe.size());
  });
}

TEST(GlobalMemory, bulk_of_any_size_and_place) {
  everywhere([](Pe& pe, GlobalMemory& memory) {
    constexpr std::size_t each = 300'000;
    DistArray<std::uint8_t> a(pe, each * pe.size());
    barrier(pe);
    const PeId next = (pe.id() + 1) % pe.size();
    std::vector<std::uint8_t> out(each), in(each);
    for (std::size_t i = 0; i < each; ++i) out[i] = std::uint8_t(i * 31 + pe.id());
    memory.put(a[next * each], out);
    memory.sync();
    memory.get(a[next * each], std::span(in));
    memory.sync();
    EXPECT_EQ(in, out);
    for (const std::size_t size : {0, 1, 3, 4095, 16384, 16385, 100'000}) {
      std::fill(in.begin(), in.end(), std::uint8_t(0));
      memory.get(a[next * each + 1 + size % 7], std::span(in).first(size));
      memory.sync();
      EXPECT_TRUE(
          std::equal(in.begin(), in.begin() + std::ptrdiff_t(size), out.begin() + std::ptrdiff_t(1 + size % 7)));
      EXPECT_EQ(in[size], 0) << "nothing beyond";
    }
    barrier(pe);
  });
}

TEST(GlobalMemory, stores_are_counted_by_their_owner) {
  everywhere([](Pe& pe, GlobalMemory& memory) {
    const std::size_t n = 100;
    DistArray<std::uint64_t> a(pe, 2 * n * pe.size());
    barrier(pe);
    const PeId next = (pe.id() + 1) % pe.size();
    const std::vector<std::uint64_t> many(n, 4711);
    for (int round = 1; round <= 3; ++round) {
      for (std::size_t i = 0; i < n; ++i) memory.store(a[2 * n * next + i], i * std::uint64_t(round));
      memory.store(a[2 * n * next + n], many);
      memory.wait_for_stores(2 * n * sizeof(std::uint64_t));
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a.local()[i], i * std::uint64_t(round));
      ASSERT_EQ(a.local()[2 * n - 1], 4711u);
      barrier(pe);
    }
    EXPECT_EQ(memory.stored_bytes(), 6 * n * sizeof(std::uint64_t));
  });
}

TEST(GlobalMemory, atomics_lose_nothing) {
  everywhere([](Pe& pe, GlobalMemory& memory) {
    DistArray<std::uint64_t> sums(pe, 4, 1);
    DistArray<std::int32_t> tickets(pe, pe.size(), 1);
    DistArray<std::uint32_t> locks(pe, 1);
    barrier(pe);
    constexpr std::uint64_t rounds = 200;
    for (std::uint64_t i = 0; i < rounds; ++i) memory.add(sums[i % 4], i);
    std::vector<std::int32_t> taken;
    for (int i = 0; i < 20; ++i) taken.push_back(memory.fetch_add(tickets[pe.size() - 1], 1));
    memory.sync();
    EXPECT_TRUE(std::is_sorted(taken.begin(), taken.end()));
    while (memory.compare_exchange(locks[0], 0u, 1u) != 0) pe.progress();
    EXPECT_EQ(memory.exchange(locks[0], 0u), 1u) << "nobody else was in";
    pe.quiesce();
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < 4; ++i) all += memory.read(sums[i]);
    EXPECT_EQ(all, pe.size() * rounds * (rounds - 1) / 2);
    EXPECT_EQ(memory.read(tickets[pe.size() - 1]), std::int32_t(20 * pe.size()));
    barrier(pe);
  });
}

testing::Task add_up(GlobalMemory& memory, const DistArray<std::uint64_t>& a, std::size_t first, std::uint64_t& sum,
                     std::size_t& done) {
  std::uint64_t mine = 0;
  for (std::size_t i = first; i < a.size(); i += 37) mine += co_await memory.fetch(a[i]);
  sum += mine;
  ++done;
}

TEST(GlobalMemory, coroutines_fetch) {
  everywhere([](Pe& pe, GlobalMemory& memory) {
    DistArray<std::uint64_t> a(pe, 1000, 8);
    for (std::size_t j = 0; j < a.local().size(); ++j) a.local()[j] = a.layout().global(pe.id(), j);
    barrier(pe);
    std::uint64_t sum = 0;
    std::size_t done = 0;
    std::vector<testing::Task> tasks;
    for (std::size_t i = 0; i < 37; ++i) tasks.push_back(add_up(memory, a, i, sum, done));
    wait_until(pe, [&] { return done == 37; });
    EXPECT_EQ(sum, 999u * 1000 / 2);
    barrier(pe);
  });
}

TEST(GlobalMemory, a_coroutine_that_is_destroyed_is_not_resumed) {
  expect_run({2, 1}, [](Pe& pe) {
    GlobalMemory memory(pe, {.mapped = false});
    DistArray<std::uint64_t> a(pe, 100, 1);
    barrier(pe);
    std::uint64_t sum = 0;
    std::size_t done = 0;
    { const testing::Task task = add_up(memory, a, pe.id() == 0 ? 1 : 0, sum, done); }
    pe.quiesce();
    EXPECT_EQ(done, 0u);
    pe.quiesce();
  });
}

TEST(GlobalMemory, what_waits_is_refused_in_a_handler) {
  expect_run({2, 1}, [](Pe& pe) {
    GlobalMemory memory(pe, {.mapped = false});
    DistArray<std::uint64_t> a(pe, 2, 1);
    Aggregator<std::uint64_t> pings(pe);
    int refused = 0;
    pings.on([&](std::uint64_t) {
      const GlobalPtr<std::uint64_t> other = a[1 - pe.id()];
      try {
        (void)memory.read(other);
      } catch (const UsageError&) {
        ++refused;
      }
      try {
        memory.sync();
      } catch (const UsageError&) {
        ++refused;
      }
    });
    barrier(pe);
    pings.send(1 - pe.id(), 1);
    pe.quiesce();
    EXPECT_EQ(refused, 2);
    pe.quiesce();
  });
}

TEST(GlobalMemory, what_lies_outside_ends_the_run_with_its_place) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    GlobalMemory memory(pe, {.mapped = false});
    barrier(pe);
    if (pe.id() == 0) memory.put(GlobalPtr<std::uint64_t>(1, (std::uint64_t(1) << 44) - 8), std::uint64_t(1));
    pe.quiesce();
  });
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.text.find("of PE 1's shared memory, which has "), std::string::npos) << outcome.text;
}

TEST(GlobalMemory, words_outside_of_mapped_memory_end_a_run_that_checks) {
  const auto run = [](bool outside) {
    return catch_run({2, 1},
                     [outside](Pe& pe) {
                       GlobalMemory memory(pe);
                       DistArray<std::uint64_t> words(pe, 2, 1);
                       barrier(pe);
                       const std::uint64_t size = rma::Pool::of(pe).memory().size();
                       memory.put(outside ? GlobalPtr<std::uint64_t>(1 - pe.id(), size) : words[1 - pe.id()],
                                  std::uint64_t(5));
                       memory.sync();
                       pe.quiesce();
                       EXPECT_EQ(words.local()[0], 5u);
                     },
                     {{"HEADWAY_CHECK", "on"}});
  };
  const Outcome inside = run(false), outside = run(true);
  EXPECT_EQ(inside.status, 0) << inside.text;
  EXPECT_NE(outside.status, 0);
  EXPECT_NE(outside.text.find("'s shared memory, which has "), std::string::npos) << outside.text;
}

TEST(GlobalMemory, what_lies_outside_of_mapped_memory_is_refused_with_its_place) {
  expect_run({2, 1}, [](Pe& pe) {
    GlobalMemory memory(pe);
    barrier(pe);
    const std::uint64_t size = rma::Pool::of(pe).memory().size();
    const std::string at_next =
        " of PE " + std::to_string(1 - pe.id()) + "'s shared memory, which has " + std::to_string(size) + " bytes";
    const GlobalPtr<std::uint64_t> last(1 - pe.id(), size - 8);
    std::vector<std::uint64_t> two(2, 5);
    memory.get(last, std::span(two).first(1));
    memory.get(last + 1, std::span(two).first(0));
    const std::string where = "16 bytes at offset " + std::to_string(size - 8) + at_next;
    expect_usage_error([&] { memory.get(last, std::span(two)); }, where);
    expect_usage_error([&] { memory.put(last, two); }, where);
    expect_usage_error([&] { memory.get(last + 3, std::span(two).first(0)); },
                       "0 bytes at offset " + std::to_string(size + 16) + at_next);
    const GlobalPtr<Point> point(1 - pe.id(), size - 23);
    const std::string where_point = "24 bytes at offset " + std::to_string(size - 23) + at_next;
    Point got;
    expect_usage_error([&] { (void)memory.read(point); }, where_point);
    expect_usage_error([&] { memory.get(point, &got); }, where_point);
    expect_usage_error([&] { memory.put(point, Point{}); }, where_point);
    expect_usage_error([&] { memory.write(point, Point{}); }, where_point);
    memory.sync();
    EXPECT_EQ(two[1], 5u);
    barrier(pe);
  });
}

/// Random puts, adds and gets, to words that no two PEs write in one round, against arrays that are not spread.
TEST(GlobalMemory, agrees_with_arrays_on_random_programs) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    everywhere([seed](Pe& pe, GlobalMemory& memory) {
      const std::size_t pes = pe.size(), n = 64 * pes;
      DistArray<std::uint64_t> a(pe, n, 1 + seed);
      std::vector<std::uint64_t> expected(n, 0);
      barrier(pe);
      for (std::uint64_t round = 0; round < 6; ++round) {
        for (std::size_t writer = 0; writer < pes; ++writer) {
          Random random(seed * 1000 + round * 100 + writer);
          for (int k = 0; k < 50; ++k) {
            const std::size_t i = random.below(n / pes) * pes + (writer + round) % pes;  // one writer a round
            const std::uint64_t value = random.below(1 << 20);
            const bool adds = round % 2 == 1;
            expected[i] = adds ? expected[i] + value : expected[i];
            if (adds && writer == pe.id()) memory.add(a[i], value);
            if (!adds && writer == pe.id() && k < 25) memory.put(a[i], i + round);
            if (!adds && k < 25) expected[i] = i + round;
          }
        }
        memory.sync();
        barrier(pe);
        std::vector<std::uint64_t> got(n);
        for (std::size_t i = 0; i < n; ++i) memory.get(a[i], &got[i]);
        memory.sync();
        ASSERT_EQ(got, expected) << "round " << round << ", seed " << seed;
        barrier(pe);
      }
    });
  }
}

}  // namespace
}  // namespace headway
