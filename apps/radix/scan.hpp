// SPDX-License-Identifier: BSD-3-Clause
/// From the histograms of all PEs to the place where a PE's first key of each bucket goes: message by message around
/// the ring of PEs, or in bulk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/headway.hpp>
#include <numeric>
#include <sorting/keys.hpp>
#include <span>
#include <utility>
#include <vector>

namespace headway::radix {

/// The number before each of `counts`, of those together that precede it.
inline void sum_before(std::span<const std::uint32_t> counts, std::span<std::uint32_t> places) {
  std::exclusive_scan(counts.begin(), counts.end(), places.begin(), std::uint32_t(0));
}

/// The scan of the study: for each bucket a message goes from PE to PE, to which each adds its count. PE 0 gets the
/// total, and knows from it where the next bucket begins. A second message tells this to one PE after the other. PE 0
/// sends bucket after bucket without waiting.
class RingScan {
 public:
  RingScan(Pe& pe, const AggregatorOptions& options) : pe_(pe), messages_(pe, options) {
    messages_.on([this](std::uint64_t message) { handle(message); });
    sends_alone_ = messages_.options().topology == direct();
  }

  /// Collective. No message of this PE's may be handled while it makes `counts`.
  void run(std::span<const std::uint32_t> counts, std::span<std::uint32_t> places) {
    if (pe_.size() == 1) return sum_before(counts, places);
    counts_ = counts;
    places_ = places;
    if (pe_.id() == 0) {
      totals_.assign(counts.size(), unknown);
      begin_ = 0;
      next_ = 0;
      for (std::size_t bucket = 0; bucket != counts.size(); ++bucket) {
        messages_.send(1, count_message(bucket, counts[bucket]));
        if (sends_alone_) pe_.progress();  // as the active messages of the study: totals that have come go on
      }
      messages_.flush();
    }
    pe_.quiesce();
  }

  /// To other PEs, so far.
  std::uint64_t sent() const { return messages_.statistics().messages; }
  AggregatorStatistics statistics() const { return messages_.statistics(); }

 private:
  // | number, 47 bits | 1: first place, 0: count | bucket, 16 bits |
  static constexpr unsigned kind_shift = 16, number_shift = 17;
  static constexpr std::uint32_t unknown = ~std::uint32_t(0);

  static std::uint64_t count_message(std::size_t bucket, std::uint64_t count) { return count << number_shift | bucket; }
  static std::uint64_t place_message(std::size_t bucket, std::uint64_t place) {
    return place << number_shift | std::uint64_t(1) << kind_shift | bucket;
  }

  void handle(std::uint64_t message) {
    const std::size_t bucket = message & 0xffff;
    const auto number = std::uint32_t(message >> number_shift);
    const bool is_last = pe_.id() + 1 == pe_.size();
    if ((message >> kind_shift & 1) != 0) {
      places_[bucket] += number;
      if (!is_last) messages_.send(pe_.id() + 1, message);
    } else if (pe_.id() != 0) {
      places_[bucket] = number;
      messages_.send(is_last ? 0 : pe_.id() + 1, count_message(bucket, number + counts_[bucket]));
    } else {
      totals_[bucket] = number;
      for (; next_ != totals_.size() && totals_[next_] != unknown; ++next_) {  // they may come in another order
        places_[next_] = begin_;
        messages_.send(1, place_message(next_, begin_));
        begin_ += totals_[next_];
      }
    }
  }

  Pe& pe_;
  Aggregator<std::uint64_t> messages_;
  bool sends_alone_ = false;
  std::span<const std::uint32_t> counts_;
  std::span<std::uint32_t> places_;
  std::vector<std::uint32_t> totals_;  // of PE 0
  std::size_t next_ = 0;               // first bucket without a known first place
  std::uint32_t begin_ = 0;            // first place of that bucket
};

/// The same in bulk: each PE gets all counts of its part of the buckets, in a message from each PE, and answers each
/// with the first places.
class BulkScan {
 public:
  BulkScan(Pe& pe, const AggregatorOptions& options, std::size_t buckets_max)
      : pe_(pe), counts_(pe, options), places_(pe, options) {
    rows_.resize(pe.size() * sorting::Blocks(buckets_max, pe.size()).block());
    counts_.on([this](PeId source, std::span<const std::uint32_t> counts) { take_counts(source, counts); });
    places_.on([this](PeId source, std::span<const std::uint32_t> places) {
      std::ranges::copy(places, result_.begin() + std::ptrdiff_t(blocks_.first(source)));
    });
  }

  /// Collective.
  void run(std::span<const std::uint32_t> counts, std::span<std::uint32_t> places) {
    if (pe_.size() == 1) return sum_before(counts, places);
    blocks_ = sorting::Blocks(counts.size(), pe_.size());
    result_ = places;
    const std::size_t mine = blocks_.count(pe_.id());
    each_other(
        [&](std::size_t other) { counts_.send(other, counts.subspan(blocks_.first(other), blocks_.count(other))); });
    take_counts(pe_.id(), counts.subspan(blocks_.first(pe_.id()), mine));
    pe_.quiesce();
    const std::span counted = std::span(rows_).first(pe_.size() * mine);
    const std::uint32_t total = std::accumulate(counted.begin(), counted.end(), std::uint32_t(0));
    std::uint32_t place = exclusive_scan(pe_, total, std::uint32_t(0), std::plus<>());
    for (std::size_t bucket = 0; bucket != mine; ++bucket) {
      for (std::size_t other = 0; other != pe_.size(); ++other)
        place += std::exchange(rows_[other * mine + bucket], place);
    }
    each_other([&](std::size_t other) { places_.send(other, row(other)); });
    std::ranges::copy(row(pe_.id()), places.begin() + std::ptrdiff_t(blocks_.first(pe_.id())));
    pe_.quiesce();
  }

  std::uint64_t sent() const { return counts_.statistics().messages + places_.statistics().messages; }
  AggregatorStatistics statistics() const { return counts_.statistics(); }
  AggregatorStatistics more_statistics() const { return places_.statistics(); }

 private:
  std::span<const std::uint32_t> row(std::size_t other) const {
    const std::size_t mine = blocks_.count(pe_.id());
    return std::span(rows_).subspan(other * mine, mine);
  }
  void take_counts(PeId source, std::span<const std::uint32_t> counts) {
    std::ranges::copy(counts, rows_.begin() + std::ptrdiff_t(source * counts.size()));
  }
  /// Beginning with the next PE, so that not all send to the same one.
  template <class F>
  void each_other(F f) {
    for (std::size_t i = 1; i != pe_.size(); ++i) f((pe_.id() + i) % pe_.size());
  }

  Pe& pe_;
  Aggregator<std::span<const std::uint32_t>> counts_, places_;
  sorting::Blocks blocks_{1, 1};     // of buckets
  std::vector<std::uint32_t> rows_;  // counts, then first places, of this PE's buckets: a row for each PE
  std::span<std::uint32_t> result_;
};

}  // namespace headway::radix
