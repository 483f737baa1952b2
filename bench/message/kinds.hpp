// SPDX-License-Identifier: BSD-3-Clause
/// How a message of each `--type` is made, sent and read. A Kind has
///
///     using Sender          the aggregator
///     using Received        what its handler gets
///     Kind(bytes, source)
///     send(sender, destination, index)   sends message `index`
///     send_all(sender, destination, n)   sends messages 0 to n-1, in one call where that may gain
///     ends(received)                     the part that the timed pass reads
///     check(checker, received)           every byte, as checker(message, bytes)
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/aggregator.hpp>
#include <memory>
#include <message/message.hpp>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace headway::bench {

template <class Message>
class FixedKind {
 public:
  using Sender = Aggregator<Message>;
  using Received = const Message&;

  FixedKind(std::size_t /*bytes*/, std::size_t source) {
    fill_pattern(std::as_writable_bytes(std::span(message())), source);
  }
  inline __attribute__((always_inline)) void send(Sender& sender, std::size_t destination, std::uint64_t index) {
    with_message<2>([&](Message& message) {
      stamp(message, index);
      sender.send(destination, message);
    });
  }
  void send_all(Sender& sender, std::size_t destination, std::uint64_t count) {
    with_message<4>([&](Message& message) {
      const auto made = [&](std::uint64_t index) -> const Message& {
        stamp(message, index);
        return message;
      };
      sender.send_range(destination, std::views::iota(std::uint64_t(0), count) | std::views::transform(made));
    });
  }
  static Ends ends(Received received) { return ends_of(received); }
  static void check(auto& checker, Received received) {
    checker(reinterpret_cast<const std::byte*>(&received), sizeof received);
  }

 private:
  static constexpr bool is_small = sizeof(Message) <= 1024;  // larger ones are kept off the stack
  /// One of up to so many words lies in registers meanwhile.
  template <std::size_t words_max, class Body>
  void with_message(Body body) {
    if constexpr (sizeof(Message) <= words_max * sizeof(std::uint64_t)) {
      Message copy = message_;
      body(copy);
    } else {
      body(message());
    }
  }
  Message& message() {
    if constexpr (is_small)
      return message_;
    else
      return *message_;
  }
  static auto make() {
    if constexpr (is_small)
      return Message{};
    else
      return std::make_unique<Message>();
  }
  std::conditional_t<is_small, Message, std::unique_ptr<Message>> message_ = make();
};

/// Messages with their bytes in a row: the program sends an `Argument`, `Owner` keeps it.
template <class Argument, class Owner, class Given>
class ContentKind {
 public:
  using Sender = Aggregator<Argument>;
  using Received = Given;

  ContentKind(std::size_t bytes, std::size_t source) : message_(bytes, {}) {
    fill_pattern(std::as_writable_bytes(std::span(message_)), source);
  }
  inline __attribute__((always_inline)) void send(Sender& sender, std::size_t destination, std::uint64_t index) {
    stamp(reinterpret_cast<std::byte*>(message_.data()), message_.size(), index);
    sender.send(destination, message_);
  }
  void send_all(Sender& sender, std::size_t destination, std::uint64_t count) {
    // A local reference: the compiler would read a member again after each message, since bytes may alias anything.
    const Argument& argument = message_;
    std::byte* const at = reinterpret_cast<std::byte*>(message_.data());
    const std::size_t bytes = message_.size();
    for (std::uint64_t i = 0; i < count; ++i) {
      stamp(at, bytes, i);
      sender.send(destination, argument);
    }
  }
  static Ends ends(Received received) { return ends_of(bytes_of(received), received.size()); }
  static void check(auto& checker, Received received) { checker(bytes_of(received), received.size()); }

 private:
  static const std::byte* bytes_of(const auto& received) { return reinterpret_cast<const std::byte*>(received.data()); }
  Owner message_;
};

using Bytes = std::vector<std::byte>;
using SpanKind = ContentKind<std::span<const std::byte>, Bytes, std::span<const std::byte>>;
using VectorKind = ContentKind<Bytes, Bytes, const Bytes&>;
using StringKind = ContentKind<std::string, std::string, const std::string&>;

/// The first half of the bytes is a vector, the second a string; of a odd number, the string has one more.
struct Parts {
  std::vector<std::byte> front;
  std::string back;
};

class PartsKind {
 public:
  using Sender = Aggregator<Parts>;
  using Received = const Parts&;

  PartsKind(std::size_t bytes, std::size_t source) : message_{Bytes(bytes / 2), std::string(bytes - bytes / 2, '\0')} {
    Bytes whole(bytes);
    fill_pattern(whole, source);
    split(whole, message_);
  }
  inline __attribute__((always_inline)) void send(Sender& sender, std::size_t destination, std::uint64_t index) {
    const std::size_t bytes = message_.front.size() + message_.back.size();
    if (bytes >= 16) [[likely]] {  // the number lies in one part, its complement in the other
      const std::uint64_t complement = ~index;
      std::memcpy(message_.front.data(), &index, 8);
      std::memcpy(message_.back.data() + message_.back.size() - 8, &complement, 8);
    } else {
      Bytes whole = joined(message_);
      stamp(whole.data(), bytes, index);
      split(whole, message_);
    }
    sender.send(destination, message_);
  }
  void send_all(Sender& sender, std::size_t destination, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) send(sender, destination, i);
  }
  static Ends ends(Received received) {
    const std::size_t bytes = received.front.size() + received.back.size();
    if (bytes < 16) [[unlikely]] {
      const Bytes whole = joined(received);
      return ends_of(whole.data(), bytes);
    }
    Ends ends;
    std::memcpy(&ends.front, received.front.data(), 8);
    std::memcpy(&ends.back, received.back.data() + received.back.size() - 8, 8);
    return ends;
  }
  static void check(auto& checker, Received received) {
    const Bytes whole = joined(received);
    checker(whole.data(), whole.size());
  }

 private:
  static Bytes joined(const Parts& parts) {
    Bytes whole = parts.front;
    const auto back = std::as_bytes(std::span(parts.back));
    whole.insert(whole.end(), back.begin(), back.end());
    return whole;
  }
  static void split(const Bytes& whole, Parts& parts) {
    const auto middle = whole.begin() + std::ptrdiff_t(parts.front.size());
    std::copy(whole.begin(), middle, parts.front.begin());
    std::transform(middle, whole.end(), parts.back.begin(), [](std::byte b) { return char(b); });
  }
  Parts message_;
};

/// Calls body(std::type_identity<Kind>{}) for one of message_types and a size that it may have.
template <class Body>
auto with_kind(const std::string& type, std::size_t bytes, Body&& body) {
  using Result = decltype(body(std::type_identity<SpanKind>{}));
  if (type == "vector") return body(std::type_identity<VectorKind>{});
  if (type == "string") return body(std::type_identity<StringKind>{});
  if (type == "struct") return body(std::type_identity<PartsKind>{});
  Result result{};
  const bool is_fixed = type == "fixed" && with_fixed_size(bytes, [&]<class Message>(std::type_identity<Message>) {
                          result = body(std::type_identity<FixedKind<Message>>{});
                        });
  return is_fixed ? result : body(std::type_identity<SpanKind>{});
}

}  // namespace headway::bench
