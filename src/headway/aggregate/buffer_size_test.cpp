// SPDX-License-Identifier: BSD-3-Clause
// Buffers without a given size grow and shrink with the bytes that gather for each destination.
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/launch/simulation.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headway {
namespace {

using aggregate::BufferSize;
using aggregate::SizeLimits;
using am::FlushReason;

constexpr SizeLimits limits{1_KiB, 4_KiB, 64_KiB};
constexpr unsigned sparse = 4;  // in a row, before the size is halved

std::size_t after(BufferSize& size, FlushReason reason, std::size_t used, unsigned times = 1) {
  for (unsigned i = 0; i < times; ++i) size.posted(limits, reason, used);
  return size.next(limits);
}

TEST(BufferSize, full_buffers_double_the_next_one_up_to_the_most) {
  BufferSize size;
  EXPECT_EQ(size.next(limits), 4_KiB);
  EXPECT_EQ(after(size, FlushReason::full, 4_KiB), 8_KiB);
  EXPECT_EQ(after(size, FlushReason::full, 8_KiB), 16_KiB);
  EXPECT_EQ(after(size, FlushReason::full, 60_KiB, 10), 64_KiB);
}

TEST(BufferSize, buffers_of_which_less_than_a_quarter_is_used_halve_the_next_one_down_to_the_least) {
  for (const FlushReason reason : {FlushReason::idle, FlushReason::timeout, FlushReason::requested}) {
    BufferSize size;
    EXPECT_EQ(after(size, reason, 1_KiB - 1, sparse - 1), 4_KiB);
    EXPECT_EQ(after(size, reason, 1_KiB - 1), 2_KiB);
    EXPECT_EQ(after(size, reason, 100, 100 * sparse), 1_KiB);
  }
}

TEST(BufferSize, a_well_used_buffer_restarts_the_count) {
  BufferSize size;
  for (unsigned i = 0; i < 100; ++i) {
    after(size, FlushReason::idle, 100, sparse - 1);
    EXPECT_EQ(after(size, FlushReason::idle, 1_KiB), 4_KiB);
  }
}

TEST(BufferSize, a_buffer_posted_for_lack_of_memory_does_not_grow_the_next) {
  BufferSize size;
  EXPECT_LE(after(size, FlushReason::full, 100, 100), 4_KiB);
}

TEST(BufferSize, a_message_that_needs_more_gets_it_at_once) {
  BufferSize size;
  size.hold(limits, 3_KiB);
  EXPECT_EQ(size.next(limits), 4_KiB);
  size.hold(limits, 5_KiB);
  EXPECT_EQ(size.next(limits), 8_KiB);
  size.hold(limits, 40_KiB);
  EXPECT_EQ(size.next(limits), 40_KiB);
  size.hold(limits, 1_GiB);
  EXPECT_EQ(size.next(limits), 64_KiB);
}

/// Runs body(pe) on simulated PEs.
template <class Body>
void expect_simulated(std::size_t pes, Body body) {
  const launch::SimulateResult result = launch::simulate({.pes = pes, .budget_bytes = 16_MiB}, [&](Pe& pe) {
    body(pe);
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

TEST(AdaptedSizes, a_given_size_is_every_buffers) {
  expect_simulated(2, [](Pe& pe) {
    Aggregator<std::uint64_t> words(pe, {.buffer_bytes = 16_KiB});
    words.on([](std::uint64_t) {});
    for (unsigned i = 0; i < 20; ++i) {
      words.send(1 - pe.id(), i);
      words.send(1 - pe.id(), i);
      pe.quiesce();
    }
    EXPECT_EQ(words.statistics().peak_buffer_bytes, 16_KiB);
    EXPECT_DOUBLE_EQ(words.statistics().fill_mean, double(transport::frame_overhead + 16) / 16_KiB);
  });
}

TEST(AdaptedSizes, a_stream_takes_few_frames_more_than_with_the_largest_buffers) {
  expect_simulated(2, [](Pe& pe) {
    constexpr std::uint64_t messages = 200'000;
    Aggregator<std::uint64_t> words(pe);
    words.on([](std::uint64_t) {});
    for (std::uint64_t i = 0; i < messages; ++i) words.send(1 - pe.id(), i);
    pe.quiesce();
    const std::uint64_t least = messages * 8 / words.options().buffer_bytes;
    EXPECT_EQ(words.options().buffer_bytes, 64_KiB);
    EXPECT_LE(words.statistics().frames, least + 6);
    EXPECT_EQ(words.statistics().peak_buffer_bytes, 64_KiB);
  });
}

TEST(AdaptedSizes, memory_follows_the_traffic_to_each_destination) {
  expect_simulated(8, [](Pe& pe) {
    Aggregator<std::uint64_t> words(pe);
    words.on([](std::uint64_t) {});
    const std::size_t busy = (pe.id() + 1) % pe.size();
    for (unsigned round = 0; round < 20; ++round) {
      for (std::size_t target = 0; target < pe.size(); ++target) {
        for (unsigned i = 0; i < (target == busy ? 20'000 : 12); ++i) words.send(target, i);
      }
      pe.quiesce();
    }
    const std::size_t largest = words.options().buffer_bytes;
    EXPECT_LE(words.statistics().peak_buffer_bytes, largest + (pe.size() - 1) * 4_KiB);
    EXPECT_LT(words.statistics().peak_buffer_bytes, pe.size() * largest / 2);
  });
}

/// Small messages to all, by which buffers shrink, and then two that need more.
void expect_large_behind_small(Pe& pe, const AggregatorOptions& options, std::string_view small) {
  Aggregator<std::string_view> texts(pe, options);
  std::size_t bytes = 0;
  texts.on([&](std::string_view text) { bytes += text.size(); });
  const auto cutoff = std::size_t(texts.options().cutoff * double(texts.options().buffer_bytes));
  EXPECT_GT(cutoff, 3 * 1_KiB);  // they shrink to 1 KiB
  const std::string large(cutoff, 'x');
  for (unsigned round = 0; round < 10; ++round) {
    for (unsigned i = 0; i < 20; ++i) {
      for (std::size_t target = 0; target < pe.size(); ++target) texts.send(target, small);
      pe.quiesce();
    }
    for (std::size_t target = 0; target < pe.size(); ++target) {
      texts.send(target, small);
      texts.send(target, large);
      texts.send(target, large);
    }
    pe.quiesce();
  }
  EXPECT_EQ(bytes, 10 * pe.size() * (21 * small.size() + 2 * cutoff));
  EXPECT_EQ(texts.statistics().alone, 0u);
}

TEST(AdaptedSizes, a_message_that_does_not_fit_a_shrunken_buffer_still_gathers) {
  for (const Topology topology : {grid(1), grid(2), grid(3)}) {
    for (const bool ordered : {false, true}) {
      for (const std::string_view small : {"xx", ""}) {
        expect_simulated(5, [&](Pe& pe) {
          expect_large_behind_small(pe, {.topology = topology, .flush_when_idle = false, .ordered = ordered}, small);
        });
      }
    }
  }
}

struct Page {
  std::uint64_t words[128];  // 1 KiB
};

TEST(AdaptedSizes, messages_of_fixed_size_have_buffers_for_several_at_least) {
  expect_simulated(3, [](Pe& pe) {
    Aggregator<Page> pages(pe);
    std::uint64_t sum = 0;
    pages.on([&](const Page& page) { sum += page.words[127]; });
    Page page{};
    page.words[127] = 1;
    for (unsigned round = 0; round < 50; ++round) {
      for (unsigned i = 0; i < 4; ++i) pages.send((pe.id() + 1) % pe.size(), page);
      pe.quiesce();
    }
    EXPECT_EQ(sum, 200u);
    EXPECT_EQ(pages.statistics().frames, 50u);
  });
}

TEST(AdaptedSizes, the_largest_size_is_derived_from_the_frame_cost_of_the_transport) {
  launch::SimulateOptions options{.pes = 64, .budget_bytes = 16_MiB};
  for (const auto& [overhead_ns, bytes] : {std::pair(0, 8_KiB), {1'500, 64_KiB}}) {
    options.conditions.overhead_ns = overhead_ns;
    options.conditions.gap_per_byte_ns = 0.4;
    const launch::SimulateResult result = launch::simulate(options, [expected = bytes](Pe& pe) {
      const Aggregator<std::string_view> texts(pe);
      EXPECT_EQ(texts.options().buffer_bytes, expected);
      return 0;
    });
    EXPECT_EQ(result.status, 0) << result.text;
  }
}

// --- above the cutoff

template <std::size_t bytes>
struct Block {
  std::uint64_t words[bytes / 8];
};

/// Statistics for a message of fixed size, or for a text of the same size.
template <class Message>
AggregatorStatistics statistics_of(Pe& pe, const AggregatorOptions& options, const Message& message) {
  Aggregator<Message> messages(pe, options);
  messages.on([](const Message&) {});
  for (unsigned i = 0; i < 50; ++i) messages.send((pe.id() + 1) % pe.size(), message);
  pe.quiesce();
  return messages.statistics();
}

template <class Message>
void expect_as_direct(const Message& message, Topology topology) {
  expect_simulated(4, [&](Pe& pe) {
    const AggregatorStatistics routed = statistics_of(pe, {.topology = topology}, message);
    const AggregatorStatistics single = statistics_of(pe, {.topology = direct()}, message);
    EXPECT_GE(routed.alone, 50u);
    EXPECT_EQ(routed.alone, single.alone);
    EXPECT_EQ(routed.frames, single.frames);
    EXPECT_EQ(routed.wire_bytes, single.wire_bytes);
    EXPECT_EQ(routed.payload_bytes, single.payload_bytes);
    EXPECT_EQ(routed.copies, single.copies);
    EXPECT_EQ(routed.copied_bytes, single.copied_bytes);
    EXPECT_EQ(routed.peak_buffer_bytes, 0u);  // packed once, into the frame that is posted
    EXPECT_EQ(routed.forwarded, 0u);
  });
}

TEST(Cutoff, above_it_frames_bytes_and_copies_are_those_of_direct) {
  for (const Topology topology : {grid(1), grid(2)}) {
    expect_as_direct(Block<40'000>{}, topology);
    for (const std::size_t bytes : {27'000, 40'000, 300'000}) {
      const std::string text(bytes, 'x');
      expect_as_direct(std::string_view(text), topology);
      expect_as_direct(std::vector<char>(bytes, 'x'), topology);
    }
  }
}

TEST(Cutoff, fixed_messages_of_which_a_buffer_holds_fewer_than_two_are_sent_alone) {
  expect_simulated(2, [](Pe& pe) {
    EXPECT_EQ(statistics_of(pe, {.buffer_bytes = 16_KiB}, Block<8176>{}).alone, 0u);
    EXPECT_EQ(statistics_of(pe, {.buffer_bytes = 16_KiB}, Block<8184>{}).alone, 50u);
    EXPECT_EQ(statistics_of(pe, {.buffer_bytes = 16_KiB, .cutoff = 1}, Block<8184>{}).alone, 0u);
  });
}

}  // namespace
}  // namespace headway
