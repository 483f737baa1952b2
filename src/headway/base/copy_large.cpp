// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <headway/base/copy_large.hpp>

#if defined(__SSE2__)
#include <cpuid.h>
#include <emmintrin.h>
#endif

namespace headway::base {

#if defined(__SSE2__)

namespace {

constexpr std::size_t page = 4096, line = 64;

/// Distance from `from` to `to` modulo the page size: the processor compares addresses within pages.
std::size_t distance(const std::byte* to, const std::byte* from) {
  return (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % page;
}

std::size_t within_line(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at) % line; }

// Distance of the prefetches; the hardware prefetcher looks less far ahead.
constexpr std::size_t ahead = 8 * line;
constexpr std::size_t block = 2 * line;

/// Width of a load and of a store.
enum class MoveWidth { bytes_16, bytes_64 };

// Sanitizers do not see the accesses of assembly.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEADWAY_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HEADWAY_SANITIZED 1
#endif
#endif

/// Copies two lines; loads both before it stores. `to` begins a line.
template <MoveWidth width>
void copy_block(std::byte* to, const std::byte* from);

#if defined(__x86_64__) && !defined(HEADWAY_SANITIZED)

/// True for processors on which moves of 64 bytes were measured to be faster: Intel's with AVX512-FP16, which keep
/// their clock. __builtin_cpu_supports() knows AVX512F, but not FP16 in every compiler.
bool has_wide_moves() {
  static const bool has = [] {
    __builtin_cpu_init();
    constexpr unsigned features = 7, fp16 = 1u << 23;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx512f") && __get_cpuid_count(features, 0, &a, &b, &c, &d) != 0 && (d & fp16) != 0;
  }();
  return has;
}

// Without -mavx512f the compiler does not use these registers and does not accept their names. SSE has no such
// registers, so that no vzeroupper is needed.
#if defined(__AVX512F__)
#define HEADWAY_CLOBBERED "memory", "xmm16", "xmm17"
#else
#define HEADWAY_CLOBBERED "memory"
#endif

template <>
inline __attribute__((always_inline)) void copy_block<MoveWidth::bytes_64>(std::byte* to, const std::byte* from) {
  asm volatile(
      "vmovdqu64 (%1), %%zmm16\n\tvmovdqu64 64(%1), %%zmm17\n\t"
      "vmovdqa64 %%zmm16, (%0)\n\tvmovdqa64 %%zmm17, 64(%0)"
      :
      : "r"(to), "r"(from)
      : HEADWAY_CLOBBERED);
}

#undef HEADWAY_CLOBBERED

#else

bool has_wide_moves() { return false; }

template <>
void copy_block<MoveWidth::bytes_64>(std::byte*, const std::byte*) {}  // never called

#endif
#undef HEADWAY_SANITIZED

template <>
inline __attribute__((always_inline)) void copy_block<MoveWidth::bytes_16>(std::byte* to, const std::byte* from) {
  constexpr std::size_t n = block / sizeof(__m128i);
  __m128i words[n];
  const auto* const read = reinterpret_cast<const __m128i*>(from);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < n; ++i) words[i] = _mm_loadu_si128(read + i);
  auto* const write = reinterpret_cast<__m128i*>(to);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < n; ++i) _mm_store_si128(write + i, words[i]);
}

inline __attribute__((always_inline)) void fetch_block(const std::byte* from) {
  for (std::size_t i = 0; i < block; i += line) _mm_prefetch(reinterpret_cast<const char*>(from + i), _MM_HINT_T0);
}

template <MoveWidth width>
void copy_upwards(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head = std::min((line - within_line(to)) % line, bytes);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; bytes - at >= block; at += block) {
    fetch_block(from + at + ahead);
    copy_block<width>(to + at, from + at);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

template <MoveWidth width>
void copy_downwards(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t tail = std::min(within_line(to + bytes), bytes);
  std::size_t left = bytes - tail;
  std::memcpy(to + left, from + left, tail);
  while (left >= block) {
    left -= block;
    fetch_block(from + left - ahead);
    copy_block<width>(to + left, from + left);
  }
  std::memcpy(to, from, left);
}

/// Copies in the direction in which no load matches the low address bits of an earlier store.
template <MoveWidth width>
void copy_large_by(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (distance(to, from) - 1 < page / 2 - 1)
    copy_downwards<width>(to, from, bytes);
  else
    copy_upwards<width>(to, from, bytes);
}

}  // namespace

void copy_large(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (has_wide_moves())
    copy_large_by<MoveWidth::bytes_64>(to, from, bytes);
  else
    copy_large_by<MoveWidth::bytes_16>(to, from, bytes);
}

void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head = std::min((line - within_line(to)) % line, bytes);
  std::memcpy(to, from, head);
  const std::size_t lines = (bytes - head) / line;
  auto* write = reinterpret_cast<__m128i*>(to + head);
  const auto* read = reinterpret_cast<const __m128i*>(from + head);
  for (std::size_t i = 0; i < lines; ++i, write += 4, read += 4) {
    const __m128i a = _mm_loadu_si128(read), b = _mm_loadu_si128(read + 1), c = _mm_loadu_si128(read + 2),
                  d = _mm_loadu_si128(read + 3);
    _mm_stream_si128(write, a);
    _mm_stream_si128(write + 1, b);
    _mm_stream_si128(write + 2, c);
    _mm_stream_si128(write + 3, d);
  }
  const std::size_t done = head + lines * line;
  if (done != bytes) std::memcpy(to + done, from + done, bytes - done);
  _mm_sfence();
}

/// Measured bounds: docs/decisions/0029-large-copies.md.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t small_max = 2048, medium = 12288, large_min = 32768;
  if (bytes <= small_max) [[likely]] {
    std::memcpy(to, from, bytes);
    return;
  }
  if (bytes < large_min && distance(to, from) - 1 >= (bytes < medium ? 15 : line - 1)) {
    std::memcpy(to, from, bytes);
  } else {
    copy_large(to, from, bytes);
  }
}

#else

void copy_large(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace headway::base
