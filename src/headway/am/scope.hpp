/// Scopes: messages that are counted together. The root holds all messages; an epoch those that were sent in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace headway::am {

/// The same on every PE: 0 is the root, the others are epochs. An epoch's number is given again once it is done.
using ScopeId = std::uint8_t;
inline constexpr ScopeId root_scope = 0;
inline constexpr std::size_t scopes_max = 64;

/// How many epochs may be open within one another.
inline constexpr std::size_t epochs_nested_max = 32;

/// What a frame's header says about the scope of its messages:
///
///     bit 7       2        1        0
///         | scope | parity | phase |
///
/// `phase` is the parity of the quiescence phase, `parity` that of how often the scope's number has been given.
constexpr std::uint8_t scope_tag(ScopeId scope, bool parity, bool phase) {
  return std::uint8_t(scope << 2 | int(parity) << 1 | int(phase));
}
constexpr ScopeId scope_of_tag(std::uint8_t tag) { return ScopeId(tag >> 2); }
constexpr bool phase_of_tag(std::uint8_t tag) { return (tag & 1) != 0; }

struct Scope;

/// Calls that all PEs make in the same order, of one PE or of several; those without any have the neutral values. While
/// unfinished_min < called_min one that all have called is under way.
struct Calls {
  std::uint64_t called_min = ~std::uint64_t(0), called_max = 0;  // how many it has made: of all scopes
  std::uint64_t unfinished_min = ~std::uint64_t(0);  // the first one that is not over, of those called in the scope

  bool any() const { return called_min != ~std::uint64_t(0); }
  bool under_way() const { return unfinished_min < called_min; }
  void add(const Calls& other) {
    called_min = std::min(called_min, other.called_min);
    called_max = std::max(called_max, other.called_max);
    unfinished_min = std::min(unfinished_min, other.unfinished_min);
  }
};

/// What runs, as a handler, when an epoch is done. It counts as work of the scope in which it was registered.
struct Continuation {
  std::shared_ptr<Scope> scope;
  std::function<void(std::uint64_t handled)> run;
};

/// A scope as one PE knows it:
///
///     open -- close() --> closed, on this PE -- waves agree --> done, everywhere
struct Scope {
  ScopeId id = root_scope;
  std::shared_ptr<Scope> around;  // nullptr: this is the root
  // Messages, on this PE; those of an epoch within it are added once that is done.
  std::uint64_t created = 0, handled = 0;
  std::uint64_t handled_everywhere = 0;  // of an epoch that is done; of the root as of the last quiescence
  bool made_by_main = true;                   // made by the main program, which closes it; else in a continuation
  bool closed = false;
  bool done = false;
  bool active = false;              // handlers have run in it since the last look
  std::uint32_t inner = 0;          // epochs within it that are not done
  std::uint32_t continuations = 0;  // registered in it, and not run yet; and what else keeps it open
  std::vector<Continuation> when_done;
};

}  // namespace headway::am
