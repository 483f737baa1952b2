/// Copies of a few bytes, for the path of every message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/base/copy_large.hpp>

namespace headway {

/// Asks for the line at `to` to be written. __builtin_prefetch(to, 1) would ask to read it where the compiler may not
/// assume `prefetchw`, and a line that another processor has read would be asked for again when it is written.
inline __attribute__((always_inline)) void ask_to_write(const std::byte* to) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*to));
#else
  __builtin_prefetch(to, 1);
#endif
}

/// After `bytes` were written at `to` in a frame, or before: asks for the lines that later messages of such a size will
/// be written to, which are with their reader. For shorter ones the processor asks in time by itself; longer ones would
/// push out the lines asked for. Where messages for one PE follow one another it pays from 65 bytes on, else `above` 128.
template <std::size_t above = 128>
inline __attribute__((always_inline)) void prefetch_next_lines(std::byte* to, std::size_t bytes) {
  constexpr std::size_t ahead = 2048, line = 64;
  if (bytes <= above || bytes > 1536) return;
  for (std::size_t i = 0; i < bytes; i += line) ask_to_write(to + ahead + i);
}

// What padding holds, and what a member that was never set holds, travels as it is.
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
/// Copies a fixed number of bytes without `rep movs`, which GCC makes of constant sizes and which is slow below 1 KB.
template <std::size_t n>
inline __attribute__((always_inline)) void copy_fixed(std::byte* to, const std::byte* from) {
  if constexpr (n <= 128) {
#pragma GCC unroll 32
    for (std::size_t i = 0; i + 8 <= n; i += 8) {
      std::uint64_t word;
      std::memcpy(&word, from + i, 8);
      std::memcpy(to + i, &word, 8);
    }
    if constexpr (n % 8 != 0) std::memcpy(to + n / 8 * 8, from + n / 8 * 8, n % 8);
  } else {
    // Its ends are what was set last: read in large pieces they would wait until they have left the store buffer.
    copy_fixed<16>(to, from);
    std::size_t middle = n - 24;
    asm("" : "+r"(middle));  // a size the compiler does not know: call libc
    if constexpr (n > 2048)
      copy_bytes(to + 16, from + 16, middle);
    else
      std::memcpy(to + 16, from + 16, middle);
    copy_fixed<8>(to + n - 8, from + n - 8);
  }
}

#pragma GCC diagnostic pop

// GCC sees an object of known size, or none, and warns of words beyond it, in branches that its size rules out.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wnonnull"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif
/// Copies 16 bytes at once.
inline __attribute__((always_inline)) void copy_wide(std::byte* to, const std::byte* from) {
  struct {
    std::byte content[16];
  } wide;
  std::memcpy(&wide, from, sizeof wide);
  std::memcpy(to, &wide, sizeof wide);
}

/// Copies around 8 to 64 bytes faster than memcpy does for sizes that are not known, in words: data that was just
/// written in words and is read in larger pieces stalls the processor. `in_pieces`: the same for the ends of longer
/// data. Up to `in_words` bytes without a call. `more_follows`: later messages go behind this one, in the same frame; their
/// lines are asked for.
template <bool in_pieces = false, std::size_t in_words = 64>
inline __attribute__((always_inline)) void copy_short(std::byte* to, const std::byte* from, std::size_t bytes,
                                                      bool more_follows = false) {
  auto word = [&](std::size_t at) __attribute__((always_inline)) {
    std::uint64_t value;
    std::memcpy(&value, from + at, 8);
    asm("" : "+r"(value));  // or GCC makes one load of two words
    return value;
  };
  auto put = [&](std::size_t at, std::uint64_t value) __attribute__((always_inline)) {
    std::memcpy(to + at, &value, 8);
  };
  if (bytes - 8 <= 32 - 8) [[likely]] {
    const std::uint64_t last = word(bytes - 8);  // overlaps the word before
    put(0, word(0));
    if (bytes > 16) {
      put(8, word(8));
      if (bytes > 24) put(16, word(16));
    }
    put(bytes - 8, last);
  } else if (bytes - 8 <= in_words - 8) {
    const std::uint64_t last = word(bytes - 8);
#pragma GCC unroll 1
    for (std::size_t at = 0; at < bytes - 8; at += 8) put(at, word(at));
    put(bytes - 8, last);
  } else if (in_pieces && bytes > 64 && (bytes <= 128 || bytes > 256)) {
    // Its ends may have been set just now: see copy_fixed().
    if (more_follows) prefetch_next_lines<64>(to, bytes);
    copy_fixed<16>(to, from);
    const std::uint64_t before = word(bytes - 16), last = word(bytes - 8);
    if (bytes > 256) {
      copy_bytes(to + 16, from + 16, bytes - 32);
    } else {
      for (const std::size_t at : {std::size_t(16), std::size_t(32), std::size_t(48), bytes - 48, bytes - 32}) {
        copy_wide(to + at, from + at);
      }
      if (bytes > 112) copy_wide(to + 64, from + 64);
    }
    put(bytes - 16, before);
    put(bytes - 8, last);
  } else if (bytes != 0) {
    if (more_follows) prefetch_next_lines(to, bytes);
    std::memcpy(to, from, bytes);
  }
}

/// The same for data that was written long ago or by another processor: in pieces of 16 bytes.
inline __attribute__((always_inline)) void copy_received(std::byte* to, const std::byte* from, std::size_t bytes) {
  struct Wide {
    std::byte content[16];
  };
  auto wide = [&](std::size_t at) __attribute__((always_inline)) {
    Wide value;
    std::memcpy(&value, from + at, sizeof value);
    return value;
  };
  auto put = [&](std::size_t at, Wide value) __attribute__((always_inline)) {
    std::memcpy(to + at, &value, sizeof value);
  };
  if (bytes - 16 <= 128 - 16) [[likely]] {
    const Wide last = wide(bytes - 16);  // overlaps the piece before
    put(0, wide(0));
    if (bytes > 32) {
#pragma GCC unroll 1
      for (std::size_t at = 16; at < bytes - 16; at += 16) {
        asm("" : "+r"(at));  // else GCC makes the loop a `rep movs`, which takes longer to start than all of this
        put(at, wide(at));
      }
    }
    put(bytes - 16, last);
  } else if (bytes - 8 <= 16 - 8) {
    std::uint64_t first, last;
    std::memcpy(&first, from, 8);
    std::memcpy(&last, from + bytes - 8, 8);
    std::memcpy(to, &first, 8);
    std::memcpy(to + bytes - 8, &last, 8);
  } else if (bytes != 0) {
    copy_bytes(to, from, bytes);
  }
}

#pragma GCC diagnostic pop

}  // namespace headway
