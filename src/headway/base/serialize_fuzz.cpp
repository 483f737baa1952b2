// SPDX-License-Identifier: BSD-3-Clause
// Damaged payloads: all kinds of values, deserialized from changed valid bytes. The first byte of an input selects the
// type that is read from the other bytes.
#include <array>
#include <cstdint>
#include <deque>
#include <fuzz/fuzz.hpp>
#include <headway/base/serialize.hpp>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace headway {
namespace {

using fuzz::Bytes;

enum class Colour : std::uint8_t { red, green };

struct Point {
  std::int32_t x, y;
};

struct Person {
  std::string name;
  std::optional<std::vector<Point>> path;
  std::map<std::string, std::vector<int>> table;
  std::variant<int, std::string, std::vector<double>> choice;
  bool known;
  Colour colour;
};

struct Tree {
  int value;
  std::vector<Tree> children;
};

class Account {
 public:
  Account() = default;
  Account(std::string owner, std::int64_t balance) : owner_(std::move(owner)), balance_(balance) {}

  template <class Archive>
  void serialize(Archive& archive) {
    archive(owner_, balance_);
  }

 private:
  std::string owner_;
  std::int64_t balance_ = 0;
};

// A type with elements that may take no bytes, at each level.
struct Chain {
  std::vector<Chain> links;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(links);
  }
};

struct Silent {
  int unset = 0;

  template <class Archive>
  void serialize(Archive&) {}
};

class Case {
 public:
  virtual ~Case() = default;
  virtual std::vector<Bytes> valid() const = 0;
  virtual void begin_round() = 0;
  virtual void read(ByteReader& reader) = 0;
};

/// Values of one type. Reads into a used value and into a new one.
template <class T>
class CaseOf final : public Case {
 public:
  explicit CaseOf(std::initializer_list<T> values) : values_(values) {}

  std::vector<Bytes> valid() const override {
    std::vector<Bytes> result;
    for (const T& value : values_) {
      result.emplace_back(serialized_bytes(value));
      serialize(result.back().data(), value);
    }
    return result;
  }

  void begin_round() override { reused_ = std::make_unique<T>(); }

  void read(ByteReader& reader) override {
    if (reader.remaining() % 2 == 0) {
      const T value = deserialize<T>(reader);
      look_at(value);
    } else {
      deserialize(reader, *reused_);
      look_at(*reused_);
    }
  }

 private:
  /// Goes through all of it, and its bytes are no more than those that it was read from, or it was not read from them.
  static void look_at(const T& value) {
    if (serialized_bytes(value) == ~std::size_t(0)) throw fuzz::Broken("a value has no size");
  }

  std::vector<T> values_;
  std::unique_ptr<T> reused_;
};

template <class T>
std::unique_ptr<Case> values(std::initializer_list<T> list) {
  return std::make_unique<CaseOf<T>>(list);
}

std::vector<std::unique_ptr<Case>> all_cases() {
  using std::string;
  using std::vector;
  const Person ada{"Ada",        vector<Point>{{1, 2}, {3, 4}}, {{"a", {1, 2}}, {"", {}}}, string("word"), true,
                   Colour::green};
  const Tree tree{1, {{2, {}}, {3, {{4, {}}, {5, {}}}}}};
  const Chain chain{{{{{}, {{{}}}}}, {}}};
  std::vector<std::unique_ptr<Case>> cases;
  auto add = [&](std::unique_ptr<Case> one) { cases.push_back(std::move(one)); };
  add(values<std::uint64_t>({0, 7}));
  add(values<string>({"", "text", string(300, 'x')}));
  add(values<vector<int>>({{}, {1, 2, 3}, vector<int>(40, 9)}));
  add(values<vector<string>>({{"one", "", "three"}, vector<string>(100)}));
  add(values<vector<vector<vector<std::uint16_t>>>>({{{{1}, {}}, {{2, 3}}}, {{}, {}}}));
  add(values<std::map<string, vector<int>>>({{{"a", {1}}, {"b", {}}}}));
  add(values<std::unordered_map<string, std::list<std::u16string>>>({{{"key", {u"one", u"two"}}, {"", {}}}}));
  add(values<std::set<double>>({{1.5, 2.5, -3}}));
  add(values<std::unordered_set<string>>({{"here", "there"}}));
  add(values<std::multimap<Colour, std::set<int>>>({{{Colour::green, {1, 2}}, {Colour::green, {}}}}));
  add(values<std::optional<string>>({std::nullopt, "there"}));
  add(values<std::variant<int, string, vector<Point>>>({1, string("two"), vector<Point>{{3, 4}}}));
  add(values<std::tuple<bool, int, string>>({{true, 1, "one"}, {false, 0, ""}}));
  add(values<vector<bool>>({{}, vector<bool>(3, true), vector<bool>(70)}));
  add(values<std::array<string, 3>>({{"a", "b", "c"}}));
  add(values<std::list<std::tuple<>>>({std::list<std::tuple<>>(20)}));
  add(values<std::deque<std::pair<int, string>>>({{{1, "one"}, {2, "two"}}}));
  add(values<vector<std::optional<Point>>>({{Point{1, 2}, std::nullopt, Point{3, 4}}}));
  add(values<vector<Silent>>({vector<Silent>(30)}));
  add(values<Account>({{"Grace", 99}}));
  add(values<vector<Account>>({{{"Ada", 1}, {"", -1}}}));
  add(values<Tree>({tree}));
  add(values<vector<Tree>>({{tree, tree}}));
  add(values<Chain>({chain}));
  add(values<Person>({ada}));
  add(values<std::map<int, vector<Person>>>({{{1, {ada, ada}}, {2, {}}}}));
  add(values<std::tuple<Person, Tree, vector<Chain>, vector<bool>>>({{ada, tree, {chain}, {true}}}));
  return cases;
}

class Payloads final : public fuzz::Target {
 public:
  std::vector<Bytes> valid_inputs() override {
    std::vector<Bytes> inputs;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      for (Bytes& bytes : cases_[i]->valid()) {
        bytes.insert(bytes.begin(), std::byte(i));
        inputs.push_back(std::move(bytes));
      }
    }
    return inputs;
  }

  void begin_round(std::uint64_t) override {
    for (const auto& one : cases_) one->begin_round();
  }

  void mutate(Bytes& input, const Bytes& other, Random& random) override {
    if (random.one_in(32))
      input[0] = std::byte(random.below(cases_.size()));
    else if (random.one_in(8))
      nest(input, random);
    else
      fuzz::change_bytes(input, 1, other, random);
  }

  const std::string& decode(std::span<const std::byte> input) override {
    refusal_.clear();
    if (input.empty()) return refusal_;
    Case& one = *cases_[std::to_integer<std::size_t>(input[0]) % cases_.size()];
    const std::span bytes = input.subspan(1);
    const std::byte* const at = memory_.hold(bytes, 1, 0, 0);
    ByteReader reader(at, at + bytes.size());
    try {
      one.read(reader);
    } catch (const FormatError& error) {
      refusal_ = error.what();
    }
    memory_.let_go();
    return refusal_;
  }

  /// The largest element over its fewest bytes, and what containers add.
  std::size_t allocated_bytes_max(std::size_t input_bytes) const override { return (16u << 10) + 160 * input_bytes; }

 private:
  /// Repeats a few bytes many times: containers in each other, each with as many elements as it may promise.
  static void nest(Bytes& input, Random& random) {
    Bytes piece(1 + random.below(6));
    for (std::byte& byte : piece) byte = std::byte(random.one_in(2) ? random.below(4) : random.below(128));
    const std::size_t at = 1 + random.below(input.size());
    for (std::uint64_t times = random.size(1, 300); times > 0; --times) {
      input.insert(input.begin() + std::ptrdiff_t(at), piece.begin(), piece.end());
    }
  }

  std::vector<std::unique_ptr<Case>> cases_ = all_cases();
  fuzz::FencedMemory memory_{16 << 10};
  std::string refusal_;
};

}  // namespace
}  // namespace headway

int main(int argc, char** argv) {
  headway::Payloads payloads;
  return headway::fuzz::run(argc, argv, "headway_serialize_fuzz", payloads);
}
