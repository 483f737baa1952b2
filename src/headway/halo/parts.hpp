// SPDX-License-Identifier: BSD-3-Clause
/// Parts of the elements that a PE sends, which threads of the program mark as ready.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/halo/index_list.hpp>
#include <memory>
#include <span>
#include <vector>

namespace headway::halo {

/// The part of a local element.
using PartRule = std::function<std::size_t(std::uint64_t index)>;

/// Counts, for each partner, the parts that are not ready and hold elements for it. Any thread may mark a part; no
/// thread waits for another.
class Parts {
 public:
  enum class State : std::uint8_t {
    waiting,
    complete,          // the PE's thread sends the elements
    sent,              // by the thread that completed them
    sent_with_notice,  // the same; the partner wants a control message, which the PE's thread sends
    counted,           // the PE's thread knows
  };

  /// `lists`: the elements that go to each partner. UsageError if `rule` gives a part of `parts` or more.
  Parts(std::size_t parts, const PartRule& rule, std::span<const IndexList* const> lists);

  /// Before the threads begin.
  void begin();
  /// Calls complete(partner) for each partner that misses no other part. UsageError for a part that does not
  /// exist, or that is ready already in this generation.
  template <class Complete>
  void mark(std::size_t part, std::uint32_t generation, Complete complete) {
    require_new(part, generation);
    for (const std::uint32_t partner : partners_of_part_[part]) {
      if (partners_[partner].missing.fetch_sub(1, std::memory_order_acq_rel) == 1) complete(partner);
    }
  }
  /// Whether a partner gets elements of the part. Also true for a part that does not exist.
  bool has_partners(std::size_t part) const { return part >= size() || !partners_of_part_[part].empty(); }
  State state(std::size_t partner) const { return partners_[partner].state.load(std::memory_order_acquire); }
  void set_state(std::size_t partner, State state) { partners_[partner].state.store(state, std::memory_order_release); }
  std::size_t size() const { return partners_of_part_.size(); }
  /// The parts that hold elements for partners and that no thread has marked in this generation, ascending.
  std::vector<std::size_t> unmarked(std::uint32_t generation) const;

 private:
  struct alignas(64) Partner {
    std::atomic<std::uint32_t> missing{0};
    std::atomic<State> state{State::waiting};
    std::uint32_t parts = 0;
  };

  void require_new(std::size_t part, std::uint32_t generation);

  std::vector<std::vector<std::uint32_t>> partners_of_part_;
  std::size_t partners_count_;
  std::unique_ptr<Partner[]> partners_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> ready_;  // by part: the last generation in which it was ready
};

}  // namespace headway::halo
