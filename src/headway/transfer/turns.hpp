// SPDX-License-Identifier: BSD-3-Clause
/// The order of transfers that wait for the window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace headway::transfer {

/// Transfers by number, first come first served. At most `bytes_max` are in flight, and half of that for one PE, so
/// that a slow PE delays only its own transfers. A transfer of any length may start when nothing is in flight.
///
///     add ──> ready ──begin──> on its way ──end──> gone
///               │  ∧
///               v  │  something of the same PE ends
///              aside: its PE has as much as it may
class Turns {
 public:
  explicit Turns(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  void add(std::uint64_t number, std::size_t pe) { ready_.push_back({number, pe}); }

  /// The transfer that may continue with bytes(number) more in flight. It stays first until begin() or end().
  template <class Bytes>
  std::optional<std::uint64_t> first(Bytes bytes) {
    while (!ready_.empty()) {
      const Turn turn = ready_.front();
      const std::uint64_t more = bytes(turn.number);
      Peer& peer = peers_[turn.pe];
      if (peer.on_way == 0 || peer.on_way + more <= bytes_max_ / 2) {
        if (on_way_ != 0 && on_way_ + more > bytes_max_) return {};
        return turn.number;
      }
      peer.aside.push_back(turn);
      ready_.pop_front();
    }
    return {};
  }

  /// The first transfer puts `bytes` in flight. `last`: it has no more.
  void begin(std::uint64_t bytes, bool last) {
    peers_[ready_.front().pe].on_way += bytes;
    on_way_ += bytes;
    if (last) ready_.pop_front();
  }

  /// `bytes` of a PE have arrived. No effect if that PE has none in flight.
  void end(std::size_t pe, std::uint64_t bytes) {
    const auto found = peers_.find(pe);
    if (found == peers_.end()) return;
    Peer& peer = found->second;
    peer.on_way -= bytes;
    on_way_ -= bytes;
    if (!peer.aside.empty()) {
      ready_.push_back(peer.aside.front());
      peer.aside.pop_front();
    } else if (peer.on_way == 0) {
      peers_.erase(found);
    }
  }

  std::uint64_t on_way() const { return on_way_; }

 private:
  struct Turn {
    std::uint64_t number;
    std::size_t pe;
  };
  struct Peer {
    std::uint64_t on_way = 0;
    std::deque<Turn> aside;
  };

  std::uint64_t bytes_max_, on_way_ = 0;
  std::deque<Turn> ready_;
  std::map<std::size_t, Peer> peers_;
};

}  // namespace headway::transfer
