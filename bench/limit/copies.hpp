// SPDX-License-Identifier: BSD-3-Clause
/// Copies of many bytes, formulated in several ways.
#pragma once

#include <sys/types.h>

#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "build.hpp"

namespace headway::limit {

#if defined(__x86_64__)
inline void copy_string(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
}

/// Past the caches. `to` begins 16 bytes.
inline void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t whole = bytes / sizeof(__m128i) * sizeof(__m128i);
  for (std::size_t i = 0; i < whole; i += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  }
  _mm_sfence();
  std::memcpy(to + whole, from + whole, bytes - whole);
}
#endif

struct CopyFormulation {
  const char* name;
  Copy copy;
};
inline constexpr CopyFormulation copies[] = {
    {"libc", copy_libc},        {"words", copy_words},         {"wide", copy_wide},
#if defined(__x86_64__)
    {"rep movsb", copy_string}, {"streaming", copy_streaming},
#endif
};

/// How much of another process's memory is read in a call.
struct CmaFormulation {
  const char* name;
  std::size_t piece;
};
inline constexpr CmaFormulation reads[] = {
    {"one call", std::size_t(1) << 40}, {"calls of 64K", std::size_t(1) << 16}, {"calls of 1M", std::size_t(1) << 20}};

/// A process, and an address that means something there.
struct Owner {
  pid_t process;
  std::byte* memory;
};

/// Reads `bytes` at `from`, an address in process `owner`, in calls of `piece` bytes. Throws the system's error.
void read_memory_of(pid_t owner, std::byte* to, std::byte* from, std::size_t bytes, std::size_t piece);

}  // namespace headway::limit
