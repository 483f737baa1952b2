// SPDX-License-Identifier: BSD-3-Clause
/// Sending a PE's share of the messages, in several formulations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "build.hpp"
#include "exchange.hpp"
#include "traffic.hpp"

namespace headway::limit {

template <class Build>
bool is_full(const Build& build, const Cursor& cursor) {
  if constexpr (Build::fixed) {
    return cursor.at == cursor.limit;
  } else {
    return cursor.at + build.needed() > cursor.limit;
  }
}

/// Looks before each message whether its buffer has room for it.
template <class Build, class Numbers, class Target>
void send_checked(Exchange& exchange, const Build build, Numbers numbers, Target target, std::uint64_t messages) {
  Cursor* const cursors = exchange.cursors();
  for (std::uint64_t i = 0; i < messages; ++i) {
    const Word number = numbers.next();
    const std::size_t to = target(number);
    Cursor& cursor = cursors[to];
    const bool full = is_full(build, cursor);
    if (full) [[unlikely]]
      exchange.turn_over(to);
    std::byte* const at = cursor.at;
    cursor.at = at + build.room();
    if constexpr (!Build::fixed) build.put_length(at, cursor.limit);
    build(at, number);
  }
}

/// Messages of one size: writes as many in a row as fit in the fullest buffer, and looks only then.
template <class Build, class Numbers, class Target>
void send_in_rows(Exchange& exchange, const Build build, Numbers numbers, Target target, std::uint64_t messages) {
  Cursor* const cursors = exchange.cursors();
  for (std::uint64_t left = messages; left > 0;) {
    const std::size_t fullest = exchange.fullest();
    const std::uint64_t row = std::min(left, exchange.room_at(fullest) / Build::room());
    if (row < std::min(left, exchange.buffer_bytes() / Build::room() / 64 + 1)) {  // too short to be worth its looks
      exchange.turn_over(fullest);
      continue;
    }
    for (std::uint64_t i = 0; i < row; ++i) {
      const Word number = numbers.next();
      Cursor& cursor = cursors[target(number)];
      std::byte* const at = cursor.at;
      cursor.at = at + Build::room();
      build(at, number);
    }
    left -= row;
  }
}

/// The same to one target; a register holds its cursor.
template <class Build, class Numbers>
void send_in_rows(Exchange& exchange, const Build build, Numbers numbers, Always target, std::uint64_t messages) {
  Cursor& cursor = exchange.cursors()[target.pe];
  for (std::uint64_t left = messages; left > 0;) {
    if (cursor.at == cursor.limit) exchange.turn_over(target.pe);
    const std::uint64_t row = std::min(left, exchange.room_at(target.pe) / Build::room());
    std::byte* at = cursor.at;
    for (std::uint64_t i = 0; i < row; ++i, at += Build::room()) build(at, numbers.next());
    cursor.at = at;
    left -= row;
  }
}

/// A PE's messages, and the bytes prepared for them.
struct Sending {
  const Traffic& traffic;
  std::size_t source;
  std::size_t bytes;
  const std::byte* prepared;
};

using Send = void (*)(Exchange& exchange, const Sending& sending, std::uint64_t messages);

enum class Filling { checked, in_rows };

template <class Build, Filling filling>
void send(Exchange& exchange, const Sending& sending, std::uint64_t messages) {
  const Build build(sending.prepared, sending.bytes, sending.source);
  sending.traffic.with_numbers_of(sending.source, [&](auto numbers, auto target) {
    if constexpr (filling == Filling::in_rows) {
      send_in_rows(exchange, build, numbers, target, messages);
    } else {
      send_checked(exchange, build, numbers, target, messages);
    }
  });
}

}  // namespace headway::limit
