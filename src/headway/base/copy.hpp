// SPDX-License-Identifier: BSD-3-Clause
/// Copies of a few bytes, for the path of every message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/base/copy_large.hpp>
#include <initializer_list>

namespace headway::base {

/// Prefetches the line at `to` for a write. Without `prefetchw`, __builtin_prefetch(to, 1) only prefetches for a read,
/// and the write to a line that another core has read would have to fetch it again.
inline __attribute__((always_inline)) void prefetch_for_write(const std::byte* to) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*to));
#else
  __builtin_prefetch(to, 1);
#endif
}

/// Prefetches the lines of a frame for later messages of `bytes` bytes behind the message at `to`; these lines lie in
/// their reader's cache. For shorter messages the hardware prefetcher is early enough; longer messages would evict the
/// lines again. It pays from 65 bytes on if consecutive messages go to one PE, else above 128.
template <std::size_t above = 128>
inline __attribute__((always_inline)) void prefetch_for_next_messages(std::byte* to, std::size_t bytes) {
  constexpr std::size_t ahead = 2048, line = 64;
  if (bytes <= above || bytes > 1536) return;
  for (std::size_t i = 0; i < bytes; i += line) prefetch_for_write(to + ahead + i);
}

// Padding and members without a value are copied as they are.
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
    // The ends are often stored last: loads of large pieces would wait until these stores have left the store buffer.
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

// GCC warns of accesses beyond the object in branches that the object's size excludes.
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

/// Copies about 8 to 64 bytes in words, which is faster than memcpy for sizes that the compiler does not know: the
/// processor stalls on a larger load of data that was just stored in words. `in_pieces`: copies the ends of longer data
/// in words, too. Up to `in_words` bytes need no call. `more_follows`: later messages follow in the same frame;
/// prefetches their lines.
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
    // The ends may have been stored just now: see copy_fixed().
    if (more_follows) prefetch_for_next_messages<64>(to, bytes);
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
    if (more_follows) prefetch_for_next_messages(to, bytes);
    std::memcpy(to, from, bytes);
  }
}

/// Copies data that was written long ago or by another core, in pieces of 16 bytes.
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

}  // namespace headway::base
