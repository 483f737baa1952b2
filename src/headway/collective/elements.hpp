// SPDX-License-Identifier: BSD-3-Clause
/// Elements in a message or in shared memory, and their reduction there.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace headway::collective {

/// The operator of collectives that combine nothing.
struct NoOperator {};

template <class T>
T load(const std::byte* from) {
  if constexpr (std::is_default_constructible_v<T>) {
    T value;
    std::memcpy(static_cast<void*>(&value), from, sizeof value);
    return value;
  } else {
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), from, sizeof bytes);
    return std::bit_cast<T>(bytes);
  }
}

/// running = op(running, other), element by element; both have `bytes` bytes.
template <class T, class Op>
void reduce_elements(const Op& op, std::byte* running, const std::byte* other, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    const T a = load<T>(running + at), b = load<T>(other + at);
    const T combined = static_cast<T>(op(a, b));
    std::memcpy(running + at, &combined, sizeof combined);
  }
}

/// The same for an operator without state, which any PE can make from its type.
using ReduceBytes = void (*)(std::byte* running, const std::byte* other, std::size_t bytes);

template <class T, class Op>
void reduce_by_type(std::byte* running, const std::byte* other, std::size_t bytes) {
  if constexpr (!std::is_same_v<Op, NoOperator>) {
    constexpr std::array<std::byte, sizeof(Op)> nothing{};
    reduce_elements<T>(std::bit_cast<Op>(nothing), running, other, bytes);
  }
}

}  // namespace headway::collective
