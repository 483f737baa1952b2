// SPDX-License-Identifier: BSD-3-Clause
/// Messages with memory of their own: every formulation of writing and reading them agrees with the plainest and
/// notices errors in a message.
#include "owning.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "formulation.hpp"

namespace headway::limit {
namespace {

constexpr std::size_t source = 1;  // the messages' of these tests, which go to PE 0

template <class Copy>
void expect_copies() {
  SCOPED_TRACE(Copy::name);
  for (std::size_t bytes = 8; bytes < 300; ++bytes) {
    const std::vector<std::byte> from = VectorType::make(prepared_message(bytes, source).data(), bytes);
    std::vector<std::byte> to(bytes + 64, std::byte(0xee));
    Copy::copy(to.data() + 32, from.data(), bytes);
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 32)) << bytes;
    const auto untouched = [](std::byte b) { return b == std::byte(0xee); };
    EXPECT_TRUE(std::all_of(to.begin(), to.begin() + 32, untouched)) << bytes;
    EXPECT_TRUE(std::all_of(to.end() - 32, to.end(), untouched)) << bytes;
  }
}

TEST(Owning, every_copy_writes_all_bytes_and_none_beside_them) {
  expect_copies<CopyWords>();
  expect_copies<CopyBranches>();
  expect_copies<CopyEnds>();
  expect_copies<CopyEndsLibc>();
  expect_copies<CopyLibc>();
  expect_copies<CopyWide>();
}

/// Messages from number 0 on, as PE 1 sends them to PE 0.
struct SentBuffer {
  std::vector<std::byte> buffer;
  std::size_t used;
};

template <class Type, template <class> class Where, class Copy>
SentBuffer sent(std::size_t bytes, std::size_t count) {
  using Send = SendOwning<Type, Where, Copy>;
  SentBuffer made{std::vector<std::byte>(count * Where<Type>::needed(bytes)), 0};
  std::byte* const begin = made.buffer.data();
  Cursor cursor{begin, begin + made.buffer.size()};
  typename Type::Object object = Type::make(prepared_message(bytes, source).data(), bytes);
  for (Word number = 0; number < count; ++number) {
    Send::write(object, number, cursor, [] { ADD_FAILURE() << "it must fit"; });
  }
  made.used = std::size_t(cursor.at - begin);
  return made;
}

constexpr std::size_t count = 70;  // more than are looked at in advance

std::uint64_t errors(const SentBuffer& sent, std::size_t bytes, Deliver check) {
  const Traffic traffic({.bench = "ring", .pattern = Pattern::pairs, .messages = count});
  Comparison comparison(traffic, 0, bytes, Format::owning, count);
  OwnedObjects objects;
  Receiver receiver;
  receiver.comparison = &comparison;
  receiver.objects = &objects;
  receiver.source = source;
  receiver.buffer_bytes = sent.buffer.size();
  check(sent.buffer.data(), sent.used, receiver);
  return comparison.errors();
}

template <class Type, template <class> class Where, class Copy, class Set>
void expect_all_arrives(std::size_t bytes) {
  SCOPED_TRACE(testing::Message() << Where<Type>::name << ", " << Copy::name << ", " << Set::name << ", " << bytes);
  using Messages = DeliverOwning<Type, Where<Type>, Set>;
  const SentBuffer buffer = sent<Type, Where, Copy>(bytes, count);
  Sum sum;
  std::vector<Word> table(64), updated(64);
  for (Word number = 0; number < count; ++number) {
    sum(number, bytes >= 16 ? ~number : number);
    table[number % 64] ^= bytes >= 16 ? ~number : number;
  }
  OwnedObjects objects;
  Receiver receiver{.update = {updated.data(), 63}, .objects = &objects, .buffer_bytes = buffer.buffer.size()};
  EXPECT_EQ(Messages::template one_by_one<Sum>(buffer.buffer.data(), buffer.used, receiver), count);
  EXPECT_EQ(receiver.sum, sum);
  EXPECT_EQ(Messages::template one_by_one<Update>(buffer.buffer.data(), buffer.used, receiver), count);
  EXPECT_EQ(updated, table);
  EXPECT_EQ(Messages::template prefetching<Update>(buffer.buffer.data(), buffer.used, receiver), count);
  EXPECT_EQ(updated, std::vector<Word>(64));  // each update is its own inverse
  EXPECT_EQ(errors(buffer, bytes, Messages::template one_by_one<Compare>), 0u);
  EXPECT_EQ(errors(buffer, bytes, Messages::template prefetching<Compare>), 0u);
}

template <class Type, template <class> class Where>
void expect_all_arrives_however(std::size_t bytes) {
  expect_all_arrives<Type, Where, CopyWords, Assigned>(bytes);
  expect_all_arrives<Type, Where, CopyEnds, Resized<CopyBranches>>(bytes);
  expect_all_arrives<Type, Where, CopyEndsLibc, Resized<CopyWide>>(bytes);
  expect_all_arrives<Type, Where, CopyLibc, Resized<CopyLibc>>(bytes);
}

TEST(Owning, all_formulations_agree_on_messages_of_any_size) {
  for (const std::size_t bytes : {8, 9, 13, 16, 17, 31, 32, 33, 47, 48, 64, 77, 104, 256, 1000}) {
    expect_all_arrives_however<VectorType, BeforeEach>(bytes);
    expect_all_arrives_however<VectorType, AtEnd>(bytes);
    if (bytes < 16) continue;
    expect_all_arrives_however<PartsType, BeforeEach>(bytes);
    expect_all_arrives_however<PartsType, AtEnd>(bytes);
  }
}

template <class Type, template <class> class Where>
void expect_noticed(std::size_t bytes) {
  SCOPED_TRACE(testing::Message() << Where<Type>::name << ", " << bytes);
  const Deliver check = DeliverOwning<Type, Where<Type>, Resized<CopyWide>>::template one_by_one<Compare>;
  const SentBuffer good = sent<Type, Where, CopyEnds>(bytes, count);
  const std::size_t gap = good.used / count - bytes;  // where lengths lie among the messages
  for (std::size_t i = 0; i < good.used; ++i) {
    if (i % (bytes + gap) < gap) continue;  // a wrong length has no end
    SentBuffer changed = good;
    changed.buffer[i] ^= std::byte(0x10);
    EXPECT_GT(errors(changed, bytes, check), 0u) << "byte " << i;
  }
  EXPECT_GT(errors(sent<Type, Where, CopyEnds>(bytes - 1, count), bytes, check), 0u);  // shorter ones
  EXPECT_GT(errors(sent<Type, Where, CopyEnds>(bytes, count - 1), bytes, check), 0u);  // one less
  EXPECT_GT(errors(sent<Type, Where, CopyEnds>(bytes, count + 1), bytes, check), 0u);  // one more
}

TEST(Owning, a_changed_a_shorter_a_missing_and_a_surplus_message_are_noticed) {
  for (const std::size_t bytes : {17, 32, 104}) {
    expect_noticed<VectorType, BeforeEach>(bytes);
    expect_noticed<VectorType, AtEnd>(bytes);
    expect_noticed<PartsType, BeforeEach>(bytes);
    expect_noticed<PartsType, AtEnd>(bytes);
  }
}

}  // namespace
}  // namespace headway::limit
