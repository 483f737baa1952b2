// SPDX-License-Identifier: BSD-3-Clause
// Aggregators on simulated time, where how long something takes is exact.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/launch/simulation.hpp>
#include <span>
#include <type_traits>
#include <vector>

namespace headway {
namespace {

template <std::size_t alignment, std::size_t bytes>
struct alignas(alignment) Aligned {
  std::uint8_t content[bytes];
};

/// PE 0 sends messages of such a type, and the others look where they come to lie.
template <std::size_t alignment, std::size_t bytes>
void expect_aligned(const Topology& topology, std::size_t by_value_bytes_max) {
  using Message = Aligned<alignment, bytes>;
  std::size_t handled = 0, misplaced = 0, wrong = 0;
  launch::SimulateOptions options{.pes = 3};
  options.conditions.by_value_bytes_max = by_value_bytes_max;
  const launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
    Aggregator<Message> messages(pe, {.topology = topology});
    messages.on([&](const Message& message) {
      ++handled;
      misplaced += reinterpret_cast<std::uintptr_t>(&message) % alignment != 0;
      for (std::size_t i = 0; i < bytes; ++i) wrong += message.content[i] != std::uint8_t(i + 1);
    });
    Message message;
    for (std::size_t i = 0; i < bytes; ++i) message.content[i] = std::uint8_t(i + 1);
    for (std::size_t i = 0; pe.id() == 0 && i < 9; ++i) messages.send(i % 3, message);
    pe.quiesce();
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(handled, 9u);
  EXPECT_EQ(misplaced, 0u) << alignment << ", " << bytes << " bytes";
  EXPECT_EQ(wrong, 0u) << alignment << ", " << bytes << " bytes";
}

TEST(Sending, messages_sent_by_value_are_aligned_for_their_type) {
  for (const std::size_t by_value : {transport::by_value_bytes_most, std::size_t(100), std::size_t(0)}) {
    for (const Topology& topology : {direct(), grid(1)}) {
      expect_aligned<1, 1>(topology, by_value);
      expect_aligned<1, 223>(topology, by_value);
      expect_aligned<8, 40>(topology, by_value);
      expect_aligned<16, 16>(topology, by_value);
      expect_aligned<16, 208>(topology, by_value);
      expect_aligned<32, 32>(topology, by_value);
      expect_aligned<32, 96>(topology, by_value);
      expect_aligned<32, 224>(topology, by_value);
      expect_aligned<32, 256>(topology, by_value);
      expect_aligned<64, 64>(topology, by_value);
      expect_aligned<64, 128>(topology, by_value);
      expect_aligned<64, 192>(topology, by_value);
      expect_aligned<64, 256>(topology, by_value);
    }
  }
}

TEST(Sending, a_sender_whose_targets_queue_is_full_sees_soon_that_there_is_room) {
  constexpr std::uint64_t messages = 500;
  std::uint64_t handled = 0;
  launch::SimulateOptions options{.pes = 2};
  options.conditions.inbox_frames = 16;
  const launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
    Aggregator<std::uint64_t> numbers(pe, {.topology = direct()});
    numbers.on([&](const std::uint64_t&) { ++handled; });
    if (pe.id() == 0) {
      for (std::uint64_t i = 0; i < messages; ++i) numbers.send(1, i);
    }
    pe.quiesce();
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(handled, messages);
  // The queue is full about 30 times, and the receiver sends no signal when it has room. A sleep until a frame arrives
  // would take 100 ms.
  EXPECT_LT(result.simulated_ns, 50'000'000);
}

/// All PEs send each other numbered messages of `words` words, and some beyond that: how many came, and how many frames
/// were for remote cores.
template <class Message>
void expect_all_of(const Topology& topology, double past_caches, std::size_t messages, std::size_t words) {
  constexpr std::size_t pes = 5;
  std::size_t handled = 0, wrong = 0;
  std::uint64_t frames_past_caches = 0;
  launch::SimulateOptions options{.pes = pes, .budget_bytes = std::size_t(8) << 20};
  options.conditions.past_caches = past_caches;
  const launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
    Aggregator<std::uint64_t, Message> numbers(pe, {.topology = topology});
    std::vector<std::uint64_t> next(pes);
    numbers.on([&](PeId source, std::uint64_t number, const Message& message) {
      ++handled;
      ++next[source];
      if constexpr (std::is_same_v<Message, std::uint64_t>) {
        wrong += message != number * number;
      } else {
        wrong += message.size() != words + number % 7;
        for (std::size_t i = 0; i < message.size(); ++i) wrong += message[i] != number + i;
      }
    });
    std::vector<std::uint64_t> content;
    for (std::uint64_t number = 0; number < messages; ++number) {
      content.resize(words + number % 7);
      for (std::size_t i = 0; i < content.size(); ++i) content[i] = number + i;
      for (std::size_t to = 0; to < pes; ++to) {
        if constexpr (std::is_same_v<Message, std::uint64_t>)
          numbers.send(to, number, number * number);
        else
          numbers.send(to, number, Message(content.begin(), content.end()));
      }
    }
    pe.quiesce();
    for (const std::uint64_t came : next) wrong += came != messages;
    frames_past_caches += numbers.statistics().frames_past_caches;
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(handled, pes * pes * messages);
  EXPECT_EQ(wrong, 0u) << words << " words, past_caches " << past_caches;
  const bool by_value = messages < 3;
  EXPECT_TRUE(frames_past_caches > 0 || by_value || past_caches != 1) << words;
}

TEST(Sending, frames_written_past_the_caches_have_the_same_content_as_others) {
  using Span = std::span<const std::uint64_t>;
  for (const double past_caches : {0.5, 1.0}) {
    for (const Topology& topology : {grid(1), grid(2)}) {
      expect_all_of<std::uint64_t>(topology, past_caches, 2000, 0);
      expect_all_of<Span>(topology, past_caches, 2, 0);  // so few that they go by value out of a staging buffer
      for (const std::size_t words : {0, 3, 40, 400}) expect_all_of<Span>(topology, past_caches, 300, words);
      expect_all_of<std::vector<std::uint64_t>>(topology, past_caches, 200, 100);
      for (const std::size_t words : {3000, 70'000})
        expect_all_of<Span>(topology, past_caches, 8, words);  // by themselves
    }
  }
}

}  // namespace
}  // namespace headway
