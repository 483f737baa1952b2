// SPDX-License-Identifier: BSD-3-Clause
/// The communication of the mesh on Headway.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <headway/halo/exchange.hpp>
#include <headway/headway.hpp>
#include <span>
#include <utility>
#include <vector>

#include "mesh.hpp"

namespace headway::amr {

class HeadwayPes {
  using Messages = Aggregator<std::uint32_t, std::uint32_t, std::span<const std::byte>>;

 public:
  HeadwayPes(Pe& pe, const AggregatorOptions& options) : pe_(pe), messages_(pe, options) {
    messages_.on([this](std::uint32_t sender, std::uint32_t turn, std::span<const std::byte> bytes) {
      arrived_[turn][sender].assign(bytes.begin(), bytes.end());
    });
  }

  std::size_t id() const { return pe_.id(); }
  std::size_t size() const { return pe_.size(); }
  double now() const { return double(pe_.engine().now()) * 1e-9; }
  double minimum(double value) {
    return allreduce(pe_, value, [](double a, double b) { return std::min(a, b); });
  }
  std::uint64_t sum(std::uint64_t count) { return allreduce(pe_, count, std::plus<>()); }
  template <class T>
  std::vector<T> all_gather(const T& value) {
    return headway::all_gather(pe_, value);
  }
  /// A PE may be one swap ahead of another, never two, because it waits for all. So lists arrive in two halves in turn.
  template <class T>
  Lists<T> swap(const Lists<T>& lists) {
    const std::uint32_t turn = swaps_++ % 2;
    Lists<T> came;
    Epoch epoch(pe_);
    for (const auto& [pe, list] : lists) {
      if (pe == id())
        came[pe] = list;
      else
        messages_.send(pe, std::uint32_t(id()), turn, std::as_bytes(std::span(list)));
    }
    epoch.wait();
    for (const auto& [sender, bytes] : std::exchange(arrived_[turn], {})) {
      came[sender].resize(bytes.size() / sizeof(T));
      std::memcpy(came[sender].data(), bytes.data(), bytes.size());
    }
    return came;
  }
  const Messages& messages() const { return messages_; }

  class Ghosts {
   public:
    Ghosts(HeadwayPes& pes, std::uint64_t owned, std::span<const std::uint64_t> ids,
           const std::vector<std::uint64_t>& first_ids, std::vector<State>& states, std::vector<std::uint8_t>& targets)
        : plan_(halo::Plan::needed(pes.pe_, owned, ids,
                                   [&](std::uint64_t id) {
                                     const auto next = std::ranges::upper_bound(first_ids, id);
                                     return halo::Place{PeId(std::size_t(next - first_ids.begin()) - 1), id - next[-1]};
                                   })),
          states_(pes.pe_, plan_, {halo::field(states)}),
          targets_(pes.pe_, plan_, {halo::field(targets)}) {}
    void begin() { states_.begin(); }
    void end() { states_.end(); }
    void exchange_targets() { targets_(); }

   private:
    halo::Plan plan_;
    halo::Exchange states_, targets_;
  };

 private:
  Pe& pe_;
  Messages messages_;
  std::uint32_t swaps_ = 0;
  std::array<Lists<std::byte>, 2> arrived_;
};

}  // namespace headway::amr
