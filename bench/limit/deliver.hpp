// SPDX-License-Identifier: BSD-3-Clause
/// The receiver's loop over the messages of a buffer, formulated in several ways. Apply, the work for a message, gets
/// its first word and its last eight bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "messages.hpp"
#include "processes.hpp"

namespace headway::limit {

/// Updates a table: T[first & mask] ^= last.
struct Update {
  Word* table;
  Word mask;
  void operator()(Word first, Word last) { table[first & mask] ^= last; }
  void prefetch(Word first) const { __builtin_prefetch(&table[first & mask], 1); }
};

/// Adds up both ends.
struct Sum {
  Word front = 0, back = 0;
  void operator()(Word first, Word last) {
    front += first;
    back += last;
  }
  void prefetch(Word /*first*/) const {}
  bool operator==(const Sum&) const = default;
};

/// Compares with what must come.
struct Compare {};

class Comparison;     // comparison.hpp
struct OwnedObjects;  // owning.hpp

/// The state that a PE's deliveries change.
struct Receiver {
  Update update{};
  Sum sum{};
  Compare compare{};
  Comparison* comparison = nullptr;
  OwnedObjects* objects = nullptr;
  std::size_t source = 0;        // of the buffer being delivered
  std::size_t buffer_bytes = 0;  // as much of each buffer is used

  template <class Apply>
  Apply& as() {
    if constexpr (std::is_same_v<Apply, Update>) {
      return update;
    } else if constexpr (std::is_same_v<Apply, Compare>) {
      return compare;
    } else {
      return sum;
    }
  }
};

/// Delivers `bytes` of messages; returns how many those were.
using Deliver = std::uint64_t (*)(const std::byte* messages, std::size_t bytes, Receiver& receiver);

// Each formulation works on a copy of the Apply, which registers can hold: what messages do could otherwise alias it.

/// Messages of a size that the compiler knows.
template <std::size_t Bytes>
struct FixedMessages {
  static constexpr std::size_t prefetched = 16;  // messages ahead
  static constexpr std::size_t staged = 256;     // messages at once

  static Word first(const std::byte* message) { return load(message); }
  static Word last(const std::byte* message) { return load(message + Bytes - word_bytes); }

  template <class Apply>
  static std::uint64_t one_by_one(const std::byte* at, std::size_t bytes, Receiver& receiver) {
    Apply apply = receiver.as<Apply>();
    for (const std::byte* const end = at + bytes; at != end; at += Bytes) apply(first(at), last(at));
    receiver.as<Apply>() = apply;
    return bytes / Bytes;
  }

  template <class Apply>
  static std::uint64_t by_four(const std::byte* at, std::size_t bytes, Receiver& receiver) {
    Apply apply = receiver.as<Apply>();
    const std::byte* const end = at + bytes;
    for (; std::size_t(end - at) >= 4 * Bytes; at += 4 * Bytes) {
      const Word first_0 = first(at), last_0 = last(at);
      const Word first_1 = first(at + Bytes), last_1 = last(at + Bytes);
      const Word first_2 = first(at + 2 * Bytes), last_2 = last(at + 2 * Bytes);
      const Word first_3 = first(at + 3 * Bytes), last_3 = last(at + 3 * Bytes);
      apply(first_0, last_0);
      apply(first_1, last_1);
      apply(first_2, last_2);
      apply(first_3, last_3);
    }
    for (; at != end; at += Bytes) apply(first(at), last(at));
    receiver.as<Apply>() = apply;
    return bytes / Bytes;
  }

  /// The slots of later messages are asked for before these are applied, and the lines of later ones still.
  template <class Apply>
  static std::uint64_t prefetching(const std::byte* at, std::size_t bytes, Receiver& receiver) {
    Apply apply = receiver.as<Apply>();
    const std::byte* const end = at + bytes;
    for (; std::size_t(end - at) > 2 * prefetched * Bytes; at += Bytes) {
      if constexpr (Bytes >= cache_line) {
        __builtin_prefetch(at + 2 * prefetched * Bytes);
        __builtin_prefetch(at + 2 * prefetched * Bytes + Bytes - word_bytes);
      }
      apply.prefetch(first(at + prefetched * Bytes));
      apply(first(at), last(at));
    }
    for (; at != end; at += Bytes) apply(first(at), last(at));
    receiver.as<Apply>() = apply;
    return bytes / Bytes;
  }

  /// A block of messages is read into local arrays, then applied: reading waits for nothing that applying does.
  template <class Apply>
  static std::uint64_t staging(const std::byte* at, std::size_t bytes, Receiver& receiver) {
    Apply apply = receiver.as<Apply>();
    const std::uint64_t count = bytes / Bytes;
    Word firsts[staged], lasts[staged];
    for (std::uint64_t left = count; left > 0;) {
      const std::size_t block = left < staged ? left : staged;
      for (std::size_t i = 0; i < block; ++i, at += Bytes) {
        firsts[i] = first(at);
        lasts[i] = last(at);
        apply.prefetch(firsts[i]);
      }
      for (std::size_t i = 0; i < block; ++i) apply(firsts[i], lasts[i]);
      left -= block;
    }
    receiver.as<Apply>() = apply;
    return count;
  }
};

// Messages of any size from 8 bytes, each up to a multiple of 8. Their lengths lie in one of two ways; both are walked
// alike.

/// A word with its length before each message.
struct LengthBefore {
  static constexpr std::size_t in_front = word_bytes, at_end = 0;
  static void put(std::byte* at, std::byte*& /*limit*/, std::size_t bytes) { store(at, bytes); }

  const std::byte* at;
  LengthBefore(const std::byte* buffer, std::size_t /*buffer_bytes*/) : at(buffer) {}
  std::size_t bytes() const { return load(at); }
  const std::byte* message() const { return at + in_front; }
  void step() { at += in_front + align_up(bytes(), word_bytes); }
};

/// Lengths in four bytes each, from the end of the buffer down.
struct LengthsAtEnd {
  static constexpr std::size_t in_front = 0, at_end = sizeof(std::uint32_t);
  static void put(std::byte* /*at*/, std::byte*& limit, std::size_t bytes) {
    const auto length = std::uint32_t(bytes);
    limit -= at_end;
    std::memcpy(limit, &length, sizeof length);
  }

  const std::byte* at;
  const std::byte* length;
  LengthsAtEnd(const std::byte* buffer, std::size_t buffer_bytes)
      : at(buffer), length(buffer + buffer_bytes - at_end) {}
  std::size_t bytes() const {
    std::uint32_t bytes;
    std::memcpy(&bytes, length, sizeof bytes);
    return bytes;
  }
  const std::byte* message() const { return at; }
  void step() {
    at += align_up(bytes(), word_bytes);
    length -= at_end;
  }
};

template <class Walk>
struct VariableMessages {
  static constexpr std::size_t staged = 64;

  static Word first(const Walk& walk) { return load(walk.message()); }
  static Word last(const Walk& walk) {
    const std::size_t bytes = walk.bytes();
    return load(walk.message() + (bytes >= 2 * word_bytes ? bytes - word_bytes : 0));
  }

  template <class Apply>
  static std::uint64_t one_by_one(const std::byte* messages, std::size_t bytes, Receiver& receiver) {
    Apply apply = receiver.as<Apply>();
    std::uint64_t count = 0;
    const std::byte* const end = messages + bytes;
    for (Walk walk(messages, receiver.buffer_bytes); walk.at != end; walk.step(), ++count)
      apply(first(walk), last(walk));
    receiver.as<Apply>() = apply;
    return count;
  }

  template <class Apply>
  static std::uint64_t by_four(const std::byte* messages, std::size_t bytes, Receiver& receiver) {
    Apply apply = receiver.as<Apply>();
    std::uint64_t count = 0;
    const std::byte* const end = messages + bytes;
    Walk walk(messages, receiver.buffer_bytes);
    while (walk.at != end) {
      Walk second = walk;
      second.step();
      Walk third = second;
      if (second.at != end) third.step();
      Walk fourth = third;
      if (third.at != end) fourth.step();
      if (fourth.at == end) break;
      const Word first_0 = first(walk), last_0 = last(walk), first_1 = first(second), last_1 = last(second);
      const Word first_2 = first(third), last_2 = last(third), first_3 = first(fourth), last_3 = last(fourth);
      apply(first_0, last_0);
      apply(first_1, last_1);
      apply(first_2, last_2);
      apply(first_3, last_3);
      walk = fourth;
      walk.step();
      count += 4;
    }
    for (; walk.at != end; walk.step(), ++count) apply(first(walk), last(walk));
    receiver.as<Apply>() = apply;
    return count;
  }

  /// The lines of later messages are asked for before these are applied.
  template <class Apply>
  static std::uint64_t prefetching(const std::byte* messages, std::size_t bytes, Receiver& receiver) {
    constexpr std::size_t distance = 1024;
    Apply apply = receiver.as<Apply>();
    std::uint64_t count = 0;
    const std::byte* const end = messages + bytes;
    for (Walk walk(messages, receiver.buffer_bytes); walk.at != end; walk.step(), ++count) {
      __builtin_prefetch(walk.at + distance);
      apply(first(walk), last(walk));
    }
    receiver.as<Apply>() = apply;
    return count;
  }

  template <class Apply>
  static std::uint64_t staging(const std::byte* messages, std::size_t bytes, Receiver& receiver) {
    Apply apply = receiver.as<Apply>();
    std::uint64_t count = 0;
    Word firsts[staged], lasts[staged];
    const std::byte* const end = messages + bytes;
    for (Walk walk(messages, receiver.buffer_bytes); walk.at != end;) {
      std::size_t block = 0;
      for (; block < staged && walk.at != end; ++block, walk.step()) {
        firsts[block] = first(walk);
        lasts[block] = last(walk);
        apply.prefetch(firsts[block]);
      }
      for (std::size_t i = 0; i < block; ++i) apply(firsts[i], lasts[i]);
      count += block;
    }
    receiver.as<Apply>() = apply;
    return count;
  }
};

}  // namespace headway::limit
