/// A callable that is called once, at most.
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

namespace headway {

/// Holds any callable, also one that cannot be copied. One of up to a word that is trivially copyable takes no memory
/// beside. One that is destroyed, or assigned to, before it was called is not called.
///
/// Moved in words: a std::function is, in GCC 12, loaded 16 bytes at a time from where two words have just been stored,
/// and that waits for both to leave the store buffer (33 ns of a transfer).
class Once {
 public:
  /// Calls nothing.
  Once() = default;
  template <class F>
    requires(std::invocable<F&> && !std::derived_from<F, Once>)
  Once(F f) {
    if constexpr (lies_inside<F>)
      std::memcpy(&word_, &f, sizeof f);
    else
      word_ = reinterpret_cast<std::uintptr_t>(new F(std::move(f)));
    use_ = &use_as<F>;
  }
  Once(Once&& other) noexcept : word_(other.word()), use_(std::exchange(other.use_, nullptr)) {}
  Once& operator=(Once&& other) noexcept {
    Once taken(std::move(other));  // which may lie in what is dropped here
    std::swap(word_, taken.word_);
    std::swap(use_, taken.use_);
    return *this;
  }
  ~Once() {
    if (use_ != nullptr) use_(word_, false);
  }

  /// Calls it, and destroys it then, also where it throws. It may destroy this. Nothing the second time.
  void operator()() {
    if (const Use use = std::exchange(use_, nullptr)) use(word_, true);
  }

 private:
  using Use = void (*)(std::uintptr_t word, bool call);
  template <class F>
  static constexpr bool lies_inside = sizeof(F) <= sizeof(std::uintptr_t) && std::is_trivially_copyable_v<F>;

  /// Calls what a word says, if it is to, and destroys it.
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
    asm("" : "+r"(word));  // by itself
    return word;
  }

  std::uintptr_t word_ = 0;
  Use use_ = nullptr;
};

}  // namespace headway
