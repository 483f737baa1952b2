// SPDX-License-Identifier: BSD-3-Clause
/// The messages of the rings. Word 0 holds the message's number, the last eight bytes its complement, the words between
/// a pattern that depends on the sender; less than 16 bytes hold the number alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <randomaccess/sequence.hpp>
#include <vector>

namespace headway::limit {

using Word = std::uint64_t;
inline constexpr std::size_t word_bytes = sizeof(Word);

constexpr std::size_t align_up(std::size_t n, std::size_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

/// Word `index` of a message between its ends.
constexpr Word pattern_word(std::size_t source, std::size_t index) {
  return 0x9e3779b97f4a7c15u * (source + 1) + index;
}

inline Word load(const std::byte* from) {
  Word word;
  std::memcpy(&word, from, word_bytes);
  return word;
}
inline void store(std::byte* to, Word word) { std::memcpy(to, &word, word_bytes); }

/// Writes both ends of a message.
inline void stamp(std::byte* message, std::size_t bytes, Word number) {
  store(message, number);
  if (bytes >= 2 * word_bytes) store(message + bytes - word_bytes, ~number);
}

/// A message as a sender prepares it, with room behind it for copies in wide pieces.
inline std::vector<std::byte> prepared_message(std::size_t bytes, std::size_t source) {
  std::vector<std::byte> message(align_up(bytes, word_bytes) + 64);
  for (std::size_t i = 0; i * word_bytes < bytes; ++i) store(message.data() + i * word_bytes, pattern_word(source, i));
  return message;
}

/// Numbers of the HPC Challenge sequence: as cheap as random numbers get.
struct Sequence {
  Word state;
  Word next() { return state = randomaccess::step(state); }
};

/// Numbers 0, 1, 2, ... Each is a value that the program has made, one at a time: a compiler that saw through it would
/// make several at once, which no program that has messages to send could.
struct Indices {
  Word index;
  Word next() {
    Word number = index++;  // NOLINT(misc-const-correctness): the next line writes it
    asm volatile("" : "+r"(number));
    return number;
  }
};

// Where a message goes, by its number.
struct Always {
  std::size_t pe;
  std::size_t operator()(Word /*number*/) const { return pe; }
};
/// All PEs but the sender, one after the other, the next one first.
struct InTurn {
  std::size_t source, pes, last;
  std::size_t operator()(Word /*number*/) {
    last = last + 1 == pes ? 0 : last + 1;
    if (last == source) last = last + 1 == pes ? 0 : last + 1;
    return last;
  }
};
/// For a power of two of PEs, at most one per word: the high bits of the low `log2`.
struct HighBits {
  unsigned shift;
  Word mask;
  std::size_t operator()(Word number) const { return (number >> shift) & mask; }
};
/// For any number of PEs: their blocks of 2^log2 differ by one word at most.
struct Scaled {
  Word mask, pes;
  unsigned log2;
  std::size_t operator()(Word number) const { return ((number & mask) * pes) >> log2; }
};

}  // namespace headway::limit
