/// The regular call: a span among the arguments of a message, which is copied into a frame and read in place.
#pragma once

#include <cstdint>
#include <headway/headway.hpp>
#include <span>
#include <utility>

namespace headway::bench {

/// A way to send, see zerocopy.cpp.
class Regular {
 public:
  Regular(Pe& pe, const AggregatorOptions& options) : pe_(&pe), messages_(pe, options) {}

  template <class Arrived>
  void on(Arrived arrived) {
    messages_.on([arrived = std::move(arrived)](std::uint64_t index, std::span<const std::uint64_t> data) {
      arrived(index, data);
    });
  }
  void issue(std::size_t partner, std::uint64_t index, std::span<const std::uint64_t> data) {
    messages_.send(partner, index, data);
  }
  template <class Done>
  void wait_until(Done done) {
    headway::wait_until(*pe_, std::move(done));
  }

  AggregatorStatistics statistics() const { return messages_.statistics(); }
  const AggregatorOptions& options() const { return messages_.options(); }

 protected:
  Pe* pe_;
  Aggregator<std::uint64_t, std::span<const std::uint64_t>> messages_;
};

}  // namespace headway::bench
