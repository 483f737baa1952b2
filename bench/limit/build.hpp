// SPDX-License-Identifier: BSD-3-Clause
/// How a sender makes a message in a buffer, formulated in several ways. Each writes all bytes of every message.
#pragma once

#include <cstddef>
#include <cstring>

#include "deliver.hpp"
#include "messages.hpp"
#include "processor.hpp"

namespace headway::limit {

/// Copies in pieces of 8 bytes, up to 7 bytes too many. The empty asm keeps the compiler from seeing a memcpy, which it
/// would make a call or, for constant sizes, a slow instruction.
inline void copy_words(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += word_bytes) {
    Word word = load(from + i);  // NOLINT(misc-const-correctness): the next line writes it
    asm("" : "+r"(word));
    store(to + i, word);
  }
}

/// Copies in pieces of 16 bytes, up to 15 bytes too many.
inline void copy_wide(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(Wide)) {
    Wide piece;
    std::memcpy(&piece, from + i, sizeof piece);
    forget_source(piece);
    std::memcpy(to + i, &piece, sizeof piece);
  }
}

/// The C library's copy.
inline void copy_libc(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm("" : "+r"(bytes));  // a size that the compiler does not know
  std::memcpy(to, from, bytes);
}

/// How far behind its message a copy may write: no length may lie there.
inline constexpr std::size_t copied_too_many = 16;

using Copy = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

/// From its fields, in place: nothing is read.
template <std::size_t Bytes>
struct FixedFields {
  static constexpr bool fixed = true;
  static constexpr std::size_t room() { return Bytes; }
  Word base;
  FixedFields(const std::byte* /*prepared*/, std::size_t /*bytes*/, std::size_t source)
      : base(pattern_word(source, 0)) {}
  void operator()(std::byte* to, Word number) const {
    constexpr std::size_t words = Bytes / word_bytes;
    store(to, number);
    for (std::size_t i = 1; i + 1 < words; ++i) store(to + i * word_bytes, base + i);
    if constexpr (words > 1) store(to + Bytes - word_bytes, ~number);
  }
};

/// A copy of a prepared message, then both ends.
template <std::size_t Bytes, Copy copy>
struct FixedCopy {
  static constexpr bool fixed = true;
  static constexpr std::size_t room() { return Bytes; }
  const std::byte* prepared;
  FixedCopy(const std::byte* prepared_message, std::size_t /*bytes*/, std::size_t /*source*/)
      : prepared(prepared_message) {}
  void operator()(std::byte* to, Word number) const {
    copy(to, prepared, Bytes);
    stamp(to, Bytes, number);
  }
};

/// The same for a size known at run time. Its length is put where Walk finds it.
template <class Walk, Copy copy>
struct VariableCopy {
  static constexpr bool fixed = false;
  const std::byte* prepared;
  std::size_t bytes;
  VariableCopy(const std::byte* prepared_message, std::size_t message_bytes, std::size_t /*source*/)
      : prepared(prepared_message), bytes(message_bytes) {}
  std::size_t room() const { return Walk::in_front + align_up(bytes, word_bytes); }
  std::size_t needed() const { return room() + Walk::at_end + (Walk::at_end > 0 ? copied_too_many : 0); }
  void put_length(std::byte* at, std::byte*& limit) const { Walk::put(at, limit, bytes); }
  void operator()(std::byte* to, Word number) const {
    copy(to + Walk::in_front, prepared, bytes);
    stamp(to + Walk::in_front, bytes, number);
  }
};

}  // namespace headway::limit
