// SPDX-License-Identifier: BSD-3-Clause
/// Words of memory that is mapped into this process: which values are words, where they lie, and how they are loaded
/// and stored.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/transport/frame.hpp>
#include <type_traits>
#include <vector>

namespace headway::global {

/// Values of 1, 2, 4 or 8 bytes travel as one word. They do not straddle an aligned word of 8 bytes.
template <class T>
inline constexpr bool is_word = sizeof(T) <= 8 && std::has_single_bit(sizeof(T));

#if defined(__SANITIZE_THREAD__)
template <class T>
inline constexpr bool is_plain = false;
#else
/// A volatile access to such a T is one instruction, as a relaxed atomic access is. GCC, however, discards all that it
/// knows of memory at a relaxed atomic access.
template <class T>
inline constexpr bool is_plain = std::is_arithmetic_v<T>&& is_word<T> && alignof(T) == sizeof(T);
#endif

template <class T>
T load(const T* at) {
  if constexpr (is_plain<T>)
    return *static_cast<const volatile T*>(at);
  else if constexpr (is_word<T> && alignof(T) == sizeof(T))
    return std::atomic_ref(*const_cast<T*>(at)).load(std::memory_order_relaxed);
  else
    return *at;
}

template <class T>
void save(T* at, const T& value) {
  if constexpr (is_plain<T>)
    *static_cast<volatile T*>(at) = value;
  else if constexpr (is_word<T> && alignof(T) == sizeof(T))
    std::atomic_ref(*at).store(value, std::memory_order_relaxed);
  else
    *at = value;
}

template <class T>
std::uint64_t word_of(const T& value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

/// The addresses of the PEs' pools in this process; nullptr where a PE's pool is reached by messages.
class Bases {
 public:
  explicit Bases(std::size_t pes) : bases_(pes, nullptr), begin_(bases_.data()), size_(pes) {}
  Bases(const Bases&) = delete;
  Bases& operator=(const Bases&) = delete;

  std::size_t size() const { return size_; }
  std::byte*& operator[](PeId pe) { return bases_[pe]; }
  bool all_mapped() const { return std::ranges::find(bases_, nullptr) == bases_.end(); }

  /// nullptr where the pool is reached by messages. `pe` is below size().
  template <class T>
  T* find(PeId pe, std::uint64_t offset) const {
    std::byte* const base = begin_[pe];
    if (base == nullptr) [[unlikely]]
      return nullptr;
    T* const at = reinterpret_cast<T*>(base + offset);
    if (at == nullptr) __builtin_unreachable();
    return at;
  }

 private:
  std::vector<std::byte*> bases_;
  std::byte* const* begin_;
  std::size_t size_;  // kept, because a comparison with a vector's size takes three instructions more
};

}  // namespace headway::global
