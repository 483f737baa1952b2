/// Which of a few ways is the fastest for transfers of a size, learned from those before.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace headway::rma {

/// Sizes count as the power of two that they reach. Each way is tried three times, and short ones until they have moved
/// 8 MiB, at most 64 times: until then they may go through memory that is touched for the first time, at ten times the
/// price. First each once, for what one has touched the others find ready: the first one would pay for all. Then the
/// fastest is taken, and now and then another, for what was fastest may not stay so: one that takes three times as long
/// costs twice what a transfer takes, and is looked at half as often as one that takes twice as long. Soon after the
/// beginning one that takes up to twice as long is looked at whatever it costs: the first few of a way may all have
/// paid for what later ones find ready. Twice in a row, for the first time pays for what the one before has left in
/// caches.
/// A way's time is the shortest of late: what an interruption added is forgotten at the next use.
template <std::size_t ways>
class FastestWay {
 public:
  struct Pick {
    std::size_t way;
    bool timed;  // whether learn() wants to know how long it took: a look at the clock takes as long as to copy 1 KiB
  };
  /// One of those whose bit is set in `possible`, which is not 0.
  Pick pick(std::uint64_t bytes, unsigned possible) {
    Size& size = sizes_[std::size_t(std::bit_width(bytes))];
    std::size_t best = ways, first = ways, next = ways;
    const std::uint8_t wanted = tries(bytes);
    for (std::size_t way = 0; way < ways; ++way) {
      if ((possible >> way & 1) == 0) continue;
      if (first == ways) first = way;
      if (size.tried[way] < wanted && (next == ways || (size.tried[way] == 0 && size.tried[next] != 0))) next = way;
      if (size.learned[way] != 0 && (best == ways || size.ns[way] < size.ns[best])) best = way;
    }
    // Counted as they begin: of many that are under way at a time no more than these try something.
    if (next != ways) {
      ++size.tried[next];
      return {next, true};
    }
    if (best == ways) best = first;
    if (const std::size_t way = std::exchange(size.again, ways); way != ways && (possible >> way & 1) != 0)
      return {way, true};
    ++size.picks;
    const bool is_power = (size.picks & (size.picks - 1)) == 0;  // std::has_single_bit() calls a function
    if (size.picks % picks_per_look != 0 && !(size.picks >= 4 && is_power))
      return {best, bytes >= always_timed_bytes || size.picks % picks_per_time == 0};
    const bool is_early = size.picks == 4 || size.picks == 16;
    for (std::size_t i = 0; i < ways; ++i) {
      size.looked_at = (size.looked_at + 1) % ways;
      const std::size_t way = size.looked_at;
      if (way == best || (possible >> way & 1) == 0) continue;
      const double costs = size.costs_more(way, best);
      if (costs * (2 * picks_per_look) > double(size.picks - size.look[way]) && !(is_early && costs <= 1)) continue;
      size.look[way] = size.picks;
      size.again = way;
      return {way, true};
    }
    return {best, true};
  }

  /// A transfer of so many bytes took so long.
  void learn(std::size_t way, std::uint64_t bytes, std::int64_t ns) {
    Size& size = sizes_[std::size_t(std::bit_width(bytes))];
    const double per_byte = double(ns) / double(bytes == 0 ? 1 : bytes), slower = size.ns[way] * 1.05;
    // The first of a size also pays for pages that it is the first to touch.
    size.ns[way] = size.learned[way] < 2 || per_byte < slower ? per_byte : slower;
    if (size.learned[way] < 2) ++size.learned[way];
  }

 private:
  static std::uint8_t tries(std::uint64_t bytes) {
    constexpr std::uint64_t moved = std::uint64_t(8) << 20;
    return std::uint8_t(std::clamp<std::uint64_t>(moved / std::max<std::uint64_t>(bytes, 1), 3, 64));
  }
  static constexpr std::uint32_t picks_per_look = 64, picks_per_time = 8;
  static constexpr std::uint64_t always_timed_bytes = std::uint64_t(256) << 10;

  struct Size {
    std::array<double, ways> ns{};  // a byte
    std::array<std::uint8_t, ways> tried{}, learned{};
    std::uint32_t picks = 0;
    std::array<std::uint32_t, ways> look{};  // at which of them each was looked at last
    std::size_t looked_at = 0, again = ways;

    /// In transfers by the best.
    double costs_more(std::size_t way, std::size_t best) const {
      constexpr double at_most = 8;  // what was misjudged is found out some day
      return learned[way] == 0 || learned[best] == 0 ? 0 : std::min(ns[way] / ns[best] - 1, at_most);
    }
  };
  std::array<Size, 65> sizes_{};
};

}  // namespace headway::rma
