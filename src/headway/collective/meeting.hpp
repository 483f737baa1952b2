// SPDX-License-Identifier: BSD-3-Clause
/// How members of a blocking call in shared memory find that all have arrived. No lock; a waiting member may sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace headway::collective {

/// Members meet in rounds, numbered from 1. Each member has two slots, used in turn: it writes its value there, and
/// then the number of the round. It also has a flag, with which it asks to be woken before it sleeps:
///
///     value to slot(round) -> arrive() -> all_have_arrived()? -- yes: tell() all that asked; read all slots; continue
///                                               | no
///                                           ask() -> all_have_arrived()? -- yes: continue  (else the last sees the
///                                           flag)
///                                               | no: sleep until woken, and look again
///
/// A member is two rounds ahead only when all others are one round ahead, and so have read its slot of this round.
///
/// `Places` has round(member, slot) and asks(member), atomics, and size(). A template over it, so that tests explore
/// this very code.
template <class Places>
class BasicMeeting {
 public:
  static constexpr std::size_t slot(std::uint64_t round) { return round % 2; }

  BasicMeeting(Places& places, std::size_t me) : places_(&places), me_(me) {}

  /// The value is in this member's slot. Sequentially consistent, as are the loads of others: of two members that each
  /// store and then load the other's, at least one sees the store. So the last to arrive sees all rounds and all
  /// flags.
  void arrive(std::uint64_t round) { places_->round(me_, slot(round)).store(round, std::memory_order_seq_cst); }

  bool has_arrived(std::size_t member, std::uint64_t round) const {
    return places_->round(member, slot(round)).load(std::memory_order_seq_cst) == round;
  }
  bool all_have_arrived(std::uint64_t round) const {
    for (std::size_t member = 0; member < places_->size(); ++member) {
      if (!has_arrived(member, round)) return false;
    }
    return true;
  }

  /// For the member that finds on its arrival that all have arrived: calls tell(member) for those that may sleep.
  template <class Tell>
  void tell_who_asks(Tell tell) const {
    for (std::size_t member = 0; member < places_->size(); ++member) {
      if (member != me_ && places_->asks(member).load(std::memory_order_seq_cst) != 0) tell(member);
    }
  }

  /// Before this member sleeps; it then looks once more.
  void ask() { places_->asks(me_).store(1, std::memory_order_seq_cst); }
  void stop_asking() { places_->asks(me_).store(0, std::memory_order_relaxed); }

 private:
  Places* places_;
  std::size_t me_;
};

}  // namespace headway::collective
