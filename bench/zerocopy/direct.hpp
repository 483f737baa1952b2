// SPDX-License-Identifier: BSD-3-Clause
/// The direct interface: a message names a Source, which the receiver gets.
#pragma once

#include <cstdint>
#include <deque>
#include <headway/headway.hpp>
#include <message/buffers.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>
#include <zerocopy/regular.hpp>

namespace headway::bench {

/// A way to send, see zerocopy.cpp.
class Direct {
 public:
  static constexpr bool copies = true;

  Direct(Pe& pe, const AggregatorOptions& options, const HeapBuffers& targets)
      : pe_(&pe), targets_(&targets), offers_(pe, options) {}

  template <class Arrived>
  void on(Arrived arrived) {
    offers_.on([this, arrived = std::move(arrived)](std::uint64_t index, const RemoteSource<std::uint64_t>& source) {
      const std::span target = words_at(*targets_, index);
      const std::size_t words = source.size();
      get(*pe_, source, target, [arrived, index, target, words] { arrived(index, target.first(words)); });
    });
  }
  void issue(std::size_t partner, std::uint64_t index, std::span<const std::uint64_t> data) {
    if (spare_.empty()) spare_.push_back(&places_.emplace_back(this));
    Place* const place = spare_.back();
    spare_.pop_back();
    place->source.emplace(*pe_, data, [place] { place->clear(); });
    offers_.send(partner, index, place->source->remote());
  }
  template <class Done>
  void wait_until(Done done) {
    headway::wait_until(*pe_, std::move(done));
  }

  AggregatorStatistics statistics() const { return offers_.statistics(); }
  const AggregatorOptions& options() const { return offers_.options(); }

 private:
  struct Place {
    explicit Place(Direct* direct) : owner(direct) {}
    void clear() {
      source.reset();
      owner->spare_.push_back(this);
    }

    Direct* owner;
    std::optional<Source<std::uint64_t>> source;
  };

  Pe* pe_;
  const HeapBuffers* targets_;
  Aggregator<std::uint64_t, RemoteSource<std::uint64_t>> offers_;
  std::deque<Place> places_;  // for the Sources of which not all are done, which stay where they are
  std::vector<Place*> spare_;
};

}  // namespace headway::bench
