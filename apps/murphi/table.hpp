// SPDX-License-Identifier: BSD-3-Clause
/// The states of one PE: all of them in full, in the order of their arrival, and a hash table of their indices.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <memory>
#include <vector>

#include "model.hpp"

namespace headway::murphi {

/// Names the state and the rule that a state came from.
struct Link {
  static constexpr std::uint32_t none = ~std::uint32_t(0);  // of an initial state
  std::uint32_t parent = none;                              // its index on its PE
  std::uint16_t pe = 0;
  Rule rule = 0;
  bool operator==(const Link&) const = default;
};

/// Loads each byte once, because a processor waits for a load that overlaps two recent stores.
template <std::size_t bytes>
inline std::uint64_t hash_of(const Packed<bytes>& state) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  constexpr std::size_t rest = bytes % 8;
  std::uint64_t hash = odd * bytes, word = 0;
  const auto mix = [&](std::uint64_t next) {
    hash = (hash ^ next) * odd;
    hash ^= hash >> 32;
  };
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    std::memcpy(&word, state.data() + at, 8);
    mix(word);
  }
  if constexpr (rest != 0) {
    std::uint64_t last = 0;
    std::memcpy(&last, state.data() + bytes - rest, rest);
    mix(bytes < 8 ? last : word >> (8 * rest) | last << (64 - 8 * rest));  // the last 8 bytes
  }
  hash *= 0xbf58476d1ce4e5b9;
  return hash ^ hash >> 29;
}

/// By the hash's upper half; a table uses the lower half for the place.
inline std::size_t owner_of(std::uint64_t hash, std::size_t pes) { return std::size_t((hash >> 32) * pes >> 32); }

struct Limits {
  std::uint64_t states_max = Link::none - 1;
  std::uint64_t bytes_max = ~std::uint64_t(0);
};

template <std::size_t bytes>
class StateTable {
 public:
  static constexpr std::uint32_t none = Link::none;

  explicit StateTable(const Limits& limits) : limits_(limits), slots_(slots_min) {}

  std::uint64_t size() const { return size_; }
  const Packed<bytes>& state(std::uint64_t index) const { return chunk(index).states[index % chunk_states]; }
  Packed<bytes>& state(std::uint64_t index) { return chunk(index).states[index % chunk_states]; }
  const Link& link(std::uint64_t index) const { return chunk(index).links[index % chunk_states]; }
  /// The most that it has had allocated at one time.
  std::uint64_t bytes_peak() const { return bytes_peak_; }

  void prefetch_slot(std::uint64_t hash) const { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)], 1); }
  void prefetch_state(std::uint64_t hash) const {
    const std::uint64_t slot = slots_[hash & (slots_.size() - 1)];
    if (slot != 0 && tag(slot) == tag(hash)) __builtin_prefetch(&state(index(slot)));
  }

  /// The state's index, or `none`.
  std::uint32_t find(std::uint64_t hash, const Packed<bytes>& state) const {
    const std::uint64_t slot = slots_[place(hash, state)];
    return slot == 0 ? none : index(slot);
  }

  /// Returns whether the state was not there. SettingError where it has no room.
  bool insert(std::uint64_t hash, const Packed<bytes>& state, Link link) {
    std::size_t at = place(hash, state);
    if (slots_[at] != 0) return false;
    if (size_ == limits_.states_max) {
      throw SettingError(fmt::format("--states-max: {} states are not enough for this PE; more PEs have more room",
                                     limits_.states_max));
    }
    if ((size_ + 1) * 10 > slots_.size() * 7) {
      grow();
      at = place(hash, state);
    }
    if (size_ % chunk_states == 0) {
      reserve(sizeof(Chunk));
      chunks_.push_back(std::make_unique_for_overwrite<Chunk>());
    }
    chunk(size_).states[size_ % chunk_states] = state;
    chunk(size_).links[size_ % chunk_states] = link;
    slots_[at] = (hash & tag_bits) | ++size_;
    return true;
  }

 private:
  static constexpr std::size_t chunk_states = std::size_t(1) << 14, slots_min = 1024;
  static constexpr std::uint64_t tag_bits = ~std::uint64_t(0) << 32;

  struct Chunk {
    std::array<Packed<bytes>, chunk_states> states;
    std::array<Link, chunk_states> links;
  };

  // A slot is 0, or the upper half of the hash and the index plus 1.
  static std::uint64_t tag(std::uint64_t slot) { return slot >> 32; }
  static std::uint32_t index(std::uint64_t slot) { return std::uint32_t(slot) - 1; }

  const Chunk& chunk(std::uint64_t index) const { return *chunks_[index / chunk_states]; }
  Chunk& chunk(std::uint64_t index) { return *chunks_[index / chunk_states]; }

  /// Where the state's slot is, or the empty one in which it belongs.
  std::size_t place(std::uint64_t hash, const Packed<bytes>& sought) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
      const std::uint64_t slot = slots_[at];
      if (slot == 0 || (tag(slot) == tag(hash) && state(index(slot)) == sought)) return at;
    }
  }

  void reserve(std::uint64_t more) {
    const std::uint64_t allocated = chunks_.size() * sizeof(Chunk) + slots_.size() * sizeof(std::uint64_t) + more;
    if (allocated > limits_.bytes_max) {
      throw SettingError(
          fmt::format("--memory: {} are not enough for the states of this PE, of which there are {}; "
                      "more PEs have more room",
                      base::format_bytes(limits_.bytes_max), size_));
    }
    bytes_peak_ = std::max(bytes_peak_, allocated);
  }

  /// Old and new slots exist at the same time.
  void grow() {
    reserve(2 * slots_.size() * sizeof(std::uint64_t));
    std::vector<std::uint64_t> slots(2 * slots_.size());
    const std::size_t mask = slots.size() - 1;
    for (std::uint64_t i = 0; i < size_; ++i) {
      const std::uint64_t hash = hash_of(state(i));
      std::size_t at = hash & mask;
      while (slots[at] != 0) at = (at + 1) & mask;
      slots[at] = (hash & tag_bits) | (i + 1);
    }
    slots_.swap(slots);
  }

  Limits limits_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::uint64_t> slots_;  // a power of two of them, at most seven tenths in use
  std::uint64_t size_ = 0, bytes_peak_ = 0;
};

/// Puts states into a table some calls later than they come: meanwhile the processor loads their slots, then the states
/// that the slots name.
template <std::size_t bytes>
class Arrivals {
 public:
  explicit Arrivals(StateTable<bytes>& table) : table_(table) {}

  bool empty() const { return first_ == end_; }

  /// Calls added(index) for a state that is new; it may be one of an earlier call.
  template <class Added>
  void push(std::uint64_t hash, const Packed<bytes>& state, Link link, Added added) {
    if (end_ - first_ == depth) settle(added);
    Waiting& last = waiting_[end_++ % depth];
    last.hash = hash;
    last.state = state;
    last.link = link;
    table_.prefetch_slot(hash);
    if (end_ - first_ >= depth / 2) table_.prefetch_state(waiting_[(end_ - depth / 2) % depth].hash);
  }
  template <class Added>
  void drain(Added added) {
    while (!empty()) settle(added);
  }

 private:
  static constexpr std::uint64_t depth = 16;
  struct Waiting {
    std::uint64_t hash;
    Packed<bytes> state;
    Link link;
  };

  template <class Added>
  void settle(Added& added) {
    const Waiting& oldest = waiting_[first_++ % depth];
    if (table_.insert(oldest.hash, oldest.state, oldest.link)) added(table_.size() - 1);
  }

  StateTable<bytes>& table_;
  std::array<Waiting, depth> waiting_;
  std::uint64_t first_ = 0, end_ = 0;
};

}  // namespace headway::murphi
