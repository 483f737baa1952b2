/// Detects that no message is queued, buffered, in flight or being handled, anywhere.
///
/// Four counters (Mattern, "Algorithms for distributed termination detection", 1987): every PE, once it is in quiesce()
/// and idle, adds the messages it has created and handled to a wave that climbs a binomial tree. When created equals
/// handled and two waves in a row agree, nothing can have been on its way between them, and PE 0 says so down the tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headway::am {

class Engine;

class Quiescence {
 public:
  explicit Quiescence(Engine& engine);

  /// The PE is in quiesce().
  void enter() { done_ = false; }
  /// Whether this PE's part of the current wave is due: its children's parts have arrived and its own is not yet given.
  bool due() const { return !given_ && children_in_ == children_.size(); }
  /// Gives this PE's part. It is idle and has flushed everything.
  void contribute();
  bool done() const { return done_; }
  /// Messages that the world handled between the last two quiescences.
  std::uint64_t handled_between() const { return handled_between_; }

 private:
  struct Counts {
    std::uint64_t created = 0, handled = 0, undeliverable = 0;
    bool operator==(const Counts&) const = default;
  };
  enum class Verdict : std::uint32_t { again, done, undelivered };
  struct VerdictMessage {
    Verdict verdict;
    std::uint32_t reserved;
    std::uint64_t handled;
  };

  void take_counts(std::size_t source, const Counts& counts);
  void take_verdict(const VerdictMessage& message);
  Verdict judge();

  Engine* engine_;
  std::size_t parent_ = 0;
  std::vector<std::size_t> children_;
  std::uint16_t control_counts_ = 0, control_verdict_ = 0;
  Counts sum_;            // of the current wave: children so far
  std::size_t children_in_ = 0;
  bool given_ = false;
  bool done_ = true;
  Counts previous_;       // PE 0: of the wave before
  bool have_previous_ = false;
  std::uint64_t handled_total_ = 0, handled_between_ = 0;
};

}  // namespace headway::am
