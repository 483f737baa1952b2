/// Whose turn it is to put something on its way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace headway::transfer {

/// Transfers by their numbers, first come first served. On their way are at most `bytes_max` of all, and half of that
/// of one PE, so that one which is silent holds up its own alone; but one of any length where nothing is on its way.
///
///     add ──> ready ──begin──> on its way ──end──> gone
///               │  ∧
///               v  │  something of the same PE ends
///              aside: its PE has as much as it may
class Turns {
 public:
  explicit Turns(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  void add(std::uint64_t number, std::size_t pe) { ready_.push_back({number, pe}); }

  /// The one that may go on now, by bytes(number) that it would put on its way; it is first until begin() or end().
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

  /// It puts these on their way; with `last` it has no more.
  void begin(std::uint64_t bytes, bool last) {
    peers_[ready_.front().pe].on_way += bytes;
    on_way_ += bytes;
    if (last) ready_.pop_front();
  }

  /// These of a PE's have come; nothing happens where none are on their way.
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
