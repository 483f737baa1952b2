/// How members of a blocking call learn that all have come, where they share memory: no lock, and who waits may sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace headway::collective {

/// Members meet in round after round, from 1 on. Each has two slots, used in turn, in which it leaves what it brings
/// and then the number of the round; and a flag, with which it asks for word before it sleeps:
///
///     bring to slot(round) -> arrive() -> all_have_arrived()? -- yes: tell() all that asked; read all slots; go
///                                           | no
///                                       ask() -> all_have_arrived()? -- yes: go       (else who comes last sees the
///                                       flag)
///                                           | no: sleep until word comes, and look again
///
/// A member is in the next round but one only when all are in the next one, and so have read its slot of this one.
///
/// `Places` has round(member, slot) and asks(member), atomics, and size(). A template over it, so that tests explore
/// this very code.
template <class Places>
class BasicMeeting {
 public:
  static constexpr std::size_t slot(std::uint64_t round) { return round % 2; }

  BasicMeeting(Places& places, std::size_t me) : places_(&places), me_(me) {}

  /// What this member brings is in its slot. Sequentially consistent, as are the looks: of two that write and then look
  /// at what the other has written, one at least sees it. So the last to come sees all, and who has asked.
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

  /// Who finds all there as soon as it has come calls tell(member) for those that may be asleep.
  template <class Tell>
  void tell_who_asks(Tell tell) const {
    for (std::size_t member = 0; member < places_->size(); ++member) {
      if (member != me_ && places_->asks(member).load(std::memory_order_seq_cst) != 0) tell(member);
    }
  }

  /// Before it sleeps; it looks once more then.
  void ask() { places_->asks(me_).store(1, std::memory_order_seq_cst); }
  void stop_asking() { places_->asks(me_).store(0, std::memory_order_relaxed); }

 private:
  Places* places_;
  std::size_t me_;
};

}  // namespace headway::collective
