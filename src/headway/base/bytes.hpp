// SPDX-License-Identifier: BSD-3-Clause
/// Sizes in bytes: literals, and text for users.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headway {

inline namespace literals {
constexpr std::size_t operator""_KiB(unsigned long long n) { return std::size_t(n) << 10; }
constexpr std::size_t operator""_MiB(unsigned long long n) { return std::size_t(n) << 20; }
constexpr std::size_t operator""_GiB(unsigned long long n) { return std::size_t(n) << 30; }
}  // namespace literals

}  // namespace headway

namespace headway::base {

/// The smallest multiple of `alignment` (a power of two) that is at least `n`.
constexpr std::size_t align_up(std::size_t n, std::size_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }

/// Number of bytes that hold every value in [0, count); 0 if there is only one value.
constexpr unsigned bytes_for_values(std::uint64_t count) {
  return count <= 1 ? 0 : unsigned(std::bit_width(count - 1) + 7) / 8;
}

/// "64M", "16K", "16KiB", "4096" as bytes (powers of 1024). Throws SettingError with `what` and the text.
std::uint64_t parse_bytes(std::string_view what, std::string_view text);

/// 65536 as "64 KiB", 1500 as "1500 B".
std::string format_bytes(std::uint64_t bytes);

}  // namespace headway::base
