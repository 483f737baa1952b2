// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <span>
#include <support/run_pes.hpp>
#include <support/topologies.hpp>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::shapes;
using testing::topologies;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 31) * 0x7fb5d329728ea185;
  return x ^ x >> 27;
}

/// Two streams of messages from one PE to another: from its main program, and from its handlers. Each keeps its order.
enum Stream : std::uint32_t { from_program, from_handlers, streams };

struct Label {
  std::uint32_t stream;
  std::uint32_t number;  // of this pair and stream
  std::uint32_t steps_left;
  std::uint32_t bytes;
};

/// Sends numbered messages of many sizes and checks that each stream arrives as it was sent.
class Ordered {
 public:
  Ordered(Pe& pe, const AggregatorOptions& options, std::size_t bytes_max)
      : pe_(pe),
        items_(pe, options),
        content_(bytes_max, 0x5a),
        sent_(streams * pe.size()),
        next_(streams * pe.size()) {
    items_.on([this](PeId source, const Label& label, std::span<const std::uint8_t> bytes) {
      EXPECT_EQ(label.number, next_[label.stream * pe_.size() + source]++) << source << " -> " << pe_.id();
      EXPECT_EQ(label.bytes, bytes.size());
      ++handled_;
      if (label.steps_left != 0)
        send(from_handlers, mix(label.number * 31 + source) % pe_.size(), label.steps_left - 1);
    });
  }

  void send(Stream stream, std::size_t target, std::uint32_t steps_left) {
    const std::uint64_t random = mix(++made_ * 977 + pe_.id() * 7919);
    // mostly small, every now and then above the cutoff, the buffer, or the largest frame
    const std::size_t bytes = random % 97 == 0   ? content_.size()
                              : random % 11 == 0 ? random / 97 % std::min<std::size_t>(content_.size(), 5000)
                                                 : random / 97 % 60;
    const std::uint32_t number = sent_[stream * pe_.size() + target]++;
    items_.send(target, Label{stream, number, steps_left, std::uint32_t(bytes)}, std::span(content_.data(), bytes));
  }

  void flush() { items_.flush(); }
  std::uint64_t handled() const { return handled_; }

 private:
  Pe& pe_;
  Aggregator<Label, std::span<const std::uint8_t>> items_;
  std::vector<std::uint8_t> content_;
  std::vector<std::uint32_t> sent_, next_;
  std::uint64_t made_ = 0, handled_ = 0;
};

void run_ordered(Pe& pe, AggregatorOptions options, std::size_t bytes_max, std::uint32_t messages,
                 std::uint32_t steps) {
  options.ordered = true;
  Ordered ordered(pe, options, bytes_max);
  for (std::uint32_t i = 0; i < messages; ++i) {
    ordered.send(from_program, mix(i) % pe.size(), i % (steps + 1));
    if (i % 61 == 0) pe.progress();
    if (i % 43 == 0) ordered.flush();
  }
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < messages; ++i) all += i % (steps + 1) + 1;
  EXPECT_EQ(pe.quiesce(), all * pe.size());
}

TEST(Ordered, messages_of_any_size_keep_their_order_on_every_route) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (const Topology topology : topologies) {
        run_ordered(pe, {.buffer_bytes = 1_KiB, .topology = topology}, 20'000, 600, 0);
        run_ordered(pe, {.topology = topology}, 300'000, 300, 0);
      }
    });
  }
}

TEST(Ordered, messages_that_handlers_send_keep_their_order_too) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (const Topology topology : topologies) {
        run_ordered(pe, {.buffer_bytes = 512, .topology = topology}, 10'000, 200, 5);
        run_ordered(pe, {.buffer_bytes = 16_KiB, .topology = topology}, 100'000, 100, 3);
      }
    });
  }
}

TEST(Ordered, the_order_holds_at_the_limits_of_every_option) {
  for (const Shape shape : {Shape{5, 1}, Shape{8, 4}}) {
    expect_run(shape, [](Pe& pe) {
      using namespace std::chrono_literals;
      for (const Topology topology : topologies) {
        for (const auto& [threshold, cutoff] : {std::pair(0.0, 1.0), {1.0, 0.0}, {0.0, 0.0}, {0.5, 0.5}}) {
          for (const bool idle : {false, true}) {
            run_ordered(pe,
                        {.buffer_bytes = 256,
                         .threshold = threshold,
                         .cutoff = cutoff,
                         .timeout = 0ns,
                         .topology = topology,
                         .flush_when_idle = idle},
                        3000, 60, 2);
            run_ordered(pe,
                        {.buffer_bytes = 1000,
                         .threshold = threshold,
                         .cutoff = cutoff,
                         .timeout = no_timeout,
                         .topology = topology,
                         .flush_when_idle = idle},
                        3000, 60, 2);
          }
        }
      }
    });
  }
}

TEST(Ordered, the_order_holds_when_memory_is_short_and_handlers_spill) {
  for (const Shape shape : {Shape{3, 1}, Shape{8, 4}}) {
    expect_run(shape,
               [](Pe& pe) {
                 for (const Topology topology : topologies) {
                   run_ordered(pe, {.buffer_bytes = 64_KiB, .topology = topology}, 200'000, 500, 6);
                 }
               },
               {{"HEADWAY_BUDGET", "1M"}});
  }
}

TEST(Ordered, fixed_messages_keep_their_order_on_every_route) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (const Topology topology : topologies) {
        for (const std::size_t buffer_bytes : {std::size_t(256), 4_KiB}) {
          Aggregator<std::uint32_t> numbers(pe, {.buffer_bytes = buffer_bytes, .topology = topology, .ordered = true});
          std::vector<std::uint32_t> next(pe.size()), sent(pe.size());
          numbers.on([&](PeId source, std::uint32_t number) {
            EXPECT_EQ(number, next[source]++) << source << " -> " << pe.id();
          });
          for (std::uint32_t i = 0; i < 5000; ++i) {
            const std::size_t target = mix(i + pe.id()) % pe.size();
            numbers.send(target, sent[target]++);
            if (i % 300 == 0) numbers.flush();
          }
          EXPECT_EQ(pe.quiesce(), 5000 * pe.size());
        }
      }
    });
  }
}

}  // namespace
}  // namespace headway
