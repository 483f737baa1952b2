// SPDX-License-Identifier: BSD-3-Clause
/// The messages of the benchmarks as the peers write and read them: in a slot of a bucket or window, where they stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <message/message.hpp>
#include <span>
#include <type_traits>
#include <vector>

namespace headway::peers {

/// Messages of `bytes` each, of one source. `Message` is Bytes, or a bench::Fixed of a size that the compiler knows.
using Bytes = std::vector<std::byte>;

template <class Message>
class Items {
 public:
  using Word = std::byte;  // the unit of a bucket
  Items(std::size_t bytes, std::size_t source) : bytes_(bytes) {
    if constexpr (any_size) pattern_.resize(bytes);
    bench::fill_pattern(std::as_writable_bytes(std::span(pattern_)), source);
  }

  /// Writes message `index` at `to`: the pattern, then the number over it. A message stamped first and then copied
  /// would be loaded in wider pieces than it was stored in, which no store buffer forwards.
  void write(std::byte* to, std::uint64_t index) const {
    std::memcpy(to, pattern_.data(), bytes());
    bench::stamp(to, bytes(), index);
  }
  bench::Ends ends(const std::byte* item) const {
    if constexpr (any_size)
      return bench::ends_of(item, bytes());
    else
      return bench::ends_of(*reinterpret_cast<const Message*>(item));
  }
  std::size_t words() const { return bytes(); }
  std::size_t bytes() const {
    if constexpr (any_size)
      return pattern_.size();
    else
      return sizeof(Message);
  }

 private:
  static constexpr bool any_size = std::is_same_v<Message, Bytes>;
  std::size_t bytes_;
  Message pattern_{};
};

/// Calls body(items) with those that fit.
template <class Body>
auto with_items(std::size_t bytes, std::size_t source, Body&& body) {
  decltype(body(Items<Bytes>(bytes, source))) result{};
  const bool fixed = bench::with_fixed_size<1000>(
      bytes, [&]<class Message>(std::type_identity<Message>) { result = body(Items<Message>(bytes, source)); });
  return fixed ? result : body(Items<Bytes>(bytes, source));
}

}  // namespace headway::peers
