// SPDX-License-Identifier: BSD-3-Clause
// The serialized form: the round trip of values, and damaged bytes.
#include <gtest/gtest.h>

#include <array>
#include <bitset>
#include <chrono>
#include <complex>
#include <cstdint>
#include <deque>
#include <headway/base/serialize.hpp>
#include <headway/base/serialize_test.hpp>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace headway::serialize_test {
namespace {

using Bytes = std::vector<std::byte>;

// Exactly as long as announced: the address sanitizer sees a write or read beyond.
template <class T>
Bytes bytes_of(const T& value) {
  Bytes bytes(serialized_bytes(value));
  EXPECT_EQ(serialize(bytes.data(), value), bytes.data() + bytes.size());
  return bytes;
}

template <class T>
void read_all(const Bytes& bytes, T& out) {
  ByteReader reader(bytes);
  deserialize(reader, out);
  EXPECT_EQ(reader.remaining(), 0u);
}

template <class T>
T round_trip(const T& value) {
  T out{};
  read_all(bytes_of(value), out);
  return out;
}

template <class T>
void expect_round_trip(const T& value) {
  EXPECT_EQ(round_trip(value), value);
  Bytes shifted(serialized_bytes(value) + 1);  // no alignment needed
  serialize(shifted.data() + 1, value);
  ByteReader reader(shifted.data() + 1, shifted.data() + shifted.size());
  EXPECT_EQ(deserialize<T>(reader), value);
}

struct Chain {  // nested to any depth
  int value = 0;
  std::vector<Chain> next;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value, next);
  }
};

struct Silent {  // writes nothing
  std::string ignored;
  template <class Archive>
  void serialize(Archive&) const {}
  bool operator==(const Silent&) const { return true; }
};

Mixed mixed() {
  return {.tag = {'h', 'e', 'a', 'd', 0},
          .names = {{1, 2, 3}, "one two three"},
          .pair = {"first", ""},
          .rows = {"", std::string(300, 'x')},
          .flag = true,
          .where = Point{3, 0.5},
          .table = {{"empty", {}}, {"two", {{{}, "a"}, {{4, 5}, "b"}}}},
          .choice = Names{{7}, "seven"}};
}

// Aggregates with the interface of a container, which are looked at field by field.
struct Slice {
  using value_type = int;
  const int* first;
  const int* last;
  const int* begin() const { return first; }
  const int* end() const { return last; }
  std::size_t size() const { return static_cast<std::size_t>(last - first); }
};
struct UpToThree {
  using value_type = std::string;
  std::array<std::string, 3> items;
  std::size_t used;
  const std::string* begin() const { return items.data(); }
  const std::string* end() const { return items.data() + used; }
  std::size_t size() const { return used; }
  bool operator==(const UpToThree&) const = default;
};

TEST(Sendable, an_aggregate_with_the_interface_of_a_container_is_what_its_fields_are) {
  static_assert(!Sendable<Slice> && !Sendable<std::vector<Slice>> && Serializable<UpToThree>);
  EXPECT_EQ(bytes_of(UpToThree{{"a", "b", ""}, 2}).size(), 2 + 2 + 1 + sizeof(std::size_t));
  expect_round_trip(UpToThree{{"a", "b", ""}, 2});
}

TEST(Serialize, plain_values_survive_the_round_trip) {
  expect_round_trip(42);
  expect_round_trip(std::numeric_limits<std::int64_t>::min());
  expect_round_trip(true);
  expect_round_trip(Colour::green);
  expect_round_trip(1.5L);
  expect_round_trip(Point{1, 2.5});
  expect_round_trip(std::complex<float>(1, 2));
  expect_round_trip(std::chrono::milliseconds(7));
  expect_round_trip(std::bitset<77>(0x123456789));
  EXPECT_EQ(serialized_bytes(Point{}), sizeof(Point));
}

TEST(Serialize, a_struct_of_a_vector_and_a_string_survives_the_round_trip) {
  expect_round_trip(Names{{1, 2, 3}, "text"});
  expect_round_trip(Names{});
  EXPECT_EQ(serialized_bytes(Names{{1, 2, 3}, "text"}), 1 + 12 + 1 + 4u);
}

TEST(Serialize, every_container_survives_the_round_trip) {
  expect_round_trip(std::string(1000, 'y'));
  expect_round_trip(std::u16string(u"wide"));
  expect_round_trip(std::vector<std::string>{"a", "", "ccc"});
  expect_round_trip(std::deque<int>{1, 2});
  expect_round_trip(std::deque<bool>{true, false});
  expect_round_trip(std::list<std::string>{"x", "y"});
  expect_round_trip(std::set<int>{3, 1, 2});
  expect_round_trip(std::multiset<std::string>{"a", "a", "b"});
  expect_round_trip(std::unordered_set<std::string>{"a", "b"});
  expect_round_trip(std::unordered_multiset<int>{1, 1, 2});
  expect_round_trip(std::map<std::string, Names>{{"k", {{1}, "v"}}});
  expect_round_trip(std::multimap<int, int>{{1, 2}, {1, 3}});
  expect_round_trip(std::unordered_map<int, std::vector<bool>>{{1, {true}}, {2, {}}});
  expect_round_trip(std::unordered_map<std::uint64_t, std::uint32_t>{{1, 2}, {3, 4}});  // a pair has padding
  expect_round_trip(std::unordered_multimap<int, int>{{1, 2}, {1, 2}});
  expect_round_trip(std::array<std::string, 3>{"a", "b", "c"});
  expect_round_trip(std::array<std::string, 0>{});
  expect_round_trip(std::vector<std::vector<std::vector<Point>>>{{}, {{}, {{1, 2}, {3, 4}}}});
  expect_round_trip(std::vector<std::pair<int, Colour>>{{1, Colour::red}, {2, Colour::green}});
}

TEST(Serialize, bits_are_packed_at_every_length) {
  for (std::size_t length = 0; length < 70; ++length) {
    std::vector<bool> bits(length);
    for (std::size_t i = 0; i < length; ++i) bits[i] = i % 3 == 0;
    expect_round_trip(bits);
    EXPECT_EQ(serialized_bytes(bits), 1 + (length + 7) / 8);
  }
}

TEST(Serialize, sums_and_products_survive_the_round_trip) {
  expect_round_trip(std::optional<int>());
  expect_round_trip(std::optional<std::string>("s"));
  expect_round_trip(std::optional<std::optional<int>>(std::optional<int>()));
  expect_round_trip(std::variant<int, double>(2.5));
  expect_round_trip(std::variant<std::monostate, std::string, std::string>(std::in_place_index<2>, "second"));
  expect_round_trip(std::tuple<int, std::string, std::tuple<>>(1, "x", {}));
  expect_round_trip(std::pair<std::string, bool>("p", true));
}

TEST(Serialize, a_member_that_lies_in_the_padding_of_another_is_left_alone) {
  struct Padded {
    Padded(int first = 0, char second = 0) : a(first), b(second) {}
    int a;
    char b;
    bool operator==(const Padded&) const = default;
  };
  struct Empty {
    bool operator==(const Empty&) const = default;
  };
  struct Tight {
    std::string text;
    [[no_unique_address]] Padded padded;
    char in_padding;
    [[no_unique_address]] Empty empty;
    char last;
    bool operator==(const Tight&) const = default;
  };
  Tight out{"", Padded(9, 9), 9, {}, 9};
  const Tight value{"text", Padded(1, 'b'), 'p', {}, 'l'};
  read_all(bytes_of(value), out);
  EXPECT_EQ(out, value);
}

TEST(Serialize, nested_aggregates_survive_the_round_trip) {
  expect_round_trip(mixed());
  expect_round_trip(std::vector<Mixed>(3, mixed()));
  expect_round_trip(Tree{1, {{2, {}}, {3, {{4, {}}}}}});
}

TEST(Serialize, c_arrays_survive_the_round_trip) {
  const std::string words[2][2] = {{"a", "b"}, {"", "d"}};
  std::string out[2][2];
  read_all(bytes_of(words), out);
  EXPECT_EQ(out[0][1], "b");
  EXPECT_EQ(out[1][1], "d");
}

TEST(Serialize, one_serialize_member_serves_both_directions) {
  const Account account("Ada", 512);
  expect_round_trip(account);
  expect_round_trip(std::map<int, Account>{{1, account}});
  const int number = 1;
  Cached cached{.value = 3, .cache = &number};
  const Cached copy = round_trip(cached);
  EXPECT_EQ(copy.value, 3);
  EXPECT_EQ(copy.cache, nullptr);
}

TEST(Serialize, types_without_default_constructor_travel_in_containers_when_trivially_copyable) {
  const std::vector<Id> ids{Id(1), Id(2)};
  expect_round_trip(ids);
  expect_round_trip(std::map<int, Id>{{1, Id(5)}});
  expect_round_trip(std::optional<Id>(Id(3)));
  expect_round_trip(std::vector<std::variant<Id, int>>{Id(3), 4});
}

TEST(Serialize, elements_that_write_nothing_are_counted_and_bounded) {
  expect_round_trip(std::vector<Silent>(1000));
  expect_round_trip(std::pair<std::vector<Silent>, int>(std::vector<Silent>(5), 7));
  expect_round_trip(std::list<std::tuple<>>(300));
  EXPECT_EQ(serialized_bytes(std::vector<Account>(3, Account("Ada", 1))), 1 + 3 * 8u);
}

TEST(Serialize, large_counts_take_more_digits) {
  constexpr std::pair<std::size_t, std::size_t> counts_and_digits[] = {
      {127, 1}, {128, 2}, {16383, 2}, {16384, 3}, {3000000, 4}};
  for (const auto& [count, digits] : counts_and_digits) {
    const std::string text(count, 'z');
    EXPECT_EQ(round_trip(text), text);
    EXPECT_EQ(serialized_bytes(text), count + digits);
  }
}

TEST(Serialize, reading_into_a_value_reuses_its_memory) {
  std::vector<std::string> out(3, std::string(100, 'o'));
  const std::string* const first = out.data();
  const char* const text = out[1].data();
  read_all(bytes_of(std::vector<std::string>{"a", std::string(90, 'b')}), out);
  EXPECT_EQ(out, (std::vector<std::string>{"a", std::string(90, 'b')}));
  EXPECT_EQ(out.data(), first);
  EXPECT_EQ(out[1].data(), text);

  std::variant<int, std::vector<int>> choice = std::vector<int>(50);
  const int* const numbers = std::get<1>(choice).data();
  read_all(bytes_of(std::variant<int, std::vector<int>>(std::vector<int>{1, 2})), choice);
  EXPECT_EQ(std::get<1>(choice).data(), numbers);

  Mixed full = mixed();
  Mixed other = mixed();
  other.where.reset();
  other.table.clear();
  other.choice = 4;
  read_all(bytes_of(other), full);
  EXPECT_EQ(full, other);
}

template <class T>
std::string refusal(const std::vector<unsigned>& numbers) {
  Bytes bytes;
  for (const unsigned number : numbers) bytes.push_back(static_cast<std::byte>(number));
  ByteReader reader(bytes);
  try {
    static_cast<void>(deserialize<T>(reader));
  } catch (const FormatError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Serialize, damaged_bytes_are_refused_with_what_is_wrong) {
  EXPECT_EQ(refusal<int>({1, 2, 3}), "headway: damaged bytes: 4 bytes wanted where 3 are left");
  EXPECT_EQ(refusal<bool>({2}), "headway: damaged bytes: a bool is neither 0 nor 1 but 2");
  EXPECT_EQ(refusal<std::optional<int>>({9, 0, 0, 0, 0}), "headway: damaged bytes: a bool is neither 0 nor 1 but 9");
  EXPECT_EQ((refusal<std::variant<int, char>>({3, 0, 0, 0, 0})),
            "headway: damaged bytes: a variant has no alternative number 3");
  EXPECT_EQ((refusal<std::variant<int, char>>({0})), "headway: damaged bytes: a variant has no alternative number 0");
  EXPECT_EQ(refusal<std::vector<double>>({2, 0, 0}),
            "headway: damaged bytes: 2 elements of at least 8 bytes promised where 2 bytes are left");
  EXPECT_EQ(refusal<std::string>({255, 255, 255, 255, 255, 255, 255, 255, 255, 2}),
            "headway: damaged bytes: a count does not fit in 64 bits, its last digit is 2");
  EXPECT_EQ(refusal<std::string>({}), "headway: damaged bytes: 1 byte wanted where 0 are left");
}

TEST(Serialize, a_count_that_the_bytes_cannot_justify_is_refused_before_memory_is_claimed) {
  const std::vector<unsigned> huge{255, 255, 255, 255, 255, 255, 255, 255, 127, 1, 1, 1, 1};
  EXPECT_NE(refusal<std::vector<char>>(huge), "accepted");
  EXPECT_NE(refusal<std::vector<bool>>(huge), "accepted");
  EXPECT_NE(refusal<std::vector<Point>>(huge), "accepted");
  EXPECT_NE(refusal<std::vector<Silent>>(huge), "accepted");
  EXPECT_NE(refusal<std::list<std::tuple<>>>(huge), "accepted");
  EXPECT_NE(refusal<std::unordered_set<int>>(huge), "accepted");
  EXPECT_NE((refusal<std::map<std::string, int>>(huge)), "accepted");
}

TEST(Serialize, bytes_justify_memory_only_once_however_deep_containers_lie_in_each_other) {
  EXPECT_NE((refusal<std::vector<std::vector<std::string>>>({3, 3, 0, 0, 0})), "accepted");
  EXPECT_NE((refusal<std::vector<std::map<int, std::vector<char>>>>({2, 2, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0})), "accepted");
  EXPECT_EQ((refusal<std::vector<std::vector<std::string>>>({3, 3, 0, 0, 0, 0, 0})), "accepted");

  // Each level announces as many children as bytes are left.
  std::vector<unsigned> chain;
  for (int i = 0; i < 200; ++i) chain.insert(chain.end(), {0, 0, 0, 0, 100});
  EXPECT_NE(refusal<Tree>(chain), "accepted");
  EXPECT_NE(refusal<std::vector<Silent>>({4, 0, 0, 0}), "accepted");
  EXPECT_EQ(refusal<std::vector<Silent>>({4, 0, 0, 0, 0}), "accepted");
}

TEST(Serialize, nesting_is_bounded_so_that_bytes_cannot_exhaust_the_stack) {
  Bytes bytes;
  for (int i = 0; i < 100000; ++i) {
    const std::array<std::byte, 5> level{std::byte{}, std::byte{}, std::byte{}, std::byte{}, std::byte{1}};
    bytes.insert(bytes.end(), level.begin(), level.end());
  }
  ByteReader tree(bytes);
  EXPECT_THROW(static_cast<void>(deserialize<Tree>(tree)), FormatError);
  ByteReader chain(bytes);
  EXPECT_THROW(static_cast<void>(deserialize<Chain>(chain)), FormatError);
}

using Everything =
    std::tuple<Mixed, Tree, Account, std::vector<bool>, std::unordered_map<std::string, std::list<std::u16string>>,
               std::vector<std::optional<Point>>, std::vector<Silent>, std::multimap<Colour, std::set<int>>,
               std::variant<std::vector<Account>, std::deque<std::pair<int, std::string>>>, std::vector<Id>>;

Everything everything() {
  return {mixed(),
          Tree{1, {{2, {}}, {3, {{4, {}}}}}},
          Account("Grace", 99),
          std::vector<bool>(13, true),
          {{"key", {u"one", u"two"}}, {"", {}}},
          {Point{1, 2}, std::nullopt},
          std::vector<Silent>(9),
          {{Colour::green, {1, 2, 3}}, {Colour::green, {}}},
          std::deque<std::pair<int, std::string>>{{1, "one"}, {2, "two"}},
          {Id(1), Id(2)}};
}

TEST(Serialize, everything_at_once_survives_the_round_trip) { expect_round_trip(everything()); }

TEST(Serialize, damaged_bytes_are_either_refused_or_another_value_by_seed) {
  const Bytes valid = bytes_of(everything());
  Everything reused;
  int refused = 0;
  for (std::uint32_t seed = 0; seed < 100000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
    Bytes bytes = valid;
    if (below(2) == 0) bytes.resize(below(bytes.size() + 1));
    for (std::size_t changes = below(6); changes > 0 && !bytes.empty(); --changes) {
      constexpr std::array<unsigned, 6> likely{0, 1, 2, 127, 128, 255};
      const std::size_t which = below(likely.size() * 2);
      bytes[below(bytes.size())] = static_cast<std::byte>(which < likely.size() ? likely[which] : random() & 255);
    }
    ByteReader reader(bytes);
    try {
      deserialize(reader, reused);
      // An accepted value can be sent again.
      ASSERT_GT(bytes_of(reused).size(), 0u);
    } catch (const FormatError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 99000);
}

}  // namespace
}  // namespace headway::serialize_test
