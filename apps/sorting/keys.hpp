// SPDX-License-Identifier: BSD-3-Clause
/// The keys that radix, sample and the peers sort: each a function of its index, so that any PE makes any part of the
/// same input.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <span>
#include <vector>

namespace headway::sorting {

using Key = std::uint32_t;

/// So that places and keys fit into 32 bits each, with one to spare.
inline constexpr std::uint64_t keys_max = std::uint64_t(1) << 31;

struct Input {
  std::uint64_t keys = 1 << 20;                     // of all PEs together, at most keys_max
  std::uint64_t distinct = std::uint64_t(1) << 32;  // keys are below this number, 1 to 2^32
  std::uint64_t seed = 1;

  Key key(std::uint64_t index) const {
    return Key((Random(Random(seed).next() + index).next() >> 32) * distinct >> 32);
  }
};

/// Places 0 to keys - 1 in contiguous blocks: PE p has those from first(p) to first(p + 1) - 1. All blocks are equal
/// but the last ones, which may be empty.
class Blocks {
 public:
  Blocks(std::uint64_t keys, std::size_t pes)
      : keys_(keys),
        block_(std::max<std::uint64_t>(1, (keys + pes - 1) / pes)),
        inverse_((std::uint64_t(1) << 63) / block_ + 1) {}

  /// Exact for all places below keys_max: the error of the inverse, below block / 2^63, times the place is below 1.
  std::size_t owner(std::uint64_t place) const {
    __extension__ using Wide = unsigned __int128;
    return std::size_t(Wide(place) * inverse_ >> 63);
  }
  std::uint64_t first(std::size_t pe) const { return std::min(keys_, pe * block_); }
  std::uint64_t count(std::size_t pe) const { return first(pe + 1) - first(pe); }
  std::uint64_t block() const { return block_; }

 private:
  std::uint64_t keys_, block_, inverse_;
};

/// Of a set of keys, in any order. Sets with different keys have different digests but for a chance of 2^-64.
struct Digest {
  std::uint64_t count = 0, sum = 0, exclusive_or = 0, mixed = 0;

  void add(Key key) {
    ++count;
    sum += key;
    exclusive_or ^= key;
    mixed += Random(key).next();
  }
  void add(const Digest& other) {
    count += other.count;
    sum += other.sum;
    exclusive_or ^= other.exclusive_or;
    mixed += other.mixed;
  }
  bool operator==(const Digest&) const = default;
};

/// A term of the checksum of the result: `key` is at `place` of all.
inline std::uint64_t placed(std::uint64_t place, Key key) { return Random(place << 32 | key).next(); }

/// Hands out items by their destination, without a branch that depends on it.
template <class Item>
class Groups {
 public:
  explicit Groups(std::size_t pes)
      : items_(std::max<std::size_t>(4096, 4 * pes)),
        grouped_(items_.size()),
        destinations_(items_.size()),
        counts_(pes),
        ends_(pes) {}

  /// next(item) writes one of `count` items and returns its destination. take(destination, span of items) gets all of
  /// them, in pieces, for each destination in their order.
  template <class Next, class Take>
  void split(std::size_t count, Next next, Take take) {
    while (count > 0) {
      const std::size_t now = std::min(count, items_.size());
      std::ranges::fill(counts_, 0);
      for (std::size_t i = 0; i != now; ++i) {
        const std::size_t destination = next(items_[i]);
        destinations_[i] = std::uint32_t(destination);
        ++counts_[destination];
      }
      std::uint32_t end = 0;
      for (std::size_t pe = 0; pe != counts_.size(); ++pe) {
        ends_[pe] = end;
        end += counts_[pe];
      }
      for (std::size_t i = 0; i != now; ++i) grouped_[ends_[destinations_[i]]++] = items_[i];
      for (std::size_t pe = 0; pe != counts_.size(); ++pe) {
        if (counts_[pe] == 0) continue;
        take(pe, std::span<const Item>(grouped_.data() + ends_[pe] - counts_[pe], counts_[pe]));
      }
      count -= now;
    }
  }

 private:
  std::vector<Item> items_, grouped_;
  std::vector<std::uint32_t> destinations_, counts_, ends_;
};

}  // namespace headway::sorting
