// SPDX-License-Identifier: BSD-3-Clause
/// Every formulation agrees with the plainest loop and notices errors in a buffer.
#include <gtest/gtest.h>

#include <random>

#include "build.hpp"
#include "comparison.hpp"

namespace headway::limit {
namespace {

constexpr std::size_t table_words = 1 << 8;

/// The receiver's state in these tests.
struct Delivered {
  std::vector<Word> table = std::vector<Word>(table_words);
  Receiver receiver{.update = {table.data(), table_words - 1}};
  std::uint64_t count = 0;
};

/// A buffer of messages with the ends of each, as plainly as can be.
struct Filled {
  std::vector<std::byte> bytes;
  std::vector<std::pair<Word, Word>> ends;
  std::size_t used = bytes.size();  // by messages, from the front
};

void expect_all_agree(const Filled& filled, const std::vector<Deliver>& updates, const std::vector<Deliver>& sums) {
  std::vector<Word> table(table_words);
  Sum sum;
  for (const auto& [first, last] : filled.ends) {
    table[first % table_words] ^= last;
    sum.front += first;
    sum.back += last;
  }
  for (std::size_t i = 0; i < updates.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "formulation " << i << ", " << filled.ends.size() << " messages");
    Delivered updated, added;
    updated.receiver.buffer_bytes = added.receiver.buffer_bytes = filled.bytes.size();
    EXPECT_EQ(updates[i](filled.bytes.data(), filled.used, updated.receiver), filled.ends.size());
    EXPECT_EQ(updated.table, table);
    EXPECT_EQ(sums[i](filled.bytes.data(), filled.used, added.receiver), filled.ends.size());
    EXPECT_EQ(added.receiver.sum, sum);
  }
}

template <class Messages, class Apply>
std::vector<Deliver> all_of() {
  return {Messages::template one_by_one<Apply>, Messages::template by_four<Apply>,
          Messages::template prefetching<Apply>, Messages::template staging<Apply>};
}

template <std::size_t Bytes>
void expect_all_agree_on_fixed(std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << Bytes << " bytes");
  for (const std::size_t count : {0, 1, 3, 4, 5, 31, 32, 33, 255, 256, 257, 700}) {
    Filled filled{std::vector<std::byte>(count * Bytes), {}};
    for (std::size_t i = 0; i < count; ++i) {
      const Word first = random(), last = Bytes == word_bytes ? first : random();
      store(filled.bytes.data() + i * Bytes, first);
      store(filled.bytes.data() + (i + 1) * Bytes - word_bytes, last);
      filled.ends.emplace_back(first, last);
    }
    expect_all_agree(filled, all_of<FixedMessages<Bytes>, Update>(), all_of<FixedMessages<Bytes>, Sum>());
  }
}

TEST(Deliver, all_formulations_agree_on_messages_of_every_fixed_size) {
  std::mt19937_64 random(1);
  expect_all_agree_on_fixed<8>(random);
  expect_all_agree_on_fixed<16>(random);
  expect_all_agree_on_fixed<32>(random);
  expect_all_agree_on_fixed<104>(random);
  expect_all_agree_on_fixed<64>(random);
  expect_all_agree_on_fixed<256>(random);
  expect_all_agree_on_fixed<1000>(random);
}

template <class Walk>
void expect_all_agree_on_mixed_sizes() {
  std::mt19937_64 random(2);
  for (const std::size_t count : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 63, 64, 65, 500}) {
    std::vector<std::byte> buffer(1 << 17, std::byte(0xee));
    Filled filled{buffer, {}};
    std::byte *at = filled.bytes.data(), *limit = at + buffer.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bytes = 8 + random() % 100;
      Walk::put(at, limit, bytes);
      std::byte* const message = at + Walk::in_front;
      for (std::size_t byte = 0; byte < bytes; ++byte) message[byte] = std::byte(random());
      filled.ends.emplace_back(load(message), load(bytes < 16 ? message : message + bytes - 8));
      at = message + align_up(bytes, word_bytes);
    }
    filled.used = std::size_t(at - filled.bytes.data());
    expect_all_agree(filled, all_of<VariableMessages<Walk>, Update>(), all_of<VariableMessages<Walk>, Sum>());
  }
}

TEST(Deliver, all_formulations_agree_on_messages_of_mixed_sizes_wherever_their_lengths_lie) {
  expect_all_agree_on_mixed_sizes<LengthBefore>();
  expect_all_agree_on_mixed_sizes<LengthsAtEnd>();
}

/// What `build` makes of a number, in memory that is not zero before.
template <class Build>
std::vector<std::byte> built(std::size_t bytes, Word number) {
  constexpr std::size_t source = 5;
  const std::vector<std::byte> prepared = prepared_message(bytes, source);
  const Build build(prepared.data(), bytes, source);
  std::vector<std::byte> message(build.room() + 64, std::byte(0xee));
  build(message.data(), number);
  message.resize(build.room());
  return message;
}

std::vector<std::byte> expected(std::size_t bytes, Word number) {
  std::vector<std::byte> message = prepared_message(bytes, 5);
  message.resize(bytes);
  stamp(message.data(), bytes, number);
  return message;
}

template <std::size_t Bytes>
void expect_fixed_builds_agree() {
  constexpr Word number = 0x123456789abcdef0;
  EXPECT_EQ(built<FixedFields<Bytes>>(Bytes, number), expected(Bytes, number));
  EXPECT_EQ((built<FixedCopy<Bytes, copy_words>>(Bytes, number)), expected(Bytes, number));
  EXPECT_EQ((built<FixedCopy<Bytes, copy_libc>>(Bytes, number)), expected(Bytes, number));
  EXPECT_EQ((built<FixedCopy<Bytes, copy_wide>>(Bytes, number)), expected(Bytes, number));
}

TEST(Build, all_formulations_write_every_byte_of_a_message_of_fixed_size) {
  expect_fixed_builds_agree<8>();
  expect_fixed_builds_agree<16>();
  expect_fixed_builds_agree<32>();
  expect_fixed_builds_agree<104>();
  expect_fixed_builds_agree<64>();
  expect_fixed_builds_agree<256>();
  expect_fixed_builds_agree<1000>();
}

template <class Walk, Copy copy>
void expect_variable_build(std::size_t bytes) {
  constexpr Word number = 0x123456789abcdef0;
  constexpr std::size_t source = 5;
  const std::vector<std::byte> prepared = prepared_message(bytes, source);
  const VariableCopy<Walk, copy> build(prepared.data(), bytes, source);
  std::vector<std::byte> buffer(2 * build.needed() + 64, std::byte(0xee));
  std::byte* limit = buffer.data() + 2 * build.needed();
  std::byte* const first = buffer.data();
  std::byte* const second = first + build.room();
  const std::size_t buffer_bytes = 2 * build.needed();
  for (std::byte* const at : {first, second}) {  // the second must not harm the first, nor the lengths
    build.put_length(at, limit);
    build(at, number);
  }
  Walk walk(buffer.data(), buffer_bytes);
  for (int i = 0; i < 2; ++i, walk.step()) {
    ASSERT_EQ(walk.bytes(), bytes);
    EXPECT_EQ(std::vector<std::byte>(walk.message(), walk.message() + bytes), expected(bytes, number)) << bytes;
  }
  EXPECT_LE(second + build.room(), limit);
}

TEST(Build, all_formulations_write_length_and_every_byte_of_a_message_of_any_size) {
  for (std::size_t bytes = 8; bytes < 200; ++bytes) {
    expect_variable_build<LengthBefore, copy_words>(bytes);
    expect_variable_build<LengthBefore, copy_libc>(bytes);
    expect_variable_build<LengthBefore, copy_wide>(bytes);
    expect_variable_build<LengthsAtEnd, copy_words>(bytes);
    expect_variable_build<LengthsAtEnd, copy_libc>(bytes);
    expect_variable_build<LengthsAtEnd, copy_wide>(bytes);
  }
}

/// A buffer with messages 0 to `count`-1 of PE 1 to PE 0, in the pattern of pairs.
struct StreamBuffer {
  std::vector<std::byte> bytes;
  std::size_t used, room;
  std::vector<bool> read;  // which bytes mean something
};

StreamBuffer stream_buffer(std::size_t bytes, Format format, std::size_t count) {
  const std::size_t in_front = format == Format::length_before ? LengthBefore::in_front : 0;
  const std::size_t room = in_front + (format == Format::fixed ? bytes : align_up(bytes, word_bytes));
  const std::size_t all = count * (room + LengthsAtEnd::at_end);
  StreamBuffer buffer{std::vector<std::byte>(all), count * room, room, std::vector<bool>(all)};
  std::vector<std::byte> message = prepared_message(bytes, 1);
  std::byte* limit = buffer.bytes.data() + all;
  const auto mark = [&](const std::byte* from, std::size_t length) {
    std::fill_n(buffer.read.begin() + (from - buffer.bytes.data()), length, true);
  };
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* const at = buffer.bytes.data() + i * room;
    stamp(message.data(), bytes, i);
    if (format == Format::length_before) LengthBefore::put(at, limit, bytes);
    if (format == Format::lengths_at_end) {
      LengthsAtEnd::put(at, limit, bytes);
      mark(limit, LengthsAtEnd::at_end);
    }
    std::memcpy(at + in_front, message.data(), bytes);
    mark(at, in_front + bytes);
  }
  return buffer;
}

TEST(Comparison, takes_what_was_sent_and_notices_what_was_not) {
  constexpr std::size_t count = 10;
  for (const Format format : {Format::fixed, Format::length_before, Format::lengths_at_end}) {
    for (const std::size_t bytes : {8, 13, 104, 1000}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, format " << int(format));
      const Traffic traffic({.bench = "ring", .pattern = Pattern::pairs, .messages = count});
      const StreamBuffer buffer = stream_buffer(bytes, format, count);
      const auto errors = [&](const std::vector<std::byte>& delivered, std::size_t used) {
        Comparison comparison(traffic, 0, bytes, format, count);
        Receiver receiver;
        receiver.source = 1;
        receiver.buffer_bytes = buffer.bytes.size();
        comparison.deliver(delivered.data(), used, receiver);
        return comparison.errors();
      };
      EXPECT_EQ(errors(buffer.bytes, buffer.used), 0u);
      for (std::size_t i = 0; i < buffer.bytes.size(); ++i) {
        std::vector<std::byte> changed = buffer.bytes;
        changed[i] ^= std::byte(0x10);
        EXPECT_EQ(errors(changed, buffer.used) > 0, buffer.read[i]) << "byte " << i;
      }
      EXPECT_GT(errors(buffer.bytes, buffer.used - buffer.room), 0u);
      EXPECT_GT(errors(buffer.bytes, buffer.used + buffer.room), 0u);
    }
  }
}

TEST(Traffic, every_message_has_one_receiver_and_every_word_one_owner) {
  for (const std::size_t pes : {1, 2, 3, 5, 8, 13}) {
    for (const unsigned log2 : {4u, 12u}) {
      const Traffic traffic({.bench = "ring", .pes = pes, .messages = 1000, .table_log2 = log2});
      std::uint64_t received = 0;
      for (std::size_t me = 0; me < pes; ++me) {
        traffic.for_each_to(me, 1000, [&](std::size_t, Word number) {
          ++received;
          const Word slot = number & traffic.mask();
          EXPECT_TRUE(traffic.table_begin(me) <= slot && slot < traffic.table_end(me)) << pes << " PEs";
        });
        EXPECT_EQ(traffic.table_end(me), traffic.table_begin(me + 1));
      }
      EXPECT_EQ(received, 1000 * pes);
      EXPECT_EQ(traffic.table_end(pes - 1), std::uint64_t(1) << log2);
    }
  }
}

}  // namespace
}  // namespace headway::limit
