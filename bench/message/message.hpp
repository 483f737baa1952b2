// SPDX-License-Identifier: BSD-3-Clause
/// The messages of the benchmarks: n bytes. The first eight hold the message's number, the last eight its complement,
/// and between them is a pattern that depends on the sender. Shared with the peers on plain MPI.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::bench {

/// A message of a size that the compiler knows.
template <std::size_t Bytes>
using Fixed = std::array<std::uint64_t, Bytes / sizeof(std::uint64_t)>;

/// The sizes that are sent as Fixed where nothing else is asked for; all others are spans of bytes.
using FixedSizes = std::index_sequence<8, 16, 32, 64, 104, 256, 1000, 4096, 65'536, 1'048'576>;

/// Calls body(std::type_identity<Fixed<bytes>>{}) where `bytes` is one of FixedSizes and at most BytesMax; else false.
template <std::size_t BytesMax = ~std::size_t(0), class Body>
bool with_fixed_size(std::size_t bytes, Body&& body) {
  const auto try_size = [&]<std::size_t Bytes>() {
    if constexpr (Bytes <= BytesMax) {
      if (bytes == Bytes) return body(std::type_identity<Fixed<Bytes>>{}), true;
    }
    return false;
  };
  return [&]<std::size_t... Sizes>(std::index_sequence<Sizes...>) {
    return (try_size.template operator()<Sizes>() || ...);
  }
  (FixedSizes{});
}

inline bool is_fixed_size(std::size_t bytes) {
  return with_fixed_size(bytes, [](auto) {});
}

/// How many messages a benchmark sends where that is not said: from each PE to each that it sends to; for pingpong and
/// zerocopy, round trips of each pair. Fewer where they are large.
constexpr std::uint64_t default_messages(std::string_view bench, std::size_t bytes) {
  constexpr std::uint64_t mebi = 1 << 20;
  const auto of = [&](std::uint64_t most, std::uint64_t bytes_in_all) {
    return std::clamp<std::uint64_t>(bytes_in_all / std::max<std::size_t>(bytes, 1), 10, most);
  };
  if (bench == "pingpong" || bench == "zerocopy") return of(10'000, 512 * mebi);
  if (bench == "synthetic") return of(100'000, 256 * mebi);
  return of(1'000'000, 2048 * mebi);
}

/// Of `messages`, how many are looked at byte by byte.
constexpr std::uint64_t checked_messages(std::uint64_t messages, std::size_t bytes) {
  const std::uint64_t enough = (std::uint64_t(256) << 20) / std::max<std::size_t>(bytes, 1);
  return std::min(messages, std::clamp<std::uint64_t>(enough, 10, 1 << 16));
}

/// So many before the clock runs that the frames in which all of them travel have been touched: 4 MiB, as much as rests
/// where a core has 2 MiB of cache (decision 23), if that is at most a quarter of them.
constexpr std::uint64_t warming_messages(std::uint64_t messages, std::size_t bytes) {
  const std::uint64_t all_frames = (std::uint64_t(4) << 20) / std::max<std::size_t>(bytes, 1);
  return std::max(checked_messages(messages, bytes), std::min(messages / 4, all_frames));
}

/// The largest message that the peers send: MPI counts the bytes of their buffers in ints.
inline constexpr std::size_t peer_bytes_max = std::size_t(64) << 20;

inline void fill_pattern(std::span<std::byte> message, std::size_t source) {
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = std::byte((i * 31 + source * 7 + (i >> 8)) & 0xff);
}

/// Writes number `index` to both ends; a message shorter than 16 bytes has less of it.
inline void stamp(std::byte* message, std::size_t bytes, std::uint64_t index) {
  if (bytes >= 16) [[likely]] {
    const std::uint64_t complement = ~index;
    std::memcpy(message, &index, 8);
    std::memcpy(message + bytes - 8, &complement, 8);
  } else {
    const std::uint64_t shown = index;  // index itself stays in a register
    std::memcpy(message, &shown, bytes < 8 ? bytes : 8);
  }
}

template <std::size_t Words>
void stamp(std::array<std::uint64_t, Words>& message, std::uint64_t index) {
  message[0] = index;
  if constexpr (Words >= 2) message[Words - 1] = ~index;
}

/// The first and the last eight bytes of a message, or what there is of them; with less than 16 both are the first.
struct Ends {
  std::uint64_t front = 0, back = 0;
};

template <std::size_t Words>
Ends ends_of(const std::array<std::uint64_t, Words>& message) {
  return {message[0], message[Words - 1]};
}

inline Ends ends_of(const std::byte* message, std::size_t bytes) {
  Ends ends;
  if (bytes >= 16) [[likely]] {
    std::memcpy(&ends.front, message, 8);
    std::memcpy(&ends.back, message + bytes - 8, 8);
  } else {
    std::memcpy(&ends.front, message, bytes < 8 ? bytes : 8);
    ends.back = ends.front;
  }
  return ends;
}

/// The last eight bytes of message `index`, of at least eight.
constexpr std::uint64_t back_of(std::uint64_t index, std::size_t bytes) { return bytes >= 16 ? ~index : index; }

/// The sum that a receiver makes while it is timed.
struct Sum {
  std::uint64_t count = 0, front = 0, back = 0;
  bool operator==(const Sum&) const = default;
  Sum operator*(std::uint64_t times) const { return {count * times, front * times, back * times}; }
};

inline void add(Sum& sum, Ends ends) {
  ++sum.count;
  sum.front += ends.front;
  sum.back += ends.back;
}

/// The sum of messages 0 to `messages`-1 of `bytes` each, of any sender.
inline Sum expected_sum(std::uint64_t messages, std::size_t bytes) {
  Sum sum;
  std::array<std::byte, 16> ends{};
  const std::size_t shown = bytes < 8 ? bytes : bytes < 16 ? 8 : 16;
  for (std::uint64_t i = 0; i < messages; ++i) {
    stamp(ends.data(), shown, i);
    add(sum, ends_of(ends.data(), shown));
  }
  return sum;
}

/// Checks every byte of each message, and that each number comes exactly once.
class Checker {
 public:
  Checker(std::size_t bytes, std::uint64_t messages, std::size_t source) : seen_(messages), expected_(bytes) {
    fill_pattern(expected_, source);
  }

  void operator()(const std::byte* message, std::size_t bytes) {
    ++count_;
    std::uint64_t index = 0;
    std::memcpy(&index, message, bytes < 8 ? bytes : 8);
    if (bytes != expected_.size()) {
      ++errors_;
      return;
    }
    if (bytes >= 8) {  // a shorter one does not hold its whole number
      if (index >= seen_.size() || seen_[index]) {
        ++errors_;
        return;
      }
      seen_[index] = true;
    }
    stamp(expected_.data(), bytes, index);
    errors_ += bytes > 0 && std::memcmp(message, expected_.data(), bytes) != 0;
  }

  std::uint64_t errors() const {
    return errors_ + (count_ > seen_.size() ? count_ - seen_.size() : seen_.size() - count_);
  }

 private:
  std::vector<bool> seen_;
  std::vector<std::byte> expected_;
  std::uint64_t count_ = 0, errors_ = 0;
};

}  // namespace headway::bench
