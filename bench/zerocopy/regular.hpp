// SPDX-License-Identifier: BSD-3-Clause
/// The regular call: a span among the arguments of a message, which is copied into a frame and read in place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/headway.hpp>
#include <message/buffers.hpp>
#include <span>
#include <utility>

namespace headway::bench {

inline std::span<std::uint64_t> words_at(const HeapBuffers& buffers, std::uint64_t index) {
  return {reinterpret_cast<std::uint64_t*>(buffers.of(index)), buffers.bytes() / sizeof(std::uint64_t)};
}

/// A way to send, see zerocopy.cpp.
class Regular {
 public:
  static constexpr bool copies = false;

  Regular(Pe& pe, const AggregatorOptions& options, const HeapBuffers& targets)
      : pe_(&pe), targets_(&targets), messages_(pe, options) {}

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
  /// Where message `index` comes to, if it is copied, as far as there is room.
  std::span<std::uint64_t> target(std::uint64_t index, std::size_t words) const {
    const std::span<std::uint64_t> all = words_at(*targets_, index);
    return all.first(std::min(words, all.size()));
  }

  Pe* pe_;
  const HeapBuffers* targets_;
  Aggregator<std::uint64_t, std::span<const std::uint64_t>> messages_;
};

}  // namespace headway::bench
