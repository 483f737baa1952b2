/// Who learns that a transfer has ended.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/am/future.hpp>
#include <type_traits>
#include <utility>

namespace headway::aggregate {

/// A promise, or a callable that is called then: without the memory that a completion and a coroutine which waits for
/// it would take. Destroyed before, it calls nothing, and its promise is broken. One word of a callable lies in it,
/// without more memory.
///
/// Moved in words: a std::function is, in GCC 12, loaded 16 bytes at a time from where two words have just been stored,
/// and that waits for both to leave the store buffer (33 ns of a transfer).
class WhenDone {
 public:
  /// Nobody learns it.
  WhenDone() = default;
  template <class Done>
    requires(std::invocable<Done&> || std::same_as<Done, Promise<>>) && (!std::same_as<Done, WhenDone>)
  WhenDone(Done done) {
    if constexpr (lies_inside<Done>)
      std::memcpy(&word_, &done, sizeof done);
    else
      word_ = reinterpret_cast<std::uintptr_t>(new Done(std::move(done)));
    use_ = &use<Done>;
  }
  WhenDone(WhenDone&& other) noexcept : word_(other.word()), use_(std::exchange(other.use_, nullptr)) {}
  WhenDone& operator=(WhenDone&& other) noexcept {
    if (this == &other) return *this;
    drop();
    word_ = other.word();
    use_ = std::exchange(other.use_, nullptr);
    return *this;
  }
  ~WhenDone() { drop(); }

  /// Once. A callable is called at once.
  void operator()() {
    if (use_ != nullptr) use_(word_, true);
  }

 private:
  template <class Done>
  static constexpr bool lies_inside = sizeof(Done) <= sizeof(std::uintptr_t) && std::is_trivially_copyable_v<Done>;

  /// Calls what a word says, or destroys it.
  template <class Done>
  static void use(std::uintptr_t word, bool call) {
    if constexpr (lies_inside<Done>) {
      if (!call) return;
      std::array<std::byte, sizeof(Done)> bytes;
      std::memcpy(bytes.data(), &word, sizeof(Done));
      Done done = std::bit_cast<Done>(bytes);
      done();
    } else {
      Done* const done = reinterpret_cast<Done*>(word);
      if (!call)
        delete done;
      else if constexpr (std::same_as<Done, Promise<>>)
        done->set();
      else
        (*done)();
    }
  }
  void drop() {
    if (use_ != nullptr) use_(word_, false);
  }
  std::uintptr_t word() const {
    std::uintptr_t word = word_;
    asm("" : "+r"(word));  // by itself
    return word;
  }

  std::uintptr_t word_ = 0;
  void (*use_)(std::uintptr_t word, bool call) = nullptr;
};

}  // namespace headway::aggregate
