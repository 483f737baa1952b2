// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <message/laps.hpp>
#include <message/message.hpp>
#include <message/payload.hpp>

namespace headway::bench {
namespace {

constexpr std::size_t source = 3;
constexpr std::uint64_t messages = 300;

std::vector<std::byte> message_of(std::size_t bytes, std::uint64_t index) {
  std::vector<std::byte> message(bytes);
  fill_pattern(message, source);
  stamp(message.data(), bytes, index);
  return message;
}

TEST(Message, what_was_sent_once_each_is_accepted) {
  for (const std::size_t bytes : {0, 1, 7, 8, 9, 15, 16, 17, 104, 1000}) {
    Checker checker(bytes, messages, source);
    Sum sum;
    for (std::uint64_t i = 0; i < messages; ++i) {
      const auto message = message_of(bytes, messages - 1 - i);
      checker(message.data(), bytes);
      add(sum, ends_of(message.data(), bytes));
    }
    EXPECT_EQ(checker.errors(), 0u) << bytes << " bytes";
    EXPECT_EQ(sum, expected_sum(messages, bytes)) << bytes << " bytes";
  }
}

TEST(Message, fixed_size_messages_are_the_same_bytes) {
  with_fixed_size(104, []<class Message>(std::type_identity<Message>) {
    Message message;
    fill_pattern(std::as_writable_bytes(std::span(message)), source);
    stamp(message, 17);
    const auto expected = message_of(104, 17);
    EXPECT_EQ(std::memcmp(message.data(), expected.data(), 104), 0);
  });
  EXPECT_FALSE(with_fixed_size(100, [](auto) {}));
}

TEST(Message, sizes_that_are_fixed_have_a_type_of_that_size) {
  for (const std::size_t bytes : {8, 64, 1000, 4096, 1 << 20}) {
    std::size_t size = 0;
    EXPECT_TRUE(with_fixed_size(bytes, [&]<class Message>(std::type_identity<Message>) { size = sizeof(Message); }));
    EXPECT_EQ(size, bytes);
  }
  EXPECT_FALSE(with_fixed_size<1000>(4096, [](auto) {}));
}

TEST(Message, large_ones_are_fewer_but_some) {
  for (const char* bench : {"pingpong", "stream", "staggered", "synthetic"}) {
    std::uint64_t more = default_messages(bench, 0);
    for (const std::size_t bytes : {8, 104, 1000, 1 << 16, 1 << 20, 1 << 26}) {
      const std::uint64_t now = default_messages(bench, bytes);
      EXPECT_LE(now, more);
      EXPECT_GE(now, 10u);
      EXPECT_LE(checked_messages(now, bytes), now);
      EXPECT_GE(checked_messages(now, bytes), 10u);
      more = now;
    }
  }
  EXPECT_EQ(default_messages("stream", 1000), 1'000'000u);
}

TEST(Message, a_lost_a_doubled_and_a_changed_one_are_errors) {
  for (int fault = 0; fault < 3; ++fault) {
    Checker checker(104, messages, source);
    for (std::uint64_t i = 0; i < messages; ++i) {
      auto message = message_of(104, i);
      if (fault == 0 && i == 50) continue;
      if (fault == 1 && i == 50) checker(message.data(), 104);
      if (fault == 2 && i == 50) message[60] ^= std::byte(1);
      checker(message.data(), 104);
    }
    EXPECT_GT(checker.errors(), 0u) << "fault " << fault;
  }
}

TEST(Payload, of_any_number_is_accepted_and_each_fault_is_an_error) {
  const std::uint64_t number = 0x8badf00d12345678;
  for (const std::size_t bytes : {8, 16, 17, 104}) {
    PayloadChecker checker(bytes, source + 1);
    auto message = message_of(bytes, number);
    checker(source, message.data(), bytes);
    EXPECT_EQ(checker.errors(), 0u) << bytes << " bytes";
    checker(source, message.data(), bytes - 1);
    EXPECT_EQ(checker.errors(), 1u) << bytes << " bytes";
    checker(source - 1, message.data(), bytes);
    EXPECT_EQ(checker.errors(), bytes > 16 ? 2u : 1u) << bytes << " bytes, of another source";
    const std::uint64_t before = checker.errors();
    message.back() ^= std::byte(1);
    checker(source, message.data(), bytes);
    EXPECT_EQ(checker.errors(), before + (bytes > 8)) << bytes << " bytes";
  }
}

TEST(Laps, say_the_median_of_half_a_round_trip) {
  for (const std::uint64_t trips : {1, 19, 20, 45, 1000}) {
    Laps laps(trips, 0);
    std::int64_t now_ns = 0;
    for (std::uint64_t trip = 1; trip <= trips; ++trip) {
      now_ns += trip == 1 && trips > 2 ? 1'000'000 : 500;  // one is late
      if (laps.due(trip)) laps.mark(now_ns);
    }
    EXPECT_DOUBLE_EQ(laps.one_way_us(), 0.25) << trips;
  }
}

}  // namespace
}  // namespace headway::bench
