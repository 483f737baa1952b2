// SPDX-License-Identifier: BSD-3-Clause
/// The fastest of a few paths for transfers of a size, learned from the transfers before.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace headway::rma {

/// Each power of two of sizes has an estimate of its own.
///
/// - Trials: each path is tried three times. Short transfers are tried until they have moved 8 MiB, at most 64 times,
///   because memory that is touched for the first time is up to ten times as slow. All paths take their first trial
///   before one takes its second: the first trial of all pays for pages that the others find ready.
/// - Then the fastest path is picked, and now and then another one is tested again, because costs change. A test of a
///   path that takes three times as long costs twice a transfer; it is tested half as often as a path that takes twice
///   as long. Early, a path that takes up to twice as long is tested at any cost, because its trials may have paid for
///   new pages.
/// - A test is two transfers in a row: the first one pays for the caches that the path before has left.
/// - The time of a path is its shortest recent time; the next transfer corrects a time that an interruption lengthened.
template <std::size_t paths>
class FastestPath {
 public:
  struct Pick {
    std::size_t path;
    bool timed;  // the caller measures it for learn(); to read the clock takes as long as to copy 1 KiB
  };
  /// Picks one of the paths with their bit set in `possible`, which is not 0.
  Pick pick(std::uint64_t bytes, unsigned possible) {
    Size& size = sizes_[std::size_t(std::bit_width(bytes))];
    std::size_t best = paths, first = paths, next = paths;
    const std::uint8_t wanted = tries(bytes);
    for (std::size_t path = 0; path < paths; ++path) {
      if ((possible >> path & 1) == 0) continue;
      if (first == paths) first = path;
      if (size.tried[path] < wanted && (next == paths || (size.tried[path] == 0 && size.tried[next] != 0))) next = path;
      if (size.learned[path] != 0 && (best == paths || size.ns[path] < size.ns[best])) best = path;
    }
    // Counted when a trial begins, so that of many concurrent transfers no more than these are trials.
    if (next != paths) {
      ++size.tried[next];
      return {next, true};
    }
    if (best == paths) best = first;
    if (const std::size_t path = std::exchange(size.again, paths); path != paths && (possible >> path & 1) != 0)
      return {path, true};
    ++size.picks;
    const bool is_power = (size.picks & (size.picks - 1)) == 0;  // std::has_single_bit() calls a function
    if (size.picks % picks_per_test != 0 && !(size.picks >= 4 && is_power))
      return {best, bytes >= always_timed_bytes || size.picks % picks_per_time == 0};
    const bool is_early = size.picks == 4 || size.picks == 16;
    for (std::size_t i = 0; i < paths; ++i) {
      size.tested = (size.tested + 1) % paths;
      const std::size_t path = size.tested;
      if (path == best || (possible >> path & 1) == 0) continue;
      const double costs = size.costs_more(path, best);
      if (costs * (2 * picks_per_test) > double(size.picks - size.last_test[path]) && !(is_early && costs <= 1))
        continue;
      size.last_test[path] = size.picks;
      size.again = path;
      return {path, true};
    }
    return {best, true};
  }

  /// Records a finished transfer of `bytes` bytes by `path` that took `ns`.
  void learn(std::size_t path, std::uint64_t bytes, std::int64_t ns) {
    Size& size = sizes_[std::size_t(std::bit_width(bytes))];
    const double per_byte = double(ns) / double(bytes == 0 ? 1 : bytes), slower = size.ns[path] * 1.05;
    size.ns[path] = size.learned[path] < 2 || per_byte < slower ? per_byte : slower;
    if (size.learned[path] < 2) ++size.learned[path];
  }

 private:
  static std::uint8_t tries(std::uint64_t bytes) {
    constexpr std::uint64_t moved = std::uint64_t(8) << 20;
    return std::uint8_t(std::clamp<std::uint64_t>(moved / std::max<std::uint64_t>(bytes, 1), 3, 64));
  }
  static constexpr std::uint32_t picks_per_test = 64, picks_per_time = 8;
  static constexpr std::uint64_t always_timed_bytes = std::uint64_t(256) << 10;

  struct Size {
    std::array<double, paths> ns{};  // per byte
    std::array<std::uint8_t, paths> tried{}, learned{};
    std::uint32_t picks = 0;
    std::array<std::uint32_t, paths> last_test{};  // of each path, as the value of `picks`
    std::size_t tested = 0, again = paths;

    /// The price of a test, in transfers by the best path.
    double costs_more(std::size_t path, std::size_t best) const {
      constexpr double at_most = 8;  // so that a wrong estimate is corrected some day
      return learned[path] == 0 || learned[best] == 0 ? 0 : std::min(ns[path] / ns[best] - 1, at_most);
    }
  };
  std::array<Size, 65> sizes_{};
};

}  // namespace headway::rma
