// SPDX-License-Identifier: BSD-3-Clause
/// A callable that is called at most once.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

namespace headway::base {

/// Holds any callable, also a move-only one. A trivially copyable callable of up to one word needs no memory of its
/// own. A callable that is destroyed or replaced before the call is not called.
///
/// It moves in words. GCC 12 moves a std::function with a load of 16 bytes from two words that were just stored; the
/// load waits until both have left the store buffer (33 ns of a transfer).
class Once {
 public:
  /// Calls nothing.
  Once() = default;
  template <class F>
  requires(std::invocable<F&> && !std::derived_from<F, Once>) Once(F f) {
    if constexpr (lies_inside<F>)
      std::memcpy(&word_, &f, sizeof f);
    else
      word_ = reinterpret_cast<std::uintptr_t>(new F(std::move(f)));
    use_ = &use_as<F>;
  }
  Once(Once&& other) noexcept : word_(other.word()), use_(std::exchange(other.use_, nullptr)) {}
  Once& operator=(Once&& other) noexcept {
    Once taken(std::move(other));  // `other` may be a part of the callable that is destroyed here
    std::swap(word_, taken.word_);
    std::swap(use_, taken.use_);
    return *this;
  }
  ~Once() {
    if (use_ != nullptr) use_(word_, false);
  }

  /// Calls the callable and destroys it, also if it throws. The call may destroy this object. A second call does
  /// nothing.
  void operator()() {
    if (const Use use = std::exchange(use_, nullptr)) use(word_, true);
  }

 private:
  using Use = void (*)(std::uintptr_t word, bool call);
  template <class F>
  static constexpr bool lies_inside = sizeof(F) <= sizeof(std::uintptr_t) && std::is_trivially_copyable_v<F>;

  /// Destroys the callable in `word`, after a call if `call` is set.
  template <class F>
  static void use_as(std::uintptr_t word, bool call) {
    if constexpr (lies_inside<F>) {
      if (!call) return;
      std::array<std::byte, sizeof(F)> bytes;
      std::memcpy(bytes.data(), &word, sizeof(F));
      F f = std::bit_cast<F>(bytes);
      f();
    } else {
      const std::unique_ptr<F> f(reinterpret_cast<F*>(word));
      if (call) (*f)();
    }
  }
  std::uintptr_t word() const {
    std::uintptr_t word = word_;
    asm("" : "+r"(word));  // one load of this word alone
    return word;
  }

  std::uintptr_t word_ = 0;
  Use use_ = nullptr;
};

}  // namespace headway::base
