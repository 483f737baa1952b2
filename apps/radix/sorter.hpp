// SPDX-License-Identifier: BSD-3-Clause
/// The passes of the sort on one PE: histogram, scan, and the keys to the PEs of their places.
#pragma once

#include <algorithm>
#include <array>
#include <headway/headway.hpp>
#include <sorting/verify.hpp>
#include <span>
#include <support/work.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "digits.hpp"
#include "scan.hpp"

namespace headway::radix {

/// What both ways of sending share: a PE's part of the items, before and after a pass.
template <class Item>
class Parts {
 public:
  Parts(Pe& pe, const sorting::Input& input, const Digits& digits)
      : pe_(pe), digits_(digits), blocks_(input.keys, pe.size()), from_(count()), to_(count()) {
    places_.resize(digits.buckets_max());
    counts_.resize(digits.buckets_max());
    for (std::size_t i = 0; i != count(); ++i) {
      const std::uint64_t index = blocks_.first(pe.id()) + i;
      if constexpr (std::is_same_v<Item, sorting::Pair>)
        from_[i] = {input.key(index), std::uint32_t(index)};
      else
        from_[i] = input.key(index);
    }
  }

  std::span<Item> items() { return {from_.data(), count()}; }
  std::span<const Item> items() const { return {from_.data(), count()}; }
  const sorting::Blocks& blocks() const { return blocks_; }

 protected:
  std::size_t count() const { return blocks_.count(pe_.id()); }
  /// Of this PE's items.
  std::span<const std::uint32_t> make_histogram(unsigned pass) {
    const std::span<std::uint32_t> counts = std::span(counts_).first(digits_.buckets(pass));
    std::ranges::fill(counts, 0);
    for (const Item& item : items()) ++counts[digits_.bucket(sorting::key_of(item), pass)];
    return counts;
  }
  std::span<std::uint32_t> places(unsigned pass) { return std::span(places_).first(digits_.buckets(pass)); }

  Pe& pe_;
  Digits digits_;
  sorting::Blocks blocks_;
  std::vector<Item> from_, to_;                 // before and after a pass
  std::vector<std::uint32_t> counts_, places_;  // of a pass, by bucket
};

/// radix of the study: an item and its place are a message each.
template <class Item>
class StoreSorter : public Parts<Item> {
  using Base = Parts<Item>;
  using Base::pe_, Base::digits_, Base::blocks_, Base::from_, Base::to_;

 public:
  StoreSorter(Pe& pe, const sorting::Input& input, const Digits& digits, const AggregatorOptions& options,
              const apps::Work& work)
      : Base(pe, input, digits), work_(work), scan_(pe, options), stores_(pe, options), groups_(pe.size()) {
    const auto put = [this](const Store& store) { to_[store.place] = store.item; };
    const auto fetch = [this](const Store& store) { __builtin_prefetch(&to_[store.place], 1); };
    stores_.on(put, fetch);
  }

  void sort() {
    for (unsigned pass = 0; pass != digits_.passes(); ++pass) {
      const std::span<std::uint32_t> places = Base::places(pass);
      scan_.run(Base::make_histogram(pass), places);
      send(pass, places);
      pe_.quiesce();
      std::swap(from_, to_);
    }
  }

  /// In messages that have keys.
  std::uint64_t bytes_sent() const { return keys_sent() * sizeof(Store); }
  std::uint64_t keys_sent() const { return stores_.statistics().messages; }
  std::uint64_t scan_sent() const { return scan_.sent(); }
  std::uint64_t scan_expected() const { return ring_messages(digits_, pe_.id(), pe_.size()); }
  std::vector<AggregatorStatistics> statistics() const { return {stores_.statistics(), scan_.statistics()}; }
  const AggregatorOptions& options() const { return stores_.options(); }

 private:
  struct Store {
    std::uint32_t place;  // within the receiver's items
    Item item;
  };

  void send(unsigned pass, std::span<std::uint32_t> places) {
    const Item* next = from_.data();
    const auto find_place = [&](Store& store) {
      store.item = *next++;
      const std::uint32_t place = places[digits_.bucket(sorting::key_of(store.item), pass)]++;
      const std::size_t owner = blocks_.owner(place);
      store.place = std::uint32_t(place - owner * blocks_.block());
      return owner;
    };
    groups_.split(Base::count(), find_place, [&](std::size_t owner, std::span<const Store> stores) {
      if (owner != pe_.id()) return work_ ? work_and_send(owner, stores) : stores_.send_range(owner, stores);
      work_.done(double(stores.size()));
      for (const Store& store : stores) to_[store.place] = store.item;
    });
  }
  void work_and_send(std::size_t owner, std::span<const Store> stores) {
    for (const Store& store : stores) {
      work_.done(1);
      stores_.send(owner, store);
    }
  }

  apps::Work work_;
  RingScan scan_;
  Aggregator<Store> stores_;
  sorting::Groups<Store> groups_;
};

/// radb of the study: this PE's items are sorted by their digit first, so that those for one PE lie side by side and
/// are one message, with the places of its runs.
template <class Item>
class BulkSorter : public Parts<Item> {
  using Base = Parts<Item>;
  using Base::pe_, Base::digits_, Base::blocks_, Base::from_, Base::to_;

 public:
  BulkSorter(Pe& pe, const sorting::Input& input, const Digits& digits, const AggregatorOptions& options,
             const apps::Work& work)
      : Base(pe, input, digits),
        work_(work),
        scan_(pe, options, digits.buckets_max()),
        stores_(pe, options),
        sorted_(pe, Base::count()) {
    std::ranges::fill(sorted_, Item{});
    stores_.on([this](std::span<const Run> runs, std::span<const Item> items) { put(runs, items); });
  }

  void sort() {
    for (unsigned pass = 0; pass != digits_.passes(); ++pass) {
      const std::span<const std::uint32_t> counts = Base::make_histogram(pass);
      scan_.run(counts, Base::places(pass));
      send(pass, counts);
      pe_.quiesce();
      std::swap(from_, to_);
    }
  }

  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t keys_sent() const { return stores_.statistics().messages; }
  std::uint64_t scan_sent() const { return scan_.sent(); }
  std::uint64_t scan_expected() const { return 2 * digits_.passes() * (pe_.size() - 1); }
  std::vector<AggregatorStatistics> statistics() const {
    return {stores_.statistics(), scan_.statistics(), scan_.more_statistics()};
  }
  const AggregatorOptions& options() const { return stores_.options(); }

 private:
  /// Items that follow one another in a message and at their receiver.
  struct Run {
    std::uint32_t place, count;  // within the receiver's items
  };

  void put(std::span<const Run> runs, std::span<const Item> items) {
    const Item* next = items.data();
    for (const Run& run : runs) {
      Item* const to = to_.data() + run.place;
      for (std::uint32_t i = 0; i != run.count; ++i) to[i] = next[i];
      next += run.count;
    }
  }

  void send(unsigned pass, std::span<const std::uint32_t> counts) {
    sort_by_digit(pass, counts);
    const std::span<const std::uint32_t> places = Base::places(pass);
    runs_.clear();
    std::size_t owner = 0, sent = 0, gathered = 0;
    const auto post = [&] {
      const std::span<const Item> items(sorted_.data() + sent, gathered);
      if (owner == pe_.id()) {
        put(runs_, items);
      } else if (gathered != 0) {
        stores_.send(owner, std::span<const Run>(runs_), send_buffer(items, [] {}));
        bytes_sent_ += runs_.size() * sizeof(Run) + items.size_bytes();
      }
      runs_.clear();
      sent += std::exchange(gathered, 0);
    };
    for (std::size_t bucket = 0; bucket != counts.size(); ++bucket) {
      std::uint32_t place = places[bucket];
      for (std::uint32_t left = counts[bucket]; left != 0;) {
        if (const std::size_t now = blocks_.owner(place); now != owner) {
          post();
          owner = now;
        }
        const auto count = std::uint32_t(std::min<std::uint64_t>(left, blocks_.first(owner + 1) - place));
        runs_.push_back({std::uint32_t(place - blocks_.first(owner)), count});
        gathered += count;
        place += count;
        left -= count;
      }
    }
    post();
  }

  void sort_by_digit(unsigned pass, std::span<const std::uint32_t> counts) {
    next_.resize(counts.size());
    sum_before(counts, next_);
    for (const Item& item : Base::items()) sorted_[next_[digits_.bucket(sorting::key_of(item), pass)]++] = item;
    work_.done(double(Base::count()));
  }

  apps::Work work_;
  BulkScan scan_;
  Aggregator<std::span<const Run>, std::span<const Item>> stores_;
  PooledArray<Item> sorted_;  // other PEs of the host read it in place
  std::vector<Run> runs_;
  std::vector<std::uint32_t> next_;  // by bucket
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace headway::radix
