// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <headway/aggregate/aggregator.hpp>
#include <memory>
#include <span>
#include <string>
#include <support/run_pes.hpp>
#include <thread>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Settings;
using testing::Shape;
using testing::Shared;
using namespace std::chrono_literals;

constexpr Topology topologies[] = {direct(), grid(1), grid(2), grid(3)};
const Settings small_budget{{"HEADWAY_BUDGET", "1M"}};

/// Sleeps, without progress, until `flag` is set. False after 10 s.
bool await(const std::atomic<std::uint32_t>& flag) {
  for (int i = 0; i < 10'000 && flag.load() == 0; ++i) std::this_thread::sleep_for(1ms);
  return flag.load() != 0;
}

/// Messages that are written where they arrive, and cannot be handled there yet, hold their sender back as frames do.
TEST(Pressure, messages_for_a_missing_aggregator_are_held_up_to_a_part_of_the_budget) {
  expect_run({2, 1},
             [](Pe& pe) {
               constexpr std::uint64_t messages = 10'000;
               const std::vector<std::byte> content(4000, std::byte(7));
               if (pe.id() == 1) {
                 for (const auto end = std::chrono::steady_clock::now() + 200ms;
                      std::chrono::steady_clock::now() < end;)
                   pe.progress();
               }
               Aggregator<std::uint64_t, std::span<const std::byte>> numbered(pe, {.topology = direct()});
               std::uint64_t next = 0;
               numbered.on([&](std::uint64_t number, std::span<const std::byte> came) {
                 EXPECT_EQ(number, next++);
                 EXPECT_TRUE(std::ranges::equal(came, content));
               });
               for (std::uint64_t i = 0; pe.id() == 0 && i < messages; ++i) numbered.send(1, i, content);
               pe.quiesce();
               EXPECT_EQ(next, pe.id() == 1 ? messages : 0);
             },
             {{"HEADWAY_BUDGET", "16M"}, {"HEADWAY_SPILL", "8M"}});
}

// --- try_send

// How many PEs have left quiesce(): until then they still take what arrives.
const Shared<std::atomic<std::uint32_t>> left_quiesce;

template <class... Args>
void expect_refusal(Pe& pe, const AggregatorOptions& options, std::atomic<std::uint32_t>& refused,
                    const Args&... args) {
  Aggregator<Args...> items(pe, options);
  std::uint64_t handled = 0;
  items.on([&](const auto&...) { ++handled; });
  pe.quiesce();
  if (pe.id() != 0) {  // does not take anything until its sender has been refused
    ++*left_quiesce;
    EXPECT_TRUE(await(refused)) << "try_send waited";
    EXPECT_EQ(pe.quiesce(), refused.load() - 1);
    EXPECT_EQ(handled, pe.id() == 1 ? refused.load() - 1 : 0);
    return;
  }
  while (*left_quiesce + 1 < pe.size()) std::this_thread::sleep_for(1ms);
  *left_quiesce = 0;
  std::uint32_t taken = 0;
  while (taken < 100'000'000 && items.try_send(1, args...)) ++taken;
  EXPECT_LT(taken, 100'000'000u);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(items.try_send(1, args...));
  EXPECT_EQ(items.statistics().messages, taken);
  refused = taken + 1;
  EXPECT_EQ(pe.quiesce(), taken);
  EXPECT_EQ(handled, 0u);
}

TEST(TrySend, refuses_when_there_is_no_room_and_nothing_is_lost) {
  for (const Topology topology : topologies) {
    for (const std::size_t buffer_bytes : {std::size_t(256), 16_KiB}) {
      const AggregatorOptions options{.buffer_bytes = buffer_bytes, .topology = topology, .flush_when_idle = false};
      Shared<std::atomic<std::uint32_t>> refused(3);
      expect_run(
          {4, 1},
          [&](Pe& pe) {
            expect_refusal<std::uint64_t>(pe, options, refused[0], 7);
            expect_refusal<std::uint64_t, std::string_view>(pe, options, refused[1], 7,
                                                            "some text of 30 characters ...");
            expect_refusal<std::string_view>(pe, options, refused[2], std::string(5000, 'x'));
          },
          small_budget);
    }
  }
}

TEST(TrySend, refuses_a_message_in_parts_that_would_have_to_wait) {
  for (const Topology topology : topologies) {
    for (const bool ordered : {false, true}) {
      const AggregatorOptions options{.buffer_bytes = 16_KiB, .topology = topology, .ordered = ordered};
      Shared<std::atomic<std::uint32_t>> refused;
      expect_run(
          {2, 1}, [&](Pe& pe) { expect_refusal<std::string_view>(pe, options, *refused, std::string(100'000, 'x')); },
          small_budget);
    }
  }
}

TEST(TrySend, a_refusal_leaves_other_targets_open) {
  Shared<std::atomic<std::uint32_t>> done, to_slow_of_0;
  expect_run(
      {3, 1},
      [&](Pe& pe) {
        Aggregator<std::uint64_t> words(pe, {.buffer_bytes = 4_KiB});
        std::uint64_t handled = 0;
        words.on([&](std::uint64_t) { ++handled; });
        pe.quiesce();
        if (pe.id() == 0) {
          while (*left_quiesce == 0) std::this_thread::sleep_for(1ms);
          *left_quiesce = 0;
          while (words.try_send(1, 1)) ++*to_slow_of_0;
          for (int i = 0; i < 1000; ++i) {
            EXPECT_FALSE(words.try_send(1, 1));
            words.send(2, 1);  // need not wait for the slow one
          }
          *done = 1;
        } else if (pe.id() == 1) {
          ++*left_quiesce;
          EXPECT_TRUE(await(*done));
        }
        pe.quiesce();
        EXPECT_EQ(handled, pe.id() == 2 ? 1000u : pe.id() == 1 ? to_slow_of_0->load() : 0u);
      },
      small_budget);
}

TEST(TrySend, from_a_handler_is_refused_rather_than_spilled) {
  const Shared<std::atomic<std::uint32_t>> refused_after;
  expect_run(
      {2, 1},
      [&](Pe& pe) {
        Aggregator<std::uint64_t> replies(pe, {.buffer_bytes = 4_KiB});
        Aggregator<std::uint32_t> starts(pe);
        std::uint64_t handled = 0;
        replies.on([&](std::uint64_t) { ++handled; });
        starts.on([&](std::uint32_t) {
          std::uint32_t sent = 0;
          while (sent < 10'000'000 && replies.try_send(1, 1)) ++sent;
          *refused_after = sent + 1;
        });
        pe.quiesce();
        if (pe.id() == 0) {
          while (*left_quiesce == 0) std::this_thread::sleep_for(1ms);
          *left_quiesce = 0;
          starts.send(0, 1);
        }
        // The receiver takes nothing before the handler has been refused.
        if (pe.id() == 1) {
          ++*left_quiesce;
          EXPECT_TRUE(await(*refused_after));
        }
        const std::uint64_t all = pe.quiesce();
        const std::uint32_t sent = *refused_after - 1;
        EXPECT_LT(sent, 10'000'000u);
        EXPECT_EQ(all, 1 + sent);
        EXPECT_EQ(handled, pe.id() == 1 ? sent : 0);
        EXPECT_LT(replies.statistics().spilled_bytes_peak, 1_KiB);  // the runtime's own at most
      },
      small_budget);
}

// --- send waits for room, whatever else is held

TEST(Send, waits_for_a_slow_receiver_and_loses_nothing) {
  for (const Topology topology : topologies) {
    expect_run(
        {4, 1},
        [&](Pe& pe) {
          Aggregator<std::uint64_t, std::span<const std::uint8_t>> items(pe, {.topology = topology});
          std::uint64_t handled = 0;
          items.on([&](std::uint64_t, std::span<const std::uint8_t>) {
            if (++handled % 1000 == 0) std::this_thread::sleep_for(1ms);
          });
          const std::vector<std::uint8_t> bytes(300);
          if (pe.id() != 3) {
            for (std::uint64_t i = 0; i < 20'000; ++i) items.send(3, i, bytes);
          }
          EXPECT_EQ(pe.quiesce(), 60'000u);
          EXPECT_LE(items.statistics().peak_target_bytes, 256_KiB + 64_KiB);
          EXPECT_EQ(items.statistics().spilled_frames, 0u);
        },
        small_budget);
  }
}

TEST(Send, finds_room_behind_buffers_that_nothing_else_would_send) {
  // Every aggregator opens a buffer to every PE; together they would hold more than the budget.
  for (const Shape shape : {Shape{2, 1}, Shape{3, 1}, Shape{7, 7}}) {
    for (const Topology topology : {grid(1), grid(2)}) {
      expect_run(shape,
                 [&](Pe& pe) {
                   const AggregatorOptions options{.buffer_bytes = base::buffer_bytes_max,
                                                   .timeout = no_timeout,
                                                   .topology = topology,
                                                   .flush_when_idle = false};
                   std::vector<std::unique_ptr<Aggregator<std::uint64_t>>> all;
                   std::uint64_t handled = 0;
                   for (int i = 0; i < 6; ++i) {
                     all.push_back(std::make_unique<Aggregator<std::uint64_t>>(pe, options));
                     all.back()->on([&](std::uint64_t) { ++handled; });
                   }
                   for (auto& one : all) {
                     for (std::size_t target = 0; target < pe.size(); ++target) one->send(target, 1);
                   }
                   EXPECT_EQ(pe.quiesce(), 6 * pe.size() * pe.size());
                   EXPECT_EQ(handled, 6 * pe.size());
                 },
                 {{"HEADWAY_BUDGET", "1M"}, {"HEADWAY_STALL", "3s"}});
    }
  }
}

TEST(Send, a_large_message_finds_room_behind_its_own_buffer) {
  for (const Shape shape : {Shape{1, 1}, Shape{2, 1}}) {
    expect_run(shape,
               [&](Pe& pe) {
                 Aggregator<std::string_view> texts(
                     pe, {.buffer_bytes = base::buffer_bytes_max, .timeout = no_timeout, .flush_when_idle = false});
                 std::uint64_t bytes = 0;
                 texts.on([&](std::string_view text) { bytes += text.size(); });
                 const std::size_t target = (pe.id() + 1) % pe.size();
                 texts.send(target, "small");
                 texts.send(target, std::string(400'000, 'x'));
                 texts.send(target, "small");
                 EXPECT_EQ(pe.quiesce(), 3 * pe.size());
                 EXPECT_EQ(bytes, 400'010u);
               },
               {{"HEADWAY_BUDGET", "1M"}, {"HEADWAY_STALL", "3s"}});
  }
}

TEST(Send, a_flood_through_forwarding_pes_of_several_topologies_comes_through) {
  for (const Shape shape : {Shape{8, 1}, Shape{13, 4}}) {
    expect_run(
        shape,
        [](Pe& pe) {
          std::uint64_t handled = 0;
          std::vector<std::unique_ptr<Aggregator<std::uint64_t, std::span<const std::uint8_t>>>> all;
          for (const unsigned dimensions : {3, 2, 1, 4, 2}) {
            all.push_back(std::make_unique<Aggregator<std::uint64_t, std::span<const std::uint8_t>>>(
                pe, AggregatorOptions{.topology = grid(dimensions), .flush_when_idle = dimensions != 3}));
            all.back()->on([&](std::uint64_t, std::span<const std::uint8_t>) { ++handled; });
          }
          const std::vector<std::uint8_t> bytes(700);
          for (std::uint64_t i = 0; i < 10'000; ++i) {
            all[i % all.size()]->send((i * 7 + i / 5 * pe.id()) % pe.size(), i, std::span(bytes.data(), i % 701));
          }
          EXPECT_EQ(pe.quiesce(), 10'000 * pe.size());
        },
        small_budget);
  }
}

// --- handlers that are deferred, and spill

TEST(DeferHandlers, no_handler_runs_and_no_send_waits_while_it_lives) {
  for (const Topology topology : topologies) {
    expect_run(
        {3, 1},
        [&](Pe& pe) {
          Aggregator<std::uint64_t> words(pe, {.buffer_bytes = 4_KiB, .topology = topology});
          std::uint64_t handled = 0;
          words.on([&](std::uint64_t) { ++handled; });
          {
            const DeferHandlers guard(pe);
            for (std::uint64_t i = 0; i < 300'000; ++i) words.send(i % pe.size(), i);  // more than the budget
            for (int i = 0; i < 100; ++i) EXPECT_FALSE(pe.progress());
            EXPECT_EQ(handled, 0u);
            EXPECT_THROW(pe.quiesce(), UsageError);
            { const DeferHandlers nested(pe); }
            words.send(pe.id(), 1);
            EXPECT_EQ(handled, 0u);
          }
          EXPECT_GT(words.statistics().spilled_frames, 0u);
          EXPECT_EQ(pe.quiesce(), 300'001 * pe.size());
          EXPECT_EQ(handled, 300'001u);
        },
        small_budget);
  }
}

/// One handler of PE 0 sends `messages` of 1000 bytes to PE 1, which takes none before it has been told to.
class FanOut {
 public:
  FanOut(Pe& pe, Topology topology, std::uint32_t messages) : items_(pe, {.topology = topology}), messages_(messages) {
    items_.on([this](std::uint32_t fan_out, std::span<const std::uint8_t>) {
      ++handled_;
      for (std::uint32_t i = 0; i < fan_out; ++i) items_.send(1, 0u, bytes_);
      if (fan_out != 0) in_the_middle_();
      for (std::uint32_t i = 0; i < fan_out; ++i) items_.send(1, 0u, bytes_);
    });
  }

  /// `in_the_middle` runs in the handler, when half of the messages are sent.
  void start(std::function<void()> in_the_middle) {
    in_the_middle_ = std::move(in_the_middle);
    items_.send(0, messages_ / 2, bytes_);
  }
  std::uint64_t handled() const { return handled_; }
  AggregatorStatistics statistics() const { return items_.statistics(); }

 private:
  Aggregator<std::uint32_t, std::span<const std::uint8_t>> items_;
  std::uint32_t messages_;
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(1000);
  std::function<void()> in_the_middle_;
  std::uint64_t handled_ = 0;
};

TEST(Spill, frames_of_handlers_beyond_the_budget_are_reported_and_delivered) {
  for (const Topology topology : topologies) {
    Shared<std::atomic<std::uint32_t>> sent;
    expect_run(
        {2, 1},
        [&](Pe& pe) {
          FanOut fan_out(pe, topology, 20'000);
          EXPECT_TRUE(pe.id() == 0 || await(*sent));
          if (pe.id() == 0) {
            fan_out.start([] {});
            for (int i = 0; i < 1000 && fan_out.handled() == 0; ++i) pe.progress();
            *sent = 1;
          }
          EXPECT_EQ(pe.quiesce(), 20'001u);
          const AggregatorStatistics statistics = fan_out.statistics();
          EXPECT_EQ(statistics.spilled_frames != 0, pe.id() == 0);
          EXPECT_EQ(statistics.spilled_bytes_peak > 15'000'000, pe.id() == 0);
          EXPECT_EQ(fan_out.handled(), pe.id() == 0 ? 1u : 20'000u);
        },
        small_budget);
  }
}

TEST(Spill, frames_claimed_behind_spilled_ones_do_not_hold_them_up) {
  for (const Topology topology : topologies) {
    Shared<std::atomic<std::uint32_t>> half, taken;
    expect_run({2, 1},
               [&](Pe& pe) {
                 FanOut fan_out(pe, topology, 20'000);
                 if (pe.id() == 1) {
                   EXPECT_TRUE(await(*half));
                   while (pe.progress())
                     continue;  // gives back what lay in frame memory; the spilled rest is still at PE 0
                   *taken = 1;
                 } else {
                   // Half of the messages are sent with spilling. Then there is room again, and the other half finds
                   // it.
                   fan_out.start([&] {
                     *half = 1;
                     EXPECT_TRUE(await(*taken));
                   });
                 }
                 EXPECT_EQ(pe.quiesce(), 20'001u);
                 EXPECT_EQ(fan_out.handled(), pe.id() == 0 ? 1u : 20'000u);
               },
               {{"HEADWAY_BUDGET", "1M"}, {"HEADWAY_STALL", "3s"}});
  }
}

TEST(Spill, small_messages_that_wait_for_a_full_receiver_go_once) {
  for (const std::size_t pes : {2, 3}) {
    for (const Topology topology : {direct(), grid(1), grid(2)}) {
      expect_run(
          {pes, 1},
          [&](Pe& pe) {
            constexpr std::uint64_t numbers = 100'000;
            Aggregator<std::uint64_t> words(pe, {.buffer_bytes = 256, .threshold = 0, .topology = topology});
            Aggregator<> starts(pe);
            std::uint64_t handled = 0, sum = 0;
            words.on([&](std::uint64_t number) {
              ++handled;
              sum += number;
            });
            starts.on([&] {
              for (std::uint64_t i = 0; i < numbers; ++i) words.send(pe.size() / 2, i);
            });
            starts.send(pe.id());
            EXPECT_EQ(pe.quiesce(), pe.size() + pe.size() * numbers);
            EXPECT_EQ(handled, pe.id() == pe.size() / 2 ? pe.size() * numbers : 0);
            EXPECT_EQ(sum, pe.id() == pe.size() / 2 ? pe.size() * (numbers * (numbers - 1) / 2) : 0);
          },
          small_budget);
    }
  }
}

TEST(Spill, beyond_its_cap_the_run_ends_with_the_cap_and_the_setting) {
  for (const Topology topology : topologies) {
    Shared<std::atomic<std::uint32_t>> never;
    const testing::Outcome outcome = testing::catch_run({2, 1},
                                                        [&](Pe& pe) {
                                                          FanOut fan_out(pe, topology, 20'000);
                                                          if (pe.id() == 1) (void)await(*never);  // it is ended before
                                                          if (pe.id() == 0) fan_out.start([] {});
                                                          pe.quiesce();
                                                        },
                                                        {{"HEADWAY_BUDGET", "1M"}, {"HEADWAY_SPILL", "2M"}});
    EXPECT_EQ(outcome.status, exit_status::failed);
    EXPECT_NE(outcome.text.find("exceed the cap of 2 MiB (HEADWAY_SPILL)"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("PE 0"), std::string::npos) << outcome.text;
  }
}

}  // namespace
}  // namespace headway
