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

/// It may be one that cannot be copied. One word of it lies inside, without more memory. Destroyed before, it is not
/// called.
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
    end_ = &end<F>;
  }
  Once(Once&& other) noexcept : word_(other.word()), end_(std::exchange(other.end_, nullptr)) {}
  Once& operator=(Once&& other) noexcept {
    if (this == &other) return *this;
    drop();
    word_ = other.word();
    end_ = std::exchange(other.end_, nullptr);
    return *this;
  }
  ~Once() { drop(); }

  /// Nothing the second time.
  void operator()() {
    if (const End end_it = std::exchange(end_, nullptr)) end_it(word_, true);
  }

 private:
  using End = void (*)(std::uintptr_t word, bool call);
  template <class F>
  static constexpr bool lies_inside = sizeof(F) <= sizeof(std::uintptr_t) && std::is_trivially_copyable_v<F>;

  /// Calls what a word says, if it is to, and destroys it.
  template <class F>
  static void end(std::uintptr_t word, bool call) {
    if constexpr (lies_inside<F>) {
      if (!call) return;
      std::array<std::byte, sizeof(F)> bytes;
      std::memcpy(bytes.data(), &word, sizeof(F));
      std::bit_cast<F>(bytes)();
    } else {
      const std::unique_ptr<F> f(reinterpret_cast<F*>(word));
      if (call) (*f)();
    }
  }
  void drop() {
    if (const End end_it = std::exchange(end_, nullptr)) end_it(word_, false);
  }
  std::uintptr_t word() const {
    std::uintptr_t word = word_;
    asm("" : "+r"(word));  // by itself
    return word;
  }

  std::uintptr_t word_ = 0;
  End end_ = nullptr;
};

}  // namespace headway
