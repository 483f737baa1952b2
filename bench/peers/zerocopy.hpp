// SPDX-License-Identifier: BSD-3-Clause
/// Shared by the peers of headway-zerocopy: a message to the partner and one back. The sender writes both ends of each
/// message, and no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/base/clock.hpp>
#include <message/buffers.hpp>
#include <message/laps.hpp>
#include <message/message.hpp>
#include <numeric>
#include <record/record.hpp>
#include <span>
#include <vector>

namespace headway::peers {

struct ZerocopyWork {
  std::size_t bytes;
  std::uint64_t messages;
  bool fresh, touch;
};

/// Of one rank.
struct ZerocopyResult {
  double seconds = 0, one_way_us = 0;
  std::uint64_t errors = 0;
};

/// Collective. `wire` has send(from), receive(to), both of a whole message, and meet(), which waits for all.
template <class Wire>
ZerocopyResult play_zerocopy(Wire& wire, const ZerocopyWork& work, std::size_t me) {
  const bench::HeapBuffers out(work.bytes, work.fresh), in(work.bytes, work.fresh);
  for (std::size_t i = 0; i < out.count(); ++i) bench::fill_pattern({out.of(i), work.bytes}, me);
  const auto pass = [&](std::uint64_t trips, auto handle) {
    const auto hit = [&](std::uint64_t trip) {
      bench::stamp(out.of(trip), work.bytes, trip);
      wire.send(out.of(trip));
    };
    wire.meet();
    bench::Laps laps(trips, base::monotonic_ns());
    for (std::uint64_t trip = 0; trip < trips; ++trip) {
      if (me % 2 == 0) hit(trip);
      wire.receive(in.of(trip));
      handle(in.of(trip));
      if (me % 2 != 0) hit(trip);
      if (laps.due(trip + 1)) laps.mark(base::monotonic_ns());
    }
    return laps;
  };
  const std::uint64_t some = bench::checked_messages(work.messages, work.bytes);
  bench::Checker checker(work.bytes, some, me ^ 1);
  pass(some, [&](const std::byte* message) { checker(message, work.bytes); });
  bench::Sum sum;
  std::uint64_t touched = 0;
  const auto take = [&](const std::byte* message) {
    bench::add(sum, bench::ends_of(message, work.bytes));
    if (!work.touch) return;
    const std::span words(reinterpret_cast<const std::uint64_t*>(message), work.bytes / sizeof(std::uint64_t));
    touched += std::accumulate(words.begin(), words.end(), std::uint64_t(0));
  };
  pass(out.count(), take);  // every buffer has been used
  sum = {};
  const std::int64_t begin = base::monotonic_ns();
  const bench::Laps laps = pass(work.messages, take);
  const double seconds = double(base::monotonic_ns() - begin) * 1e-9;
  asm volatile("" : : "r"(touched));  // the program does not use it otherwise
  const bool wrong = sum != bench::expected_sum(work.messages, work.bytes);
  return {seconds, laps.one_way_us(), checker.errors() + (wrong ? 1 : 0)};
}

/// The record's fields that describe the work, as in the record of Headway's program.
inline void add_zerocopy_fields(bench::Json& record, const ZerocopyWork& work, double one_way_us) {
  record["memory"] = "heap";
  record["buffers"] = bench::buffer_kinds[work.fresh ? 1 : 0];
  record["touch"] = work.touch;
  record["one_way_us"] = bench::to_json(bench::spread_of({one_way_us}));
}

}  // namespace headway::peers
