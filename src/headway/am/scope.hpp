// SPDX-License-Identifier: BSD-3-Clause
/// A scope is a set of messages that are counted together. The root holds all messages; an epoch holds those sent in
/// it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace headway::am {

/// The same on every PE: 0 is the root, 1 to 63 are epochs. The number of an epoch is reused when it is done.
using ScopeId = std::uint8_t;
inline constexpr ScopeId root_scope = 0;
inline constexpr std::size_t scopes_max = 64;

/// Limit of nested epochs.
inline constexpr std::size_t epochs_nested_max = 32;

/// The scope field of a frame's header:
///
///     bit 7       2        1        0
///         | scope | parity | phase |
///
/// `phase` is the parity of the quiescence phase, `parity` that of the number of uses of the scope's number.
constexpr std::uint8_t scope_tag(ScopeId scope, bool parity, bool phase) {
  return std::uint8_t(scope << 2 | int(parity) << 1 | int(phase));
}
constexpr ScopeId scope_of_tag(std::uint8_t tag) { return ScopeId(tag >> 2); }
constexpr bool phase_of_tag(std::uint8_t tag) { return (tag & 1) != 0; }

struct Scope;

/// Counts of collective calls on one PE, or combined over several; without calls they have neutral values. While
/// unfinished_min < called_min, a call that all PEs have made is not finished.
struct Calls {
  std::uint64_t called_min = ~std::uint64_t(0), called_max = 0;  // number of calls made, in all scopes
  std::uint64_t unfinished_min = ~std::uint64_t(0);              // number of the first unfinished call of the scope

  bool any() const { return called_min != ~std::uint64_t(0); }
  bool under_way() const { return unfinished_min < called_min; }
  void add(const Calls& other) {
    called_min = std::min(called_min, other.called_min);
    called_max = std::max(called_max, other.called_max);
    unfinished_min = std::min(unfinished_min, other.unfinished_min);
  }
};

/// Runs as a handler when an epoch is done. It counts as work of the scope in which it was registered.
struct Continuation {
  std::shared_ptr<Scope> scope;
  std::function<void(std::uint64_t handled)> run;
};

/// A scope as one PE knows it:
///
///     open -- close() --> closed, on this PE -- waves agree --> done, everywhere
struct Scope {
  ScopeId id = root_scope;
  std::shared_ptr<Scope> around;  // outer scope; nullptr: this is the root
  // Messages on this PE. Those of an inner epoch are added when it is done.
  std::uint64_t created = 0, handled = 0;
  std::uint64_t handled_everywhere = 0;  // of an epoch: set when done; of the root: at the last quiescence
  bool made_by_main = true;              // the main program made and closes it; else a continuation
  bool closed = false;
  bool done = false;
  bool active = false;              // handlers have run in it since the last check
  std::uint32_t inner = 0;          // inner epochs that are not done
  std::uint32_t continuations = 0;  // registered and not yet run, and other tasks that keep it open
  std::vector<Continuation> when_done;
};

}  // namespace headway::am
