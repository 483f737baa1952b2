// SPDX-License-Identifier: BSD-3-Clause
/// A PE's frame memory: a buddy allocator with bookkeeping private to the PE.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <new>
#include <vector>

namespace headway::local {

/// Blocks are powers of two. Freed blocks wait in a list of their size. The block that was freed last is taken first,
/// because it is warm in the cache. Buddies are merged only when a claim finds no block.
///
/// Delayed reuse: a block of 4 KiB and more that another core has read is ready only after `delayed_bytes` of its size
/// have been freed after it. Until then its lines lie in the caches of both cores, and a writer of small pieces waits
/// for each line in turn. Lines that have left the writer's own cache are fetched many at a time (docs/decisions/0023).
template <unsigned smallest_order>
class BasicArena {
 public:
  static constexpr unsigned order_min = smallest_order;
  static constexpr unsigned delayed_order_min = 12;

  /// `arena_bytes` is a power of two.
  BasicArena(std::byte* base, std::size_t arena_bytes, std::size_t delayed_bytes)
      : base_(base),
        order_max_(unsigned(std::countr_zero(arena_bytes))),
        blocks_(arena_bytes >> order_min),
        delayed_bytes_(std::min(delayed_bytes, arena_bytes / 8)),
        free_(order_max_ + 1) {
    // calloc: entries cost no memory until they are touched.
    table_.reset(static_cast<Entry*>(std::calloc(blocks_, sizeof(Entry))));
    if (!table_) throw std::bad_alloc();
    put(0, order_max_);
  }

  static unsigned order_for(std::size_t bytes) {
    const unsigned order = unsigned(std::bit_width(bytes - 1));
    return order < order_min ? order_min : order;
  }

  /// nullptr if no block is large enough.
  std::byte* try_allocate(std::size_t bytes, std::uint64_t tag) {
    const unsigned order = order_for(bytes);
    if (order > order_max_) return nullptr;
    FreeBlocks& free = free_[order];
    if (free.ready.empty() && !split_down_to(order) && free.delayed.empty()) {
      merge_all();
      if (free.ready.empty() && !split_down_to(order)) return nullptr;
    }
    const std::uint32_t block = take(order);
    table_[block].state = State::allocated;
    table_[block].tag = tag;
    return base_ + (std::size_t(block) << order_min);
  }

  void free(std::byte* at) {
    const std::uint32_t block = index(at);
    put(block, table_[block].order);
  }

  /// The same with delayed reuse: for a block that was written in small pieces and that another core has read.
  void free_delayed(std::byte* at) {
    const std::uint32_t block = index(at);
    const unsigned order = table_[block].order;
    const std::size_t delayed_max = order < delayed_order_min ? 0 : delayed_bytes_ >> order;
    std::deque<std::uint32_t>& delayed = free_[order].delayed;
    table_[block].state = State::free;
    delayed.push_back(block);
    if (delayed.size() > delayed_max) {
      free_[order].ready.push_back(delayed.front());
      delayed.pop_front();
    }
  }

  /// True if a block that is allocated begins at `offset`, which may be any number.
  bool is_allocated(std::uint64_t offset) const {
    return offset % (std::size_t(1) << order_min) == 0 && offset >> order_min < blocks_ &&
           table_[offset >> order_min].state == State::allocated;
  }

  std::size_t block_bytes(const std::byte* at) const { return std::size_t(1) << table_[index(at)].order; }
  std::uint64_t tag(const std::byte* at) const { return table_[index(at)].tag; }

  /// Marks of the arena's user, which stay with the address of a block when it is freed and allocated again, also in
  /// another size: its last reader (0 at first), and whether it was written past the caches.
  std::uint32_t& reader(const std::byte* at) { return table_[index(at)].reader; }
  bool& written_past_caches(const std::byte* at) { return table_[index(at)].written_past_caches; }

 private:
  enum class State : std::uint8_t { inside, free, allocated };  // inside: part of a larger block
  struct Entry {
    std::uint64_t tag;
    std::uint32_t reader;
    std::uint8_t order;
    State state;
    bool written_past_caches;
  };
  struct FreeTable {
    void operator()(Entry* table) const { std::free(table); }
  };
  struct FreeBlocks {
    std::vector<std::uint32_t> ready;   // the last one is taken first
    std::deque<std::uint32_t> delayed;  // oldest first
  };

  std::uint32_t index(const std::byte* at) const { return std::uint32_t(std::size_t(at - base_) >> order_min); }

  bool is_free(std::uint32_t block, unsigned order) const {
    return table_[block].state == State::free && table_[block].order == order;
  }

  void put(std::uint32_t block, unsigned order) {
    table_[block].order = std::uint8_t(order);
    table_[block].state = State::free;
    free_[order].ready.push_back(block);
  }

  std::uint32_t take(unsigned order) {
    FreeBlocks& free = free_[order];
    const bool is_ready = !free.ready.empty();
    const std::uint32_t block = is_ready ? free.ready.back() : free.delayed.front();
    if (is_ready)
      free.ready.pop_back();
    else
      free.delayed.pop_front();
    table_[block].state = State::inside;
    return block;
  }

  bool split_down_to(unsigned order) {
    unsigned from = order + 1;
    while (from <= order_max_ && free_[from].ready.empty()) ++from;
    if (from > order_max_) return false;
    const std::uint32_t block = take(from);
    for (unsigned o = from; o-- > order;) put(block + (1u << (o - order_min)), o);  // upper halves stay free
    put(block, order);
    return true;
  }

  void merge_all() {
    for (unsigned order = order_min; order < order_max_; ++order) {
      std::vector<std::uint32_t> all = std::move(free_[order].ready), kept;
      all.insert(all.end(), free_[order].delayed.begin(), free_[order].delayed.end());
      free_[order].delayed.clear();
      for (const std::uint32_t block : all) {
        if (!is_free(block, order)) continue;  // merged as the buddy of another
        const std::uint32_t buddy = block ^ (1u << (order - order_min));
        if (is_free(buddy, order)) {
          table_[block].state = table_[buddy].state = State::inside;
          put(block < buddy ? block : buddy, order + 1);
        } else {
          kept.push_back(block);
        }
      }
      free_[order].ready = std::move(kept);
    }
  }

  std::byte* base_;
  unsigned order_max_;
  std::size_t blocks_;
  std::size_t delayed_bytes_;
  std::unique_ptr<Entry[], FreeTable> table_;
  std::vector<FreeBlocks> free_;  // by order
};

/// The arena of frames, with blocks of 128 bytes and more.
using Arena = BasicArena<7>;

}  // namespace headway::local
