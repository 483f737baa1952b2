// SPDX-License-Identifier: BSD-3-Clause
/// Random numbers from a seed, the same on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace headway {

/// splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): any seed will do.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
  }

  /// In [0, n); n > 0. Without rejection, so only for n much smaller than 2^64.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  /// In [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  /// In [0, 1).
  double fraction() { return double(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return fraction() < probability; }
  /// Log-uniform in [low, high]: small and large values are equally likely.
  std::size_t size(std::size_t low, std::size_t high) {
    const double from = std::log(double(low) + 1), to = std::log(double(high) + 2);
    return std::clamp(std::size_t(std::exp(from + fraction() * (to - from))) - 1, low, high);
  }

 private:
  std::uint64_t state_;
};

}  // namespace headway
