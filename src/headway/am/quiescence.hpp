// SPDX-License-Identifier: BSD-3-Clause
/// Detects that no message of a scope is queued, buffered, in flight or being handled on any PE.
///
/// Four counters (Mattern, "Algorithms for distributed termination detection", 1987): when a PE can start no work in
/// the scope by itself, it adds its counts of created and handled messages to a wave that climbs a binomial tree. If
/// created equals handled, and two consecutive waves agree, no message was in flight between them. PE 0 then sends
/// the verdict down the tree. Each scope has its own waves.
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

  /// Whether this PE should contribute to the scope's current wave: its children have contributed, and it has not.
  bool due(ScopeId scope) const { return !waves_[scope].contributed && waves_[scope].children_in == children_.size(); }
  /// Whether it has contributed, and the verdict has not arrived.
  bool has_contributed(ScopeId scope) const { return waves_[scope].contributed; }
  /// Contributes this PE's counts. The caller has posted the scope's open buffers, and can start no work in the scope
  /// by itself. On PE 0 this may finish the scope.
  void contribute(ScopeId scope);
  /// Adds the PEs from which this PE awaits a contribution or the verdict.
  void add_waits_for(ScopeId scope, std::vector<std::uint32_t>& pes) const;

 private:
  struct Counts {
    std::uint64_t created = 0, handled = 0, undeliverable = 0;
    bool operator==(const Counts&) const = default;
  };
  struct Wave {
    Counts sum;  // of the children that have contributed
    Calls calls;
    std::size_t children_in = 0;
    std::uint64_t arrived_children = 0;  // bit by index of the child
    bool contributed = false;
    Counts previous;  // PE 0: sum of the previous wave
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
  /// `more` is sent only if calls exist, which is the same on all PEs.
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
  // By scope. Contributions for two epochs with one number never meet: a child contributes to an epoch only after the
  // verdict of the last epoch with that number, which its parent sent.
  std::vector<Wave> waves_ = std::vector<Wave>(scopes_max);
};

}  // namespace headway::am
