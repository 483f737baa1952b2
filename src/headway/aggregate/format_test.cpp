// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/format.hpp>
#include <headway/base/error.hpp>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace headway::aggregate {
namespace {

/// Memory of exactly `bytes`, aligned to 64, in front of a page's end as it were: nothing behind it belongs to it.
class Exactly {
 public:
  explicit Exactly(std::size_t bytes, std::byte fill = std::byte(0xa5))
      : memory_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(64)))), bytes_(bytes) {
    if (bytes != 0) std::memset(memory_, int(fill), bytes);
  }
  Exactly(const Exactly&) = delete;
  Exactly& operator=(const Exactly&) = delete;
  ~Exactly() { ::operator delete(memory_, std::align_val_t(64)); }
  std::byte* data() const { return memory_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* memory_;
  std::size_t bytes_;
};

template <class T>
bool equal(const T& a, const T& b) {
  if constexpr (is_view<T>) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
  } else {
    return a == b;
  }
}

/// Decodes the bytes at `at`: the result equals `args`. Fixed arguments and views are in place and aligned.
template <class... Args>
void expect_reads(const std::byte* at, std::size_t bytes, const Args&... args) {
  using Format = MessageFormat<Args...>;
  typename Format::Scratch scratch;
  int calls = 0;
  Format::apply(at, bytes, scratch, [&](const auto&... read) {
    ++calls;
    (
        [&] {
          EXPECT_TRUE(equal<Args>(read, args));
          const void* address = nullptr;
          std::size_t alignment = 1;
          if constexpr (is_view<Args>) {
            address = read.data();
            alignment = alignof(typename ViewElement<Args>::Type);
          } else if constexpr (FixedSize<Args>) {
            address = &read;
            alignment = alignof(Args);
          } else {
            return;
          }
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % alignment, 0u);
          EXPECT_GE(static_cast<const std::byte*>(address), at);
          EXPECT_LE(static_cast<const std::byte*>(address), at + bytes);
        }(),
        ...);
  });
  EXPECT_EQ(calls, 1);
}

/// Writes a message in one piece and in pieces, reads both, and reads every truncation and one byte too many of it.
template <class... Args>
void round_trip(const Args&... args) {
  using Format = MessageFormat<Args...>;
  const std::size_t bytes = Format::fixed ? Format::fixed_bytes : Format::bytes(args...);
  SCOPED_TRACE(std::string(__PRETTY_FUNCTION__) + " of " + std::to_string(bytes) + " bytes");

  const Exactly whole(bytes, std::byte(0));
  Format::pack(whole.data(), args...);
  expect_reads<Args...>(whole.data(), bytes, args...);

  std::vector<std::byte> joined;
  Format::with_pieces(
      [&](Pieces pieces) {
        for (const std::span<const std::byte> piece : pieces) joined.insert(joined.end(), piece.begin(), piece.end());
      },
      args...);
  ASSERT_EQ(joined.size(), bytes);
  const Exactly again(bytes, std::byte(0));
  if (bytes != 0) std::memcpy(again.data(), joined.data(), bytes);
  expect_reads<Args...>(again.data(), bytes, args...);

  if constexpr (!Format::fixed) {
    typename Format::Scratch scratch;
    for (std::size_t shorter = 0; shorter < bytes; ++shorter) {
      const Exactly cut(shorter);
      if (shorter != 0) std::memcpy(cut.data(), whole.data(), shorter);
      // A shorter input may decode as a message with fewer elements in its last view. It never gives the same message,
      // and the decoder reads nothing behind it.
      try {
        Format::apply(cut.data(), shorter, scratch, [&](const auto&... read) {
          if constexpr (Format::owning)
            ADD_FAILURE() << "taken: " << shorter << " bytes";
          else
            EXPECT_FALSE((equal<Args>(read, args) && ...)) << "the same with " << shorter << " bytes";
        });
      } catch (const FormatError&) {
      }
    }
    if constexpr (Format::owning) {
      const Exactly longer(bytes + 1, std::byte(0));
      std::memcpy(longer.data(), whole.data(), bytes);
      EXPECT_THROW(Format::apply(longer.data(), bytes + 1, scratch, [](const auto&...) {}), FormatError);
    }
  }
}

struct Pair {
  std::uint64_t a;
  std::uint32_t b;
  bool operator==(const Pair&) const = default;
};
struct Odd {
  std::uint8_t bytes[3];
  bool operator==(const Odd&) const = default;
};
struct Empty {
  bool operator==(const Empty&) const = default;
};
template <std::size_t n>
struct alignas(n) Aligned {
  std::uint8_t value;
  std::uint8_t more[n - 1 == 0 ? 1 : n - 1];
  bool operator==(const Aligned& other) const { return value == other.value; }
};
struct Word {
  std::string text;
  std::vector<std::uint16_t> numbers;
  std::optional<double> weight;
  bool operator==(const Word&) const = default;
};

TEST(MessageFormat, fixed_arguments_lie_aligned_one_after_the_other) {
  static_assert(MessageFormat<std::uint64_t>::fixed_bytes == 8);
  static_assert(MessageFormat<std::uint8_t, std::uint32_t, std::uint8_t>::fixed_bytes == 12);
  static_assert(MessageFormat<Odd>::fixed_bytes == 3 && MessageFormat<Odd>::alignment == 1);
  static_assert(MessageFormat<std::uint8_t, Aligned<64>>::fixed_bytes == 128);
  round_trip(std::uint64_t(7));
  round_trip(std::uint8_t(1), std::uint32_t(2), std::uint8_t(3));
  round_trip(Odd{{1, 2, 3}}, Pair{4, 5}, 'x', 2.5);
  round_trip(Aligned<1>{9, {0}}, Aligned<64>{1, {}}, Aligned<2>{2, {0}}, Aligned<32>{3, {}}, Aligned<16>{4, {}});
  round_trip(Empty{}, std::uint16_t(6), Empty{});
  round_trip(std::array<std::uint64_t, 100>{1, 2, 3});
}

TEST(MessageFormat, a_message_without_arguments_takes_a_byte_so_that_it_can_be_counted) {
  static_assert(MessageFormat<>::fixed && MessageFormat<>::fixed_bytes == 1);
  static_assert(MessageFormat<Empty>::fixed_bytes == 1);
  round_trip();
  round_trip(Empty{});
}

TEST(MessageFormat, one_view_takes_nothing_but_its_content) {
  const std::vector<std::uint64_t> numbers{1, 2, 3};
  EXPECT_EQ(MessageFormat<std::span<const std::uint64_t>>::bytes(numbers), 24u);
  EXPECT_EQ(MessageFormat<std::string_view>::bytes("four"), 4u);
  EXPECT_EQ(MessageFormat<std::string_view>::bytes(""), 0u);
  round_trip(std::span<const std::uint64_t>(numbers));
  round_trip(std::string_view("some text"));
  round_trip(std::string_view());
  round_trip(std::span<const std::uint64_t>());
}

TEST(MessageFormat, several_views_keep_their_lengths) {
  const std::vector<std::uint64_t> numbers{1, 2, 3};
  const std::vector<std::uint8_t> octets{1, 2, 3, 4, 5};
  const std::vector<Aligned<64>> wide{{1, {}}, {2, {}}};
  for (const std::size_t n : {0, 1, 3}) {
    for (const std::size_t m : {0, 1, 5}) {
      for (const std::size_t w : {0, 1, 2}) {
        const std::span<const std::uint64_t> a(numbers.data(), n);
        const std::span<const std::uint8_t> b(octets.data(), m);
        const std::span<const Aligned<64>> c(wide.data(), w);
        round_trip(a, b);
        round_trip(b, a);
        round_trip(b, c, a);
        round_trip(c, b, std::string_view("abc", n), b);
        round_trip('x', b, 2.5, a, Pair{1, 2}, c);
      }
    }
  }
}

TEST(MessageFormat, owning_arguments_are_read_as_they_were_written) {
  using Map = std::map<std::string, std::vector<int>>;
  const Word word{"word", {1, 2, 3}, 0.5};
  round_trip(std::string("text"));
  round_trip(std::vector<std::uint64_t>{1, 2, 3}, std::vector<double>(), 'c', std::vector<bool>{true, false});
  round_trip(std::string("abc"), std::vector<Aligned<32>>{{1, {}}, {2, {}}}, std::vector<std::uint16_t>{7});
  round_trip(std::string());
  round_trip(word);
  round_trip(std::vector<Word>{word, {}, word});
  round_trip(Map{{"a", {1}}, {"b", {}}, {"", {2, 3}}});
  round_trip(std::uint32_t(7), word, Pair{1, 2}, std::string("end"));
}

struct Named {
  std::string name;
  std::vector<std::uint16_t> numbers;
  bool operator==(const Named&) const = default;
};
struct Tree {
  std::uint32_t depth;
  Named named;
  Pair pair;
  std::vector<double> weights;
  bool operator==(const Tree&) const = default;
};
struct Checked {  // a bool is looked at when it is read
  std::string text;
  bool flag;
  bool operator==(const Checked&) const = default;
};
struct Archived {
  std::string text;
  void serialize(auto& archive) { archive(text); }
  bool operator==(const Archived&) const = default;
};
struct OfArchived {
  Archived archived;
  std::string text;
  bool operator==(const OfArchived&) const = default;
};

TEST(MessageFormat, aggregates_of_plain_fields_and_their_vectors_travel_in_parts) {
  static_assert(is_sent_in_parts<Named> && part_count<Named> == 2);
  static_assert(is_sent_in_parts<Tree> && part_count<Tree> == 5);
  static_assert(!MessageFormat<Tree, Named>::owning && !MessageFormat<Named>::fixed);
  static_assert(!is_sent_in_parts<Word> && !is_sent_in_parts<Checked> && !is_sent_in_parts<Archived> &&
                !is_sent_in_parts<OfArchived> && !is_sent_in_parts<Pair> && !is_sent_in_parts<std::string>);
  const Named named{"some name", {1, 2, 3}};
  const Tree tree{7, {"inner", {4}}, {5, 6}, {0.5, 1.5}};
  EXPECT_EQ(MessageFormat<Named>::bytes(named),
            base::align_up(8 + 9, 2) + 6);  // one count, nine letters, three numbers
  round_trip(named);
  round_trip(Named{});
  round_trip(tree);
  round_trip(named, 'c', tree, std::string_view("view"), Word{"word", {1}, 0.5});
  round_trip(Word{"word", {1}, 0.5}, named);
  round_trip(Checked{"text", true}, OfArchived{{"a"}, "b"}, Archived{"c"});
}

TEST(MessageFormat, objects_in_parts_take_nothing_over_from_the_message_before) {
  using Format = MessageFormat<Tree>;
  Format::Scratch scratch;
  for (const Tree& tree : {Tree{1, {"long enough to lie on the heap by itself", {1, 2, 3}}, {2, 3}, {4}}, Tree{},
                           Tree{2, {"b", {9}}, {}, {5, 6}}}) {
    const Exactly memory(Format::bytes(tree));
    Format::pack(memory.data(), tree);
    Format::apply(memory.data(), memory.size(), scratch, [&](const Tree& read) { EXPECT_EQ(read, tree); });
  }
}

TEST(MessageFormat, fixed_arguments_views_and_owning_ones_mix_in_any_order) {
  const std::vector<double> weights{1.5, 2.5};
  const Word word{"word", {7}, std::nullopt};
  const std::span<const double> view(weights);
  round_trip(word, view, 'c');
  round_trip(view, word, view);
  round_trip(std::string("a"), std::string_view("b"), 'c', std::string_view(), std::vector<std::string>{"d", "e"});
  round_trip(Aligned<32>{5, {}}, word, std::span<const Aligned<16>>(), std::string(300, 'z'), view);
}

TEST(MessageFormat, scratch_objects_take_nothing_over_from_the_message_before) {
  using Format = MessageFormat<std::vector<std::string>, std::map<int, int>, std::optional<std::string>>;
  Format::Scratch scratch;
  auto read = [&](const std::vector<std::string>& a, const std::map<int, int>& b, const std::optional<std::string>& c) {
    const Exactly memory(Format::bytes(a, b, c));
    Format::pack(memory.data(), a, b, c);
    Format::apply(memory.data(), memory.size(), scratch, [&](const auto& x, const auto& y, const auto& z) {
      EXPECT_EQ(x, a);
      EXPECT_EQ(y, b);
      EXPECT_EQ(z, c);
    });
  };
  read({"a", "long enough to lie on the heap by itself", "c"}, {{1, 2}, {3, 4}}, "there");
  read({"b"}, {{5, 6}}, std::nullopt);
  read({}, {}, "again");
}

TEST(MessageFormat, a_stated_count_beyond_the_message_is_refused) {
  using Format = MessageFormat<std::span<const std::uint64_t>, std::string_view>;
  const std::vector<std::uint64_t> numbers{1, 2};
  const Exactly memory(Format::bytes(numbers, "text"));
  Format::Scratch scratch;
  for (const std::uint64_t count : {std::uint64_t(3), std::uint64_t(1) << 61, ~std::uint64_t(0)}) {
    Format::pack(memory.data(), numbers, "text");
    std::memcpy(memory.data(), &count, sizeof count);
    EXPECT_THROW(Format::apply(memory.data(), memory.size(), scratch, [](const auto&...) {}), FormatError) << count;
  }
}

TEST(MessageFormat, random_bytes_are_refused_or_read_but_never_beyond_their_end) {
  std::mt19937_64 random(1);
  MessageFormat<std::uint16_t, std::span<const std::uint32_t>, std::vector<std::string>>::Scratch scratch;
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Exactly memory(random() % 60);
    for (std::size_t i = 0; i < memory.size(); ++i) memory.data()[i] = std::byte(random() % (round % 2 == 0 ? 256 : 4));
    try {
      MessageFormat<std::uint16_t, std::span<const std::uint32_t>, std::vector<std::string>>::apply(
          memory.data(), memory.size(), scratch,
          [&](std::uint16_t, std::span<const std::uint32_t> view, const std::vector<std::string>& strings) {
            std::size_t bytes = view.size_bytes();
            for (const std::string& s : strings) bytes += s.size();
            EXPECT_LE(bytes, memory.size());
          });
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(MessageFormat, pieces_are_read_to_their_end_and_no_further) {
  const std::vector<std::byte> content{std::byte(1), std::byte(2), std::byte(3), std::byte(4), std::byte(5)};
  const std::span<const std::byte> all(content);
  const std::span<const std::byte> pieces[] = {{}, all.first(2), {}, all.subspan(2), {}};
  std::vector<std::byte> read(content.size());
  PieceReader reader(pieces, content.size());
  reader.read(read.data(), 0, base::copy_bytes);
  reader.read(read.data(), 1, base::copy_bytes);
  reader.read(read.data() + 1, 4, base::copy_bytes);
  EXPECT_EQ(read, content);
  EXPECT_THROW(reader.read(read.data(), 1, base::copy_bytes), UsageError);
  reader.read(read.data(), 0, base::copy_bytes);
  for (const std::size_t wrong : {content.size() - 1, content.size() + 1, std::size_t(0)}) {
    EXPECT_THROW(PieceReader(pieces, wrong), UsageError) << wrong;
  }
  const PieceReader of_nothing({}, 0);
}

TEST(MessageFormat, copies_of_every_length_are_exact) {
  std::vector<std::byte> from(600), to(600);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::byte(i * 7 + 1);
  const auto expect_exact = [&](std::size_t n, auto copy) {
    std::ranges::fill(to, std::byte(0xee));
    copy(to.data() + 8, from.data() + 3);
    ASSERT_EQ(std::memcmp(to.data() + 8, from.data() + 3, n), 0) << n;
    ASSERT_EQ(to[7], std::byte(0xee)) << n;
    ASSERT_EQ(to[8 + n], std::byte(0xee)) << n;
  };
  for (std::size_t n = 0; n <= 500; ++n) {
    expect_exact(n, [n](std::byte* a, const std::byte* b) { base::copy_short(a, b, n); });
    expect_exact(n, [n](std::byte* a, const std::byte* b) { base::copy_short<true>(a, b, n); });
    expect_exact(n, [n](std::byte* a, const std::byte* b) { base::copy_short<true>(a, b, n, true); });
    expect_exact(n, [n](std::byte* a, const std::byte* b) { base::copy_short<false, 224>(a, b, n); });
    expect_exact(n, [n](std::byte* a, const std::byte* b) { base::copy_received(a, b, n); });
  }
  [&]<std::size_t... n>(std::index_sequence<n...>) { (expect_exact(n, &base::copy_fixed<n>), ...); }
  (std::index_sequence<0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 63, 64, 65, 200, 255, 256, 257, 300>());
}

}  // namespace
}  // namespace headway::aggregate
