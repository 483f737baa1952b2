// SPDX-License-Identifier: BSD-3-Clause
// Epochs: the messages that each holds and counts, and epochs within one another.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/aggregate/epoch_test.hpp>
#include <headway/am/epoch.hpp>
#include <headway/call/calls.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <support/run_pes.hpp>
#include <support/topologies.hpp>
#include <thread>
#include <utility>
#include <vector>

namespace headway {
namespace {

using epoch_test::Travellers;
using testing::expect_run;
using testing::Shape;
using testing::shapes;
using testing::Shared;
using testing::topologies;
using namespace std::chrono_literals;

/// Options with which a buffer is sent only when it is full, or for the end of its scope.
AggregatorOptions patient(Topology topology = grid(1)) {
  return {.buffer_bytes = 4_KiB, .timeout = no_timeout, .topology = topology, .flush_when_idle = false};
}

/// Sleeps, without progress, until `count` is `expected`. False after 10 s.
bool await(const std::atomic<std::uint32_t>& count, std::uint32_t expected) {
  for (int i = 0; i < 10'000 && count.load() < expected; ++i) std::this_thread::sleep_for(1ms);
  return count.load() >= expected;
}

/// Progress until `flag` is set. False after 10 s.
bool progress_until(Pe& pe, const std::atomic<std::uint32_t>& flag) {
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (flag.load() == 0 && std::chrono::steady_clock::now() < end) pe.progress();
  return flag.load() != 0;
}

TEST(Epoch, counts_its_messages_and_those_that_handlers_send_over_many_hops) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (const Topology topology : topologies) {
        Travellers travellers(pe, {.topology = topology});
        for (std::uint64_t round = 1; round <= 3; ++round) {
          Epoch epoch(pe);
          for (std::uint32_t i = 0; i < 100 * round; ++i) travellers.send({5, 0});
          EXPECT_FALSE(epoch.done());
          EXPECT_EQ(epoch.wait(), 600 * round * pe.size());
          EXPECT_TRUE(epoch.done());
          EXPECT_EQ(epoch.wait(), epoch.handled());
        }
        EXPECT_EQ(pe.quiesce(), 3600 * pe.size());
      }
    });
  }
}

TEST(Epoch, messages_outside_it_are_neither_waited_for_nor_counted) {
  // Not simulated: PEs wait for one another without progress.
  for (const Shape shape : {Shape{1, 1}, Shape{2, 1}, Shape{5, 2}, Shape{8, 4}, Shape{13, 1}}) {
    Shared<std::atomic<std::uint32_t>> waited;
    expect_run(shape, [&](Pe& pe) {
      std::uint32_t rounds = 0;
      for (const Topology topology : {grid(1), grid(2)}) {
        Travellers travellers(pe, patient(topology));
        for (int i = 0; i < 10; ++i) travellers.send({0, 0});  // they stay in their buffers
        Epoch epoch(pe);
        for (int i = 0; i < 7; ++i) travellers.send({2, 1});
        EXPECT_EQ(epoch.wait(), 21 * pe.size());
        EXPECT_EQ(travellers.handled[0], 0u);
        ++*waited;
        ++rounds;
        EXPECT_TRUE(await(*waited, rounds * std::uint32_t(pe.size())));  // no PE posts them before all PEs have checked
        for (int i = 0; i < 10; ++i) travellers.send({0, 0});
        EXPECT_EQ(pe.quiesce(), 41 * pe.size());
      }
    });
  }
}

TEST(Epoch, counts_the_epochs_within_it) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Travellers travellers(pe, {.topology = grid(2)});
      const std::uint64_t pes = pe.size();
      travellers.send({1, 0});
      Epoch outer(pe);
      travellers.send({2, 0});
      {
        Epoch middle(pe);
        travellers.send({3, 0});
        for (std::uint32_t i = 0; i < 5; ++i) {
          Epoch inner(pe);
          travellers.send({i, 0});
          EXPECT_EQ(inner.wait(), (i + 1) * pes);
        }
        travellers.send({0, 0});
        EXPECT_EQ(middle.wait(), (4 + 15 + 1) * pes);
      }
      travellers.send({0, 0});
      EXPECT_EQ(outer.wait(), (3 + 20 + 1) * pes);
      EXPECT_EQ(pe.quiesce(), (2 + 24) * pes);
    });
  }
}

TEST(Epoch, without_messages_handles_none) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (int i = 0; i < 20; ++i) {
        Epoch outer(pe);
        Epoch inner(pe);
        EXPECT_EQ(inner.wait(), 0u);
        EXPECT_EQ(outer.wait(), 0u);
      }
    });
  }
}

TEST(Epoch, the_earlier_of_two_ends_while_messages_of_the_later_are_held_back) {
  for (const Topology topology : {direct(), grid(1)}) {
    Shared<std::atomic<std::uint32_t>> sent;
    expect_run({2, 1}, [&](Pe& pe) {
      Travellers travellers(pe, {.topology = topology});
      if (pe.id() == 0) {
        Epoch first(pe);
        for (int i = 0; i < 100; ++i) travellers.send({4, 0});
        first.close();
        Epoch second(pe);
        for (int i = 0; i < 100; ++i) travellers.send({4, 1});
        pe.engine().flush_all(am::FlushReason::requested);
        *sent = 1;
        while (!first.done()) pe.progress();
        EXPECT_EQ(first.handled(), 500u);
        EXPECT_FALSE(second.done());
        EXPECT_EQ(second.wait(), 500u);
      } else {
        Epoch first(pe);
        EXPECT_TRUE(progress_until(pe, *sent));
        EXPECT_EQ(first.wait(), 500u);
        for (int i = 0; i < 1000; ++i) pe.progress();
        EXPECT_EQ(travellers.handled[1], 0u);
        Epoch second(pe);
        EXPECT_EQ(second.wait(), 500u);
      }
    });
  }
}

/// The distance of each vertex of a graph in which v has edges to 2 v + 1 and 3 v + 2, modulo its size.
std::vector<std::uint32_t> serial_distances(std::uint32_t vertices) {
  std::vector<std::uint32_t> distance(vertices, ~0u), frontier{0};
  distance[0] = 0;
  for (std::uint32_t d = 1; !frontier.empty(); ++d) {
    std::vector<std::uint32_t> next;
    for (const std::uint32_t v : frontier) {
      for (const std::uint32_t w : {(2 * v + 1) % vertices, (3 * v + 2) % vertices}) {
        if (distance[w] != ~0u) continue;
        distance[w] = d;
        next.push_back(w);
      }
    }
    frontier = std::move(next);
  }
  return distance;
}

TEST(Epoch, separates_the_levels_of_a_search) {
  constexpr std::uint32_t vertices = 5000;
  const std::vector<std::uint32_t> expected = serial_distances(vertices);
  for (const Shape shape : shapes) {
    expect_run(shape, [&](Pe& pe) {
      const auto pes = std::uint32_t(pe.size()), id = std::uint32_t(pe.id());
      for (const Topology topology : {direct(), grid(1), grid(2)}) {
        std::vector<std::uint32_t> distance(vertices / pes + 1, ~0u), frontier, next;
        std::uint32_t depth = 0;
        Aggregator<std::uint32_t> visits(pe, {.topology = topology});
        visits.on([&](std::uint32_t v) {
          if (distance[v / pes] != ~0u) return;
          distance[v / pes] = depth;
          next.push_back(v);
        });
        if (id == 0) frontier.push_back(0), distance[0] = 0;
        for (std::uint64_t found = 1; found != 0;) {
          ++depth;
          Epoch level(pe);
          for (const std::uint32_t v : frontier) {
            for (const std::uint32_t w : {(2 * v + 1) % vertices, (3 * v + 2) % vertices}) visits.send(w % pes, w);
          }
          found = level.wait();
          frontier = std::exchange(next, {});
        }
        for (std::uint32_t v = id; v < vertices; v += pes) EXPECT_EQ(distance[v / pes], expected[v]) << v;
      }
    });
  }
}

TEST(Epoch, waits_for_a_slow_pe) {
  expect_run({4, 2}, [](Pe& pe) {
    Travellers travellers(pe, {.topology = grid(2)});
    for (int round = 0; round < 3; ++round) {
      Epoch epoch(pe);
      travellers.send({9, 0});
      if (pe.id() == 2) std::this_thread::sleep_for(20ms);
      EXPECT_EQ(epoch.wait(), 40u);
    }
  });
}

// --- all ways in which a message travels

TEST(Epoch, holds_messages_of_any_size_and_order) {
  for (const Shape shape : {Shape{1, 1}, Shape{3, 1}, Shape{7, 2}}) {
    expect_run(shape,
               [](Pe& pe) {
                 const std::size_t to = (pe.id() + 1) % pe.size();
                 for (const Topology topology : topologies) {
                   for (const bool ordered : {false, true}) {
                     Aggregator<std::uint32_t, std::string_view> texts(pe, {.topology = topology, .ordered = ordered});
                     std::uint32_t sum = 0;
                     std::vector<std::uint32_t> order;
                     texts.on([&](std::uint32_t n, std::string_view text) {
                       order.push_back(n);
                       EXPECT_EQ(text, std::string(text.size(), char('a' + n % 26)));
                       if (n < 20) texts.send((pe.id() + 1) % pe.size(), n + 52, text);
                     });
                     const std::string outside(100'000, 'z');
                     Epoch around(pe);
                     texts.send(to, 25, outside);
                     Epoch epoch(pe);
                     std::uint32_t n = 0;
                     for (const std::size_t bytes : {0u, 5u, 20u, 300u, 40'000u, 700'000u, 8u}) {
                       texts.send(to, n, std::string(bytes, char('a' + n)));
                       ++n;
                       sum += 2;
                     }
                     texts.send(to, 100, "");  // not forwarded: n is large
                     EXPECT_EQ(epoch.wait(), (sum + 1) * pe.size()) << to_string(topology);
                     EXPECT_EQ(around.wait(), (sum + 2) * pe.size());
                     std::erase_if(order, [](std::uint32_t m) { return m >= 20 && m != 100; });
                     if (!ordered) std::ranges::sort(order);
                     EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 100}));
                   }
                 }
               },
               {{"HEADWAY_BUDGET", "4M"}});
  }
}

TEST(Epoch, holds_messages_that_were_spilled) {
  for (const Shape shape : {Shape{2, 1}, Shape{5, 2}}) {
    Shared<std::uint64_t> spilled(shape.pes);
    expect_run(shape,
               [&](Pe& pe) {
                 for (const Topology topology : {grid(1), grid(2)}) {
                   // Each message of the first kind sets off a flood of the second from its handler.
                   Aggregator<std::uint32_t> sparks(pe, {.topology = topology});
                   Aggregator<std::uint64_t, std::uint64_t> flood(pe, {.topology = topology});
                   flood.on([&](std::uint64_t, std::uint64_t) {});
                   sparks.on([&](std::uint32_t n) {
                     for (std::uint32_t i = 0; i < n; ++i) flood.send(i % pe.size(), i, n);
                   });
                   Epoch first(pe);
                   for (std::size_t to = 0; to < pe.size(); ++to) sparks.send(to, 50'000);
                   first.close();
                   Epoch second(pe);
                   for (std::size_t to = 0; to < pe.size(); ++to) sparks.send(to, 1000);
                   EXPECT_EQ(second.wait(), 1001 * pe.size() * pe.size());
                   EXPECT_EQ(first.wait(), 50'001 * pe.size() * pe.size());
                   spilled[pe.id()] += flood.statistics().spilled_frames;
                 }
               },
               {{"HEADWAY_BUDGET", "1M"}});
    EXPECT_GT(*std::ranges::max_element(spilled), 0u);
  }
}

TEST(Epoch, holds_calls_that_wait_for_their_object) {
  Shared<std::atomic<std::uint32_t>> called;
  expect_run({2, 1}, [&](Pe& pe) {
    Epoch outer(pe);
    Epoch epoch(pe);
    std::optional<DistObject<int>> object;
    if (pe.id() == 0) {
      object.emplace(pe, 0);
      rpc_ff(
          pe, 1,
          [](Pe& here, int& value) {
            value = 7;
            rpc_ff(here, 0, [] {});  // belongs to the epoch, too
          },
          *object);
      pe.engine().flush_all(am::FlushReason::requested);
      *called = 1;
    } else {
      EXPECT_TRUE(progress_until(pe, *called));
      for (int i = 0; i < 1000; ++i) pe.progress();
      EXPECT_EQ(pe.engine().undeliverable_messages(am::root_scope), 1u);
      object.emplace(pe, 0);
    }
    EXPECT_EQ(epoch.wait(), 2u);
    EXPECT_EQ(outer.wait(), 2u);
    EXPECT_EQ(**object, pe.id() == 1 ? 7 : 0);
    pe.quiesce();
  });
}

TEST(Epoch, frames_stay_full_where_two_epochs_send_in_turns) {
  for (const Topology topology : {grid(1), grid(2)}) {
    Shared<AggregatorStatistics> all(4);
    constexpr std::uint32_t rounds = 20'000;
    expect_run({4, 2}, [&](Pe& pe) {
      Aggregator<std::uint64_t> words(pe, patient(topology));
      // Messages of the first epoch come back while this PE sends in the second.
      words.on([&](std::uint64_t n) {
        if (n != 0) words.send((pe.id() + n) % pe.size(), n - 1);
      });
      Epoch first(pe);
      for (std::uint32_t i = 0; i < rounds; ++i) words.send((pe.id() + 1) % pe.size(), 9);
      first.close();
      Epoch second(pe);
      for (std::uint32_t i = 0; i < rounds; ++i) words.send((pe.id() + 1) % pe.size(), 9);
      EXPECT_EQ(second.wait(), 10 * rounds * pe.size());
      EXPECT_EQ(first.wait(), 10 * rounds * pe.size());
      pe.quiesce();
      all[pe.id()] = words.statistics();
    });
    std::uint64_t messages = 0, frames = 0;
    for (const AggregatorStatistics& one : all) messages += one.messages + one.forwarded, frames += one.frames;
    EXPECT_GT(messages / frames, 100u) << frames << " frames; about 500 messages fill one";
  }
}

// --- numbers

TEST(Epoch, hundreds_follow_one_another_within_one_that_stays_open) {
  for (const Shape shape : {Shape{1, 1}, Shape{3, 3}, Shape{5, 2}}) {
    expect_run(shape, [](Pe& pe) {
      Travellers travellers(pe, {});
      Epoch outer(pe);
      for (int i = 0; i < 400; ++i) {
        Epoch level(pe);
        travellers.send({1, 0});
        EXPECT_EQ(level.wait(), 2 * pe.size());
      }
      EXPECT_EQ(outer.wait(), 800 * pe.size());
      for (int i = 0; i < 100; ++i) {  // the number that has just become free is given again soon
        Epoch level(pe);
        travellers.send({1, 0});
        EXPECT_EQ(level.wait(), 2 * pe.size());
      }
    });
  }
}

TEST(Epoch, hundreds_may_be_under_way_and_new_ones_wait_for_the_oldest) {
  for (const Shape shape : {Shape{1, 1}, Shape{3, 1}, Shape{5, 2}}) {
    expect_run(shape, [](Pe& pe) {
      Travellers travellers(pe, {.topology = grid(2)});
      std::vector<std::unique_ptr<Epoch>> epochs;
      for (std::uint32_t i = 0; i < 300; ++i) {
        epochs.push_back(std::make_unique<Epoch>(pe));
        travellers.send({i % 7, 0});
        epochs.back()->close();
      }
      for (std::uint32_t i = 0; i < 300; ++i) EXPECT_EQ(epochs[299 - i]->wait(), ((299 - i) % 7 + 1) * pe.size());
    });
  }
}

TEST(Epoch, thirty_two_may_be_open_within_one_another_and_more_are_refused) {
  expect_run({3, 1}, [](Pe& pe) {
    Travellers travellers(pe, {});
    for (int round = 0; round < 5; ++round) {
      std::vector<std::unique_ptr<Epoch>> epochs;
      for (int i = 0; i < 32; ++i) {
        epochs.push_back(std::make_unique<Epoch>(pe));
        travellers.send({0, 0});
      }
      try {
        Epoch one_more(pe);
        ADD_FAILURE() << "33 epochs";
      } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("more than 32 nested epochs"), std::string::npos) << error.what();
      }
      for (std::uint64_t i = 1; !epochs.empty(); ++i, epochs.pop_back()) EXPECT_EQ(epochs.back()->wait(), 3 * i);
    }
  });
}

}  // namespace
}  // namespace headway
