// SPDX-License-Identifier: BSD-3-Clause
/// Messages of the tests of epochs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>

namespace headway::epoch_test {

/// Messages that travel on from PE to PE until their hops are spent.
struct Traveller {
  std::uint32_t hops_left;
  std::uint32_t kind;
};

class Travellers {
 public:
  Travellers(Pe& pe, const AggregatorOptions& options) : pe_(&pe), aggregator_(pe, options) {
    aggregator_.on([this](const Traveller& t) {
      ++handled[t.kind];
      if (t.hops_left != 0) send({t.hops_left - 1, t.kind});
    });
  }
  void send(const Traveller& t) { aggregator_.send((3 * next_++ + pe_->id() + 1) % pe_->size(), t); }
  AggregatorStatistics statistics() const { return aggregator_.statistics(); }

  std::uint64_t handled[2] = {};  // here, by kind

 private:
  Pe* pe_;
  Aggregator<Traveller> aggregator_;
  std::size_t next_ = 0;
};

}  // namespace headway::epoch_test
