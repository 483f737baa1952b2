/// Detects that no message of a scope is queued, buffered, in flight or being handled, anywhere.
///
/// Four counters (Mattern, "Algorithms for distributed termination detection", 1987): every PE, once it can start
/// nothing in the scope by itself, adds the messages it has created and handled to a wave that climbs a binomial tree.
/// When created equals handled and two waves in a row agree, nothing can have been on its way between them, and PE 0
/// says so down the tree. Each scope has waves of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/scope.hpp>
#include <span>
#include <vector>

namespace headway::am {

class Engine;
class Scopes;

class Quiescence {
 public:
  Quiescence(Engine& engine, Scopes& scopes);

  /// Whether this PE's part of the scope's current wave is due: its children's parts have arrived and its own is not
  /// yet given.
  bool due(ScopeId scope) const { return !waves_[scope].contributed && waves_[scope].children_in == children_.size(); }
  /// Whether it is given, and the verdict has not come.
  bool has_contributed(ScopeId scope) const { return waves_[scope].contributed; }
  /// Gives this PE's part. It has posted the scope's open buffers and can start nothing in it by itself. On PE 0 the
  /// scope may be finished by that.
  void contribute(ScopeId scope);
  /// Adds the PEs whose part of the scope's wave is missing here, or the one that is to tell the verdict.
  void add_waits_for(ScopeId scope, std::vector<std::uint32_t>& pes) const;

 private:
  struct Counts {
    std::uint64_t created = 0, handled = 0, undeliverable = 0;
    bool operator==(const Counts&) const = default;
  };
  struct Wave {
    Counts sum;  // children so far
    Calls calls;
    std::size_t children_in = 0;
    std::uint64_t arrived_children = 0;  // which, bit by index
    bool contributed = false;
    Counts previous;  // PE 0: of the wave before
    bool have_previous = false;
  };
  enum class Verdict : std::uint32_t { again, done, undelivered };
  struct CountsMessage {
    std::uint64_t scope;
    Counts counts;
  };
  struct VerdictMessage {
    Verdict verdict;
    std::uint32_t scope;
    std::uint64_t handled;
  };
  /// With it where there are calls, which is the same on all PEs.
  template <class Message, class More>
  struct With {
    Message message;
    More more;
  };
  using CountsWithCalls = With<CountsMessage, Calls>;
  using VerdictWithCalled = With<VerdictMessage, std::uint64_t>;

  void take_counts(std::size_t source, const CountsMessage& message, const Calls& calls);
  void take_verdict(const VerdictMessage& message, std::uint64_t called_max);
  static Verdict judge(Wave& wave);

  Engine* engine_;
  Scopes* scopes_;
  std::size_t parent_ = 0;
  std::vector<std::size_t> children_;
  std::uint16_t control_counts_ = 0, control_verdict_ = 0;
  // By scope. A child gives its part to an epoch only when it knows that the last one of that number is done, and it
  // has heard so from its parent: parts for two epochs never meet.
  std::vector<Wave> waves_ = std::vector<Wave>(scopes_max);
};

}  // namespace headway::am
