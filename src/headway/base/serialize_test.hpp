// SPDX-License-Identifier: BSD-3-Clause
/// Types that tests of serialization send.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace headway::serialize_test {

enum class Colour : std::uint16_t { red, green = 500 };

struct Point {
  int x;
  double y;
  bool operator==(const Point&) const = default;
};

struct Names {
  std::vector<int> numbers;
  std::string text;
  bool operator==(const Names&) const = default;
};

struct Mixed {
  char tag[5];
  Names names;
  std::array<std::string, 2> pair;
  std::string rows[2];
  bool flag;
  std::optional<Point> where;
  std::map<std::string, std::vector<Names>> table;
  std::variant<int, std::string, Names> choice;
  bool operator==(const Mixed&) const = default;
};

struct Tree {
  int value;
  std::vector<Tree> children;
  bool operator==(const Tree&) const = default;
};

class Account {  // not an aggregate
 public:
  Account() = default;
  Account(std::string owner, int cents) : owner_(std::move(owner)), cents_(cents) {}
  template <class Archive>
  void serialize(Archive& archive) {
    archive(owner_, cents_);
  }
  bool operator==(const Account&) const = default;

 private:
  std::string owner_;
  int cents_ = 0;
};

struct Cached {  // has an address, and serialize() for the rest
  int value = 0;
  const int* cache = nullptr;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value);
    if constexpr (Archive::is_loading::value) cache = nullptr;
  }
};

class Id {  // trivially copyable without default constructor
 public:
  explicit Id(int value) : value_(value) {}
  bool operator==(const Id&) const = default;

 private:
  int value_;
};

}  // namespace headway::serialize_test
