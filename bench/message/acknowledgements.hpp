// SPDX-License-Identifier: BSD-3-Clause
/// Cumulative acknowledgements: a PE tells each that sends to it, every 100 messages or as asked, how many of its
/// messages it has handled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <vector>

namespace headway::bench {

class Acknowledgements {
 public:
  /// Collective. One for every `window` messages; they travel as those do.
  Acknowledgements(Pe& pe, const AggregatorOptions& options, std::uint64_t window)
      : sender_(pe, options), window_(window), until_next_(pe.size(), window), told_(pe.size()), confirmed_(pe.size()) {
    sender_.on([this](PeId source, const std::uint64_t& count) {
      ++taken_;
      // An earlier one may come later; of one source, only the largest says anything.
      if (count > confirmed_[source]) {
        confirmed_in_all_ += count - confirmed_[source];
        confirmed_[source] = count;
      }
    });
  }
  Acknowledgements(const Acknowledgements&) = delete;
  Acknowledgements& operator=(const Acknowledgements&) = delete;

  /// A message of `source` came. For its handler.
  void count(PeId source) {
    if (--until_next_[source] == 0) [[unlikely]]
      acknowledge(source);
  }
  /// Of this PE's messages, so many are known to have been handled, over all receivers.
  std::uint64_t confirmed() const { return confirmed_in_all_; }
  /// Begins to count anew; nothing may be on its way.
  void start() {
    std::ranges::fill(until_next_, window_);
    std::ranges::fill(told_, 0);
    std::ranges::fill(confirmed_, 0);
    confirmed_in_all_ = taken_ = 0;
  }

  /// The number of errors once `receivers` others have handled `messages` each.
  std::uint64_t errors(std::uint64_t messages, std::size_t receivers) const {
    const std::uint64_t each = messages / window_;
    return (taken_ != each * receivers) + (confirmed_in_all_ != each * receivers * window_);
  }
  AggregatorStatistics statistics() const { return sender_.statistics(); }

 private:
  __attribute__((noinline)) void acknowledge(PeId source) {
    until_next_[source] = window_;
    told_[source] += window_;
    sender_.send(source, told_[source]);
  }

  Aggregator<std::uint64_t> sender_;
  std::uint64_t window_;
  std::vector<std::uint64_t> until_next_;        // messages of each PE to come before the next acknowledgement
  std::vector<std::uint64_t> told_, confirmed_;  // by PE: handled here, as it was told; handled there, as it told
  std::uint64_t confirmed_in_all_ = 0, taken_ = 0;
};

}  // namespace headway::bench
