// SPDX-License-Identifier: BSD-3-Clause
/// Elements in transit between PEs, and the broadcasts that they may still need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace headway::object {

/// Precedes the arguments of an insertion.
struct InsertHeader {
  std::uint32_t broadcasts;  // number of the first broadcast that the element runs
  std::uint32_t account;     // the PE that counts the element as in transit
};

/// The elements that one PE counts as in transit: they move, or are inserted. Such an element may need each broadcast
/// that it has not run, and the PE where it arrives may have run them already. So a PE keeps a broadcast while any PE
/// counts an element that may need it.
///
/// An element that arrives runs the broadcasts that it has missed, and may insert other elements meanwhile. The PE of
/// its arrival may already have reported that it needs no old broadcast, so it cannot count these insertions. The PE
/// that counts the first element counts them too: the message that tells it of the arrival names them. So no moment
/// passes in which no PE counts them.
class Transit {
 public:
  explicit Transit(std::uint32_t pe) : pe_(pe) {}

  /// Exists while a broadcast runs or an element arrives. Elements that are inserted meanwhile are inserted by it.
  class Cause {
   public:
    Cause(Transit& transit, std::uint32_t account, std::uint32_t broadcasts)
        : transit_(&transit), account_(account), broadcasts_(broadcasts) {
      transit.cause_ = this;
    }
    Cause(const Cause&) = delete;
    Cause& operator=(const Cause&) = delete;
    ~Cause() { transit_->cause_ = nullptr; }

    /// Elements that are inserted from now on run the broadcasts of this number and later ones.
    void set(std::uint32_t broadcasts) { broadcasts_ = broadcasts; }
    /// For each inserted element that another PE counts: the number of its first broadcast.
    std::span<const std::uint32_t> inserted() const { return inserted_; }

   private:
    friend class Transit;
    Transit* transit_;
    std::uint32_t account_, broadcasts_;
    std::vector<std::uint32_t> inserted_;
  };

  /// This PE has run `broadcasts` broadcasts, or an element that has run them is here.
  void hear(std::uint32_t broadcasts) { heard_ = std::max(heard_, broadcasts); }

  /// An element leaves this PE. arrived() tells that its transit has ended.
  void depart(std::uint32_t broadcasts) { add(broadcasts, 1); }
  /// This PE inserts an element. Without a cause the element runs the broadcasts of which this PE has not heard.
  InsertHeader insert() {
    if (cause_ == nullptr) {
      add(heard_, 1);
      return {heard_, pe_};
    }
    if (cause_->account_ == pe_)
      add(cause_->broadcasts_, 1);
    else
      cause_->inserted_.push_back(cause_->broadcasts_);
    return {cause_->broadcasts_, cause_->account_};
  }
  /// An element that this PE counts has arrived, and has inserted others. News of their arrival may have come before.
  void arrived(std::uint32_t broadcasts, std::span<const std::uint32_t> inserted) {
    for (const std::uint32_t of_another : inserted) add(of_another, 1);
    add(broadcasts, -1);
  }

  /// The smallest number of a broadcast that an element counted here may need. `run`: the broadcasts that this PE has
  /// run; an element that leaves later has run them.
  std::uint32_t needed(std::uint32_t run) const {
    return in_transit_.empty() ? run : std::min(run, in_transit_.begin()->first);
  }

 private:
  void add(std::uint32_t broadcasts, int elements) {
    const auto at = in_transit_.try_emplace(broadcasts, 0).first;
    if ((at->second += elements) == 0) in_transit_.erase(at);
  }

  std::uint32_t pe_;
  std::uint32_t heard_ = 0;
  Cause* cause_ = nullptr;
  std::map<std::uint32_t, std::int64_t> in_transit_;  // elements, by number of their next broadcast
};

}  // namespace headway::object
