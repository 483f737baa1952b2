// SPDX-License-Identifier: BSD-3-Clause
/// One test for each fault or gap of Charm++ TRAM, with elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/collective/allreduce.hpp>
#include <headway/object/object.hpp>
#include <numeric>
#include <span>
#include <string>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::shapes;

class Taker : public Element<Taker, Index<1>> {
 public:
  void take(std::uint64_t value) { sum_ += value; }
  void take_many(std::span<const std::uint32_t> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      right_ = right_ && values[i] == std::uint32_t(values.size() * 7 + i);
    sum_ += values.size();
  }
  void take_loose(std::span<const std::uint32_t> values) { take_many(values); }
  void go(std::size_t pe) { migrate_to(pe); }
  std::uint64_t sum() const { return right_ ? sum_ : 0; }
  /// Moves, and sends the rest to the next element.
  void hop(int left) {
    ++sum_;
    migrate_to((pe().id() + 1 + std::size_t(left) % 3) % pe().size());
    if (left > 0) all()[(index()[0] + left) % int(all().size())].send<&Taker::hop>(left - 1);
  }
  template <class A>
  void serialize(A& archive) {
    archive(sum_, right_);
  }
  static constexpr auto aggregation = entries(entry<&Taker::take>{}, entry<&Taker::take_many>{}, entry<&Taker::hop>{});

 private:
  std::uint64_t sum_ = 0;
  bool right_ = true;
};

std::vector<std::uint32_t> values_of(std::size_t size) {
  std::vector<std::uint32_t> values(size);
  std::iota(values.begin(), values.end(), std::uint32_t(size * 7));
  return values;
}
std::uint64_t sum_everywhere(Pe& pe, Array<Taker>& takers) {
  std::uint64_t sum = 0;
  takers.for_each_local([&](Taker& taker) { sum += taker.sum(); });
  return allreduce(pe, sum, std::plus<>());
}

TEST(UnlikeTram, a_frame_is_as_long_as_what_is_in_it) {
  expect_run({2, 1}, [](Pe& pe) {
    Array<Taker> takers(pe, 2, {.override_all = AggregatorOptions{.buffer_bytes = 40'000}});
    if (pe.id() == 0) takers[1].send<&Taker::take>(5u);
    pe.quiesce();
    const AggregatorStatistics statistics = takers.statistics<&Taker::take>();
    EXPECT_EQ(statistics.frames, pe.id() == 0 ? 1u : 0u);
    EXPECT_LE(statistics.wire_bytes, 64u);
    EXPECT_EQ(sum_everywhere(pe, takers), 5u);
  });
}

TEST(UnlikeTram, messages_larger_than_the_buffer_arrive_whole) {
  for (const Shape shape : {Shape{2, 1}, Shape{5, 2}, shapes[std::size(shapes) - 1]}) {
    expect_run(shape, [](Pe& pe) {
      const AggregatorOptions small{.buffer_bytes = 512};
      Array<Taker> takers(pe, 7, {.aggregation = small, .override_all = small});
      std::uint64_t sent = 0;
      for (const std::size_t size : {127u, 128u, 129u, 5'000u, 300'000u}) {
        for (int i = 0; i < 7; ++i) {
          takers[i].send<&Taker::take_many>(values_of(size));
          takers[i].send<&Taker::take_loose>(values_of(size));
          sent += 2 * size;
        }
      }
      pe.quiesce();
      if (pe.size() > 1) {
        EXPECT_GT(takers.statistics<&Taker::take_many>().alone, 0u);
      }
      EXPECT_EQ(sum_everywhere(pe, takers), sent * pe.size());
    });
  }
}

TEST(UnlikeTram, frames_of_more_than_64_kB_keep_their_messages_apart) {
  expect_run({2, 1}, [](Pe& pe) {
    const AggregatorOptions large{.buffer_bytes = 1 << 20, .threshold = 0.9, .cutoff = 0.1, .flush_when_idle = false};
    Array<Taker> takers(pe, 2, {.override_all = large});
    std::uint64_t sent = 0;
    if (pe.id() == 0) {
      for (std::size_t i = 0; i < 4'000; ++i) takers[1].send<&Taker::take_many>(values_of(i % 90)), sent += i % 90;
      takers.flush();
    }
    pe.quiesce();
    const AggregatorStatistics statistics = takers.statistics<&Taker::take_many>();
    if (pe.id() == 0) {
      EXPECT_GT(statistics.wire_bytes, statistics.frames * 65'536);
    }
    EXPECT_EQ(sum_everywhere(pe, takers), allreduce(pe, sent, std::plus<>()));
  });
}

TEST(UnlikeTram, a_threshold_and_a_cutoff_of_1_are_refused_where_they_would_not_fit_and_right_where_they_do) {
  expect_run({2, 1}, [](Pe& pe) {
    const AggregatorOptions ones{.buffer_bytes = 1024, .threshold = 1, .cutoff = 1};
    CollectionOptions of_many, of_one;
    of_many.set<&Taker::take_many>(ones);
    of_one.set<&Taker::take>(ones);
    try {
      Array<Taker> takers(pe, 2, of_many);
      ADD_FAILURE() << "messages of variable size are taken with threshold and cutoff 1";
    } catch (const SettingError& error) {
      EXPECT_NE(std::string(error.what()).find("threshold"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("cutoff"), std::string::npos) << error.what();
    }
  });
  expect_run({2, 1}, [](Pe& pe) {
    CollectionOptions of_one;
    of_one.set<&Taker::take>({.buffer_bytes = 1024, .threshold = 1, .cutoff = 1});
    Array<Taker> takers(pe, 2, of_one);
    for (std::uint64_t i = 0; i < 10'000; ++i) takers[int(i % 2)].send<&Taker::take>(i);
    pe.quiesce();
    EXPECT_EQ(sum_everywhere(pe, takers), 2u * 9'999 * 10'000 / 2);
  });
}

TEST(UnlikeTram, after_an_element_has_moved_a_sender_misses_it_at_most_twice) {
  for (const Shape shape : {Shape{3, 3}, Shape{8, 4}, shapes[std::size(shapes) - 1]}) {
    expect_run(shape, [](Pe& pe) {
      constexpr int senders = 1, messages = 12;
      Array<Taker> takers(pe, 3);
      for (std::size_t target = 1; target < 6; ++target) {
        if (pe.id() == 0) takers[1].send<&Taker::go>((target * 2) % pe.size());
        pe.quiesce();
        std::uint64_t before = allreduce(pe, takers.missed(), std::plus<>()), first_two = 0;
        for (int i = 0; i < messages; ++i) {
          if (pe.id() == pe.size() - senders) takers[1].send<&Taker::take>(1u);
          pe.quiesce();
          const std::uint64_t missed = allreduce(pe, takers.missed(), std::plus<>());
          if (i < 2)
            first_two += missed - before;
          else
            EXPECT_EQ(missed, before) << "message " << i << " after move " << target;
          before = missed;
        }
        EXPECT_LE(first_two, 2u);
      }
      EXPECT_EQ(sum_everywhere(pe, takers), 5u * messages);
    });
  }
}

TEST(UnlikeTram, quiescence_is_not_found_while_messages_chase_elements) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      constexpr int hops = 1'000;
      Array<Taker> takers(pe, 9);
      if (pe.id() == 0) takers[0].send<&Taker::hop>(hops - 1);
      const std::uint64_t handled = pe.quiesce();
      EXPECT_EQ(sum_everywhere(pe, takers), std::uint64_t(hops));
      EXPECT_GE(handled, std::uint64_t(hops));
    });
  }
}

TEST(UnlikeTram, parameters_may_change_from_run_to_run_and_from_collection_to_collection) {
  expect_run({2, 1}, [](Pe& pe) {
    std::uint64_t frames_before = ~std::uint64_t(0);
    for (const std::size_t buffer_bytes : {256u, 2'048u, 16'384u}) {
      Array<Taker> takers(pe, 2,
                          {.override_all = AggregatorOptions{.buffer_bytes = buffer_bytes, .flush_when_idle = false}});
      if (pe.id() == 0) {
        for (std::uint64_t i = 0; i < 1'000; ++i) takers[1].send<&Taker::take>(1u);
      }
      pe.quiesce();
      const std::uint64_t frames = allreduce(pe, takers.statistics<&Taker::take>().frames, std::plus<>());
      EXPECT_LT(frames, frames_before);
      EXPECT_GE(frames, 1'000 * 8 / buffer_bytes);
      frames_before = frames;
      EXPECT_EQ(sum_everywhere(pe, takers), 1'000u);
    }
  });
}

TEST(UnlikeTram, a_message_leaves_when_its_sender_is_idle) {
  expect_run({2, 1}, [](Pe& pe) {
    Array<Taker> takers(pe, 2, {.override_all = AggregatorOptions{.buffer_bytes = 1 << 20, .timeout = no_timeout}});
    if (pe.id() == 0) {
      takers[1].send<&Taker::take>(7u);
      EXPECT_EQ(takers.statistics<&Taker::take>().frames, 0u);
    }
    barrier(pe);  // waits; a barrier flushes nothing
    const std::int64_t until = pe.engine().now() + 10'000'000'000;
    bool there = false;
    while (!there && pe.engine().now() < until) {
      pe.progress();
      const Taker* const mine = takers.find_local(1);
      there = allreduce(pe, int(mine != nullptr && mine->sum() == 7u), std::plus<>()) == 1;
    }
    EXPECT_TRUE(there);
    pe.quiesce();
    EXPECT_EQ(sum_everywhere(pe, takers), 7u);
  });
}

}  // namespace
}  // namespace headway
