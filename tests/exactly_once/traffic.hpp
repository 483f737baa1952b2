// SPDX-License-Identifier: BSD-3-Clause
/// The random traffic of exactly_once: the content of messages, its seed, and the records of senders and receivers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/base/random.hpp>
#include <span>
#include <support/checksum.hpp>
#include <vector>

namespace exactly_once {

using headway::Random;
using headway::testing::checksum;

/// In front of every message but the bare ones.
struct Envelope {
  std::uint32_t source;
  std::uint32_t destination;
  std::uint64_t sequence;  // of this pair and stream
  std::uint32_t bytes;     // of the content
  std::uint16_t depth;     // how often it is still sent on
  std::uint16_t stream;    // streams keep their order if the aggregator does
  std::uint64_t sum;       // checksum of the content and of all the above

  std::uint64_t expected_sum(std::span<const std::byte> content) const {
    std::uint64_t seed = sequence * 0xd6e8feb86659fd93 ^ std::uint64_t(source) << 32 ^ destination;
    seed =
        (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9 ^ (std::uint64_t(bytes) << 32 | std::uint64_t(depth) << 16 | stream);
    return checksum(content, seed);
  }
};
static_assert(sizeof(Envelope) == 32);

/// What went from one PE to another, as one end saw it.
struct Tally {
  std::uint64_t messages, bytes, sum, mixed;
  void add(std::uint64_t sum_of_message, std::uint64_t bytes_of_message) {
    ++messages;
    bytes += bytes_of_message;
    sum += sum_of_message;
    mixed ^= sum_of_message * 0x9e3779b97f4a7c15;
  }
  bool operator==(const Tally&) const = default;
};

/// Random content: a pool to take pieces from, the same on all PEs of a run.
class Content {
 public:
  Content(std::uint64_t seed, std::size_t bytes_max) : pool_(2 * bytes_max + 4096) {
    Random random(seed);
    for (std::size_t i = 0; i + 8 <= pool_.size(); i += 8) {
      const std::uint64_t word = random.next();
      std::memcpy(pool_.data() + i, &word, 8);
    }
  }
  std::span<const std::byte> piece(Random& random, std::size_t bytes) const {
    return std::span(pool_).subspan(random.below(pool_.size() - bytes), bytes);
  }

 private:
  std::vector<std::byte> pool_;
};

}  // namespace exactly_once
