// SPDX-License-Identifier: BSD-3-Clause
/// Pointers to memory of any PE.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <headway/base/sendable.hpp>
#include <headway/transport/frame.hpp>

namespace headway {

/// The place of a T in the pool of some PE (Split-C's global pointers: Culler et al., 1993). It means the same on every
/// PE, and travels as a number. A GlobalMemory reads and writes the T. Arithmetic stays on the PE. T is trivially
/// copyable and carries no address.
///
///     bit 63       44                         0
///         |   pe   | bytes into the PE's pool |        null: all ones
template <class T>
class GlobalPtr {
  static_assert(FixedSize<T>,
                "headway: the type that a GlobalPtr points to is trivially copyable and carries no address");

 public:
  static constexpr unsigned offset_bits = 44;

  constexpr GlobalPtr() = default;
  constexpr GlobalPtr(PeId pe, std::uint64_t offset) : bits_(std::uint64_t(pe.value) << offset_bits | offset) {}

  constexpr PeId pe() const { return std::size_t(bits_ >> offset_bits); }
  constexpr std::uint64_t offset() const { return bits_ & ((std::uint64_t(1) << offset_bits) - 1); }
  constexpr explicit operator bool() const { return bits_ != null; }

  constexpr GlobalPtr operator+(std::ptrdiff_t n) const {
    GlobalPtr moved = *this;
    return moved += n;
  }
  constexpr GlobalPtr operator-(std::ptrdiff_t n) const { return *this + -n; }
  constexpr GlobalPtr& operator+=(std::ptrdiff_t n) {
    bits_ += std::uint64_t(n) * sizeof(T);
    return *this;
  }
  constexpr GlobalPtr& operator++() { return *this += 1; }
  /// Both on one PE.
  constexpr std::ptrdiff_t operator-(GlobalPtr other) const {
    return std::ptrdiff_t(bits_ - other.bits_) / std::ptrdiff_t(sizeof(T));
  }
  constexpr friend auto operator<=>(GlobalPtr, GlobalPtr) = default;

 private:
  static constexpr std::uint64_t null = ~std::uint64_t(0);
  std::uint64_t bits_ = null;
};

}  // namespace headway
