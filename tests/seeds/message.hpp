// SPDX-License-Identifier: BSD-3-Clause
/// The content of messages of random programs; each kind of channel encodes and recognises it in its own way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program.hpp"

namespace seeds {

using Content = std::span<const std::byte>;

/// The content that belongs to a message: a piece of random bytes, the same in every process.
Content content_of(std::uint64_t id, std::size_t bytes);

/// In every message but those of kinds without.
struct Header {
  std::uint64_t id;
  std::uint32_t order;  // of what one PE sent to another through one channel; main program and handlers count apart
  std::uint16_t source;
  std::uint8_t round;
  std::uint8_t hops;   // how often it is still sent on
  std::uint8_t level;  // how many epochs of its round it lies in
  bool sent_by_handler;
  std::uint8_t zero[6];
};
static_assert(sizeof(Header) == 24);

struct Nothing {};

template <std::size_t bytes>
struct Block {
  Header header;
  std::array<std::byte, bytes> content;
};

/// As strict as alignment gets.
struct alignas(64) Wide {
  Header header;
  std::array<std::byte, 40> content;
};

struct Record {
  Header header;
  std::optional<std::string> text;
  std::vector<std::uint16_t> numbers;
};

/// One codec per kind: send(header, content, to) calls to(arguments...); header_of(arguments...) and holds(content,
/// arguments...) check an arrived message. Codecs of kinds without a header have content_of instead.
namespace codecs {

inline bool same(Content a, Content b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}
inline std::string text_of(Content content) { return {reinterpret_cast<const char*>(content.data()), content.size()}; }
template <class T>
std::span<const T> elements_of(Content content) {
  return {reinterpret_cast<const T*>(content.data()), content.size() / sizeof(T)};
}

struct OfNothing {
  template <class To>
  static auto send(const Header&, Content, To to) {
    return to(Nothing{});
  }
  static Content content_of(const Nothing&) { return {}; }
};

struct OfByte {
  template <class To>
  static auto send(const Header&, Content content, To to) {
    return to(std::uint8_t(content[0]));
  }
  static Content content_of(const std::uint8_t& value) { return std::as_bytes(std::span(&value, 1)); }
};

struct OfHeader {
  template <class To>
  static auto send(const Header& header, Content, To to) {
    return to(header);
  }
  static const Header& header_of(const Header& header) { return header; }
  static bool holds(Content content, const Header&) { return content.empty(); }
};

template <class Type>
struct OfBlock {
  template <class To>
  static auto send(const Header& header, Content content, To to) {
    Type block{header, {}};
    std::memcpy(block.content.data(), content.data(), block.content.size());
    return to(block);
  }
  static const Header& header_of(const Type& block) { return block.header; }
  static bool holds(Content content, const Type& block) { return same(content, block.content); }
};

struct OfPair {
  template <class To>
  static auto send(const Header& header, Content content, To to) {
    return to(std::uint8_t(content[0]), header);
  }
  static const Header& header_of(std::uint8_t, const Header& header) { return header; }
  static bool holds(Content content, std::uint8_t value, const Header&) { return std::uint8_t(content[0]) == value; }
};

struct OfBare {
  template <class To>
  static auto send(const Header&, Content content, To to) {
    return to(content);
  }
  static Content content_of(Content content) { return content; }
};

struct OfSpan {
  template <class To>
  static auto send(const Header& header, Content content, To to) {
    return to(header, content);
  }
  static const Header& header_of(const Header& header, Content) { return header; }
  static bool holds(Content content, const Header&, Content arrived) { return same(content, arrived); }
};

struct OfText {
  template <class To>
  static auto send(const Header& header, Content content, To to) {
    return to(std::string_view(reinterpret_cast<const char*>(content.data()), content.size()), header);
  }
  static const Header& header_of(std::string_view, const Header& header) { return header; }
  static bool holds(Content content, std::string_view text, const Header&) {
    return same(content, std::as_bytes(std::span(text)));
  }
};

/// A third of it as words, the rest as text.
struct OfViews {
  using Words = std::span<const std::uint64_t>;
  static std::size_t split(std::size_t bytes) { return bytes / 3 / sizeof(std::uint64_t) * sizeof(std::uint64_t); }
  template <class To>
  static auto send(const Header& header, Content content, To to) {
    const std::size_t at = split(content.size());
    const auto text = elements_of<char>(content.subspan(at));
    return to(elements_of<std::uint64_t>(content.first(at)), header, std::string_view(text.data(), text.size()));
  }
  static const Header& header_of(Words, const Header& header, std::string_view) { return header; }
  static bool holds(Content content, Words words, const Header&, std::string_view text) {
    const std::size_t at = split(content.size());
    return same(content.first(at), std::as_bytes(words)) && same(content.subspan(at), std::as_bytes(std::span(text)));
  }
};

struct OfStrings {
  using Strings = std::vector<std::string>;
  /// Pieces of 0, 1, 2, ... bytes.
  static Strings split(Content content) {
    Strings strings;
    for (std::size_t n = 0; !content.empty(); ++n) {
      const std::size_t bytes = std::min(n, content.size());
      strings.push_back(text_of(content.first(bytes)));
      content = content.subspan(bytes);
    }
    return strings;
  }
  template <class To>
  static auto send(const Header& header, Content content, To to) {
    return to(header, split(content));
  }
  static const Header& header_of(const Header& header, const Strings&) { return header; }
  static bool holds(Content content, const Header&, const Strings& strings) { return strings == split(content); }
};

struct OfMap {
  using Map = std::map<std::uint32_t, std::string>;
  static Map split(Content content) {
    Map map;
    for (std::size_t n = 20; !content.empty(); n += 10) {
      const std::size_t bytes = std::min(n, content.size());
      map[std::uint32_t(content[0]) << 16 | std::uint32_t(n)] = text_of(content.first(bytes));
      content = content.subspan(bytes);
    }
    return map;
  }
  template <class To>
  static auto send(const Header& header, Content content, To to) {
    return to(split(content), header);
  }
  static const Header& header_of(const Map&, const Header& header) { return header; }
  static bool holds(Content content, const Map& map, const Header&) { return map == split(content); }
};

struct OfRecord {
  template <class To>
  static auto send(const Header& header, Content content, To to) {
    Record record{header, std::nullopt, {}};
    const std::size_t at = content.size() / 2 * 2;
    const auto numbers = elements_of<std::uint16_t>(content.first(at));
    record.numbers.assign(numbers.begin(), numbers.end());
    if (at != content.size()) record.text = text_of(content.subspan(at));
    return to(record);
  }
  static const Header& header_of(const Record& record) { return record.header; }
  static bool holds(Content content, const Record& record) {
    const std::size_t at = content.size() / 2 * 2;
    return same(content.first(at), std::as_bytes(std::span(record.numbers))) &&
           record.text.has_value() == (at != content.size()) &&
           (!record.text || *record.text == text_of(content.subspan(at)));
  }
};

}  // namespace codecs
}  // namespace seeds
