// SPDX-License-Identifier: BSD-3-Clause
/// The digits of a radix sort from the last one on; and the same sort on one processor, which counts the messages that
/// each PE sends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sorting/keys.hpp>
#include <span>
#include <utility>
#include <vector>

namespace headway::radix {

using sorting::Key;

/// Digits of `bits` bits; the first one of a key may have fewer.
class Digits {
 public:
  explicit Digits(unsigned bits) : bits_(bits) {}

  unsigned passes() const { return (32 + bits_ - 1) / bits_; }
  std::size_t buckets(unsigned pass) const { return std::size_t(1) << std::min(bits_, 32 - pass * bits_); }
  std::size_t bucket(Key key, unsigned pass) const { return key >> pass * bits_ & (buckets(pass) - 1); }
  std::size_t buckets_max() const { return std::size_t(1) << bits_; }
  std::uint64_t buckets_in_all() const {
    std::uint64_t sum = 0;
    for (unsigned pass = 0; pass != passes(); ++pass) sum += buckets(pass);
    return sum;
  }

 private:
  unsigned bits_;
};

/// The messages that PE `pe` sends to scan the histograms of all passes around the ring: for each bucket the number of
/// keys so far, from each PE to the next, and from the last to PE 0; and the first place, from PE 0 on to the last.
inline std::uint64_t ring_messages(const Digits& digits, std::size_t pe, std::size_t pes) {
  if (pes == 1) return 0;
  return digits.buckets_in_all() * (pe + 1 == pes ? 1 : 2);
}

/// Sorts on one processor. Returns how many keys each PE sends to other PEs, where they lie in `blocks` over `pes` PEs.
inline std::vector<std::uint64_t> sort_and_count(std::vector<Key>& keys, const Digits& digits, std::size_t pes) {
  const sorting::Blocks blocks(keys.size(), pes);
  std::vector<std::uint64_t> sent(pes);
  std::vector<Key> sorted(keys.size());
  for (unsigned pass = 0; pass != digits.passes(); ++pass) {
    std::vector<std::size_t> places(digits.buckets(pass) + 1);
    for (const Key key : keys) ++places[digits.bucket(key, pass) + 1];
    for (std::size_t bucket = 1; bucket != places.size(); ++bucket) places[bucket] += places[bucket - 1];
    for (std::size_t i = 0; i != keys.size(); ++i) {
      const std::size_t place = places[digits.bucket(keys[i], pass)]++;
      sorted[place] = keys[i];
      if (i / blocks.block() != place / blocks.block()) ++sent[i / blocks.block()];
    }
    std::swap(keys, sorted);
  }
  return sent;
}

}  // namespace headway::radix
