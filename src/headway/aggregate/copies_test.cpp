// SPDX-License-Identifier: BSD-3-Clause
// How often the library copies each message on its way: exact counts on simulated time. Each PE checks that its handler
// gets the right messages.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/base/bytes.hpp>
#include <headway/launch/simulation.hpp>
#include <string>
#include <string_view>

namespace headway {
namespace {

using namespace literals;

constexpr std::size_t pes = 8, pes_per_process = 4;

/// What each PE sends to each PE; with only_out to those of the other process alone.
struct Traffic {
  std::uint64_t per_pair = 30;
  bool only_out = false;
  std::size_t budget_bytes = 16_MiB;
};

/// Of all PEs.
struct Counts {
  std::uint64_t messages = 0, forwarded = 0, payload_bytes = 0, copies = 0, copied_bytes = 0;

  void operator+=(const AggregatorStatistics& one) {
    messages += one.messages;
    forwarded += one.forwarded;
    payload_bytes += one.payload_bytes;
    copies += one.copies;
    copied_bytes += one.copied_bytes;
  }
};

template <class Message>
Counts counts_of(Topology topology, const Message& message, Traffic traffic = {}) {
  Counts counts;
  launch::SimulateOptions simulated{.pes = pes, .budget_bytes = traffic.budget_bytes};
  simulated.conditions.pes_per_process = pes_per_process;
  const launch::SimulateResult result = launch::simulate(simulated, [&](Pe& pe) {
    Aggregator<Message> messages(
        pe, {.buffer_bytes = 4_KiB, .timeout = no_timeout, .topology = topology, .flush_when_idle = false});
    std::uint64_t wrong = 0;
    messages.on([&](const Message& m) { wrong += m != message; });
    for (std::size_t to = 0; to < pes; ++to) {
      const bool leaves = to / pes_per_process != pe.id() / pes_per_process;
      for (std::uint64_t i = 0; i < (leaves || !traffic.only_out ? traffic.per_pair : 0); ++i)
        messages.send(to, message);
    }
    pe.quiesce();
    EXPECT_EQ(wrong, 0u);
    counts += messages.statistics();
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
  return counts;
}

constexpr Traffic out{.only_out = true};
constexpr std::uint64_t out_messages = pes * (pes - pes_per_process) * out.per_pair;

TEST(Copies, a_message_that_goes_straight_is_copied_once) {
  for (const Topology topology : {direct(), grid(1)}) {
    const Counts words = counts_of(topology, std::uint64_t(7));
    EXPECT_EQ(words.copies, pes * pes * Traffic().per_pair);
    EXPECT_EQ(words.copied_bytes, 8 * words.copies);
    for (const std::size_t bytes : {0, 1, 300, 5000, 200'000}) {
      const std::string text(bytes, 'x');
      const Counts texts = counts_of(topology, std::string_view(text));
      EXPECT_EQ(texts.copies, texts.messages);
      EXPECT_EQ(texts.copied_bytes, bytes * texts.copies);
    }
  }
}

TEST(Copies, each_pe_that_passes_a_message_on_copies_it_once_more) {
  for (const Topology topology : {grid(2), grid(3), grid(1, Scheme::wps), grid(2, Scheme::wps)}) {
    const Counts words = counts_of(topology, std::uint64_t(7));
    EXPECT_GT(words.forwarded, 0u);
    EXPECT_EQ(words.copies, words.messages + words.forwarded);
    EXPECT_EQ(words.copied_bytes, 8 * words.copies);
    const Counts texts = counts_of(topology, std::string_view("of 14 bytes...", 14));
    EXPECT_EQ(texts.copies, texts.messages + texts.forwarded);
    EXPECT_EQ(texts.copied_bytes, 14 * texts.copies);
  }
}

TEST(Copies, messages_merged_with_those_of_other_pes_are_copied_once_more) {
  const Counts words = counts_of(grid(1, Scheme::pp), std::uint64_t(7), out);
  EXPECT_EQ(words.copies, words.messages + words.forwarded + out_messages);
  EXPECT_EQ(words.copied_bytes, 8 * words.copies);
}

TEST(Copies, a_message_in_parts_is_reassembled_once) {
  for (const Topology topology : {direct(), grid(1), grid(2)}) {
    const std::string text(1'000'000, 'x');
    const Counts texts = counts_of(topology, std::string_view(text), {.per_pair = 2, .budget_bytes = 1_MiB});
    EXPECT_EQ(texts.copies, 2 * texts.messages);
    EXPECT_EQ(texts.copied_bytes, 2 * text.size() * texts.messages);
  }
}

TEST(Copies, a_message_that_fits_a_quarter_of_the_budget_is_copied_once) {
  for (const Topology topology : {direct(), grid(1), grid(2)}) {
    const std::string text(3'000'000, 'x');
    const Counts texts = counts_of(topology, std::string_view(text), {.per_pair = 1, .only_out = true});
    EXPECT_EQ(texts.copies, texts.messages);
    EXPECT_EQ(texts.copied_bytes, text.size() * texts.messages);
  }
}

}  // namespace
}  // namespace headway
