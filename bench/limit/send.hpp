/// Sending a PE's share of the messages: all to one target, a buffer at a time, or each to its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "build.hpp"
#include "exchange.hpp"
#include "traffic.hpp"

namespace headway::limit {

template <class Build, class Numbers>
void send_to_one(Exchange& exchange, const Build build, Numbers numbers, Always target, std::uint64_t messages) {
  Cursor& cursor = exchange.cursors()[target.pe];
  const std::size_t room = build.room();
  for (std::uint64_t left = messages; left > 0;) {
    if (cursor.at + room > cursor.limit) exchange.turn_over(target.pe);
    std::byte* at = cursor.at;
    const std::uint64_t now = std::min<std::uint64_t>(left, std::uint64_t(cursor.limit - at) / room);
    for (std::uint64_t i = 0; i < now; ++i, at += room) build(at, numbers.next());
    cursor.at = at;
    left -= now;
  }
}

template <class Build, class Target>
void send_to_each(Exchange& exchange, const Build build, Sequence numbers, Target target, std::uint64_t messages) {
  Cursor* const cursors = exchange.cursors();
  for (std::uint64_t i = 0; i < messages; ++i) {
    const Word number = numbers.next();
    const std::size_t to = target(number);
    Cursor& cursor = cursors[to];
    const bool full = Build::fixed ? cursor.at == cursor.limit : cursor.at + build.room() > cursor.limit;
    if (full) [[unlikely]]
      exchange.turn_over(to);
    std::byte* const at = cursor.at;
    cursor.at = at + build.room();
    build(at, number);
  }
}

/// What a PE sends, and what with.
struct Sending {
  const Traffic& traffic;
  std::size_t source;
  std::size_t bytes;
  const std::byte* prepared;
};

using Send = void (*)(Exchange& exchange, const Sending& sending, std::uint64_t messages);

template <class Build>
void send(Exchange& exchange, const Sending& sending, std::uint64_t messages) {
  const Build build(sending.prepared, sending.bytes, sending.source);
  sending.traffic.with_numbers_of(sending.source, [&](auto numbers, auto target) {
    if constexpr (std::is_same_v<decltype(target), Always>) {
      send_to_one(exchange, build, numbers, target, messages);
    } else {
      send_to_each(exchange, build, numbers, target, messages);
    }
  });
}

}  // namespace headway::limit
