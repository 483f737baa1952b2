/// Elements on their way, and the broadcasts that they have had.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace headway::object {

/// What an insertion takes along.
struct InsertHeader {
  std::uint32_t broadcasts;  // the element gets those of this number and later ones
  std::uint32_t account;     // the PE that counts it as on its way
};

/// One PE's account of the elements of a collection that move, or that are inserted. Such an element may need each
/// broadcast that it has not had, and the PE where it arrives may have run these. So no PE forgets a broadcast that an
/// element of any account may need.
///
/// Where an element arrives, it gets what it has missed, and may insert others meanwhile. The PE that it came to may
/// have told already that it needs no old broadcast. So these insertions are on the account of the PE that the first
/// element is on, which takes them over with the news that this one has arrived: its account never skips a moment.
class Transit {
 public:
  explicit Transit(std::uint32_t pe) : pe_(pe) {}

  /// While one exists, it is the reason for what is inserted: a broadcast that runs, or an element that arrives.
  class Cause {
   public:
    Cause(Transit& transit, std::uint32_t account, std::uint32_t broadcasts)
        : transit_(&transit), account_(account), broadcasts_(broadcasts) {
      transit.cause_ = this;
    }
    Cause(const Cause&) = delete;
    Cause& operator=(const Cause&) = delete;
    ~Cause() { transit_->cause_ = nullptr; }

    /// Elements that are inserted from now on get no broadcast below this number.
    void set(std::uint32_t broadcasts) { broadcasts_ = broadcasts; }
    /// Of those that are on another PE's account: the broadcasts that they have had.
    std::span<const std::uint32_t> inserted() const { return inserted_; }

   private:
    friend class Transit;
    Transit* transit_;
    std::uint32_t account_, broadcasts_;
    std::vector<std::uint32_t> inserted_;
  };

  /// This PE has run so many broadcasts, or an element that has had so many is here.
  void hear(std::uint32_t broadcasts) { heard_ = std::max(heard_, broadcasts); }

  /// An element leaves this PE, which knows by arrived() that it is there.
  void depart(std::uint32_t broadcasts) { add(broadcasts, 1); }
  /// One is inserted from this PE. Without a cause it gets the broadcasts that this PE has not heard of.
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
  /// One has arrived, and has inserted others on this PE's account. News of these may have come before.
  void arrived(std::uint32_t broadcasts, std::span<const std::uint32_t> inserted) {
    for (const std::uint32_t of_another : inserted) add(of_another, 1);
    add(broadcasts, -1);
  }

  /// No element on this account needs broadcasts below this number; nor does one that leaves later, when this PE has
  /// run `run` of them.
  std::uint32_t needed(std::uint32_t run) const {
    return on_their_way_.empty() ? run : std::min(run, on_their_way_.begin()->first);
  }

 private:
  void add(std::uint32_t broadcasts, int elements) {
    const auto at = on_their_way_.try_emplace(broadcasts, 0).first;
    if ((at->second += elements) == 0) on_their_way_.erase(at);
  }

  std::uint32_t pe_;
  std::uint32_t heard_ = 0;
  Cause* cause_ = nullptr;
  std::map<std::uint32_t, std::int64_t> on_their_way_;  // how many have had so many broadcasts
};

}  // namespace headway::object
