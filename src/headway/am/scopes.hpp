// SPDX-License-Identifier: BSD-3-Clause
/// All scopes of one PE: which frames may be handled, where messages are counted, and which epochs are done.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/am/quiescence.hpp>
#include <headway/am/scope.hpp>
#include <memory>
#include <vector>

namespace headway::am {

class Engine;

/// Numbers: epochs are numbered in turn from 1 to 63, skipping the numbers of outer epochs. Numbers are equal on
/// every PE, because every PE makes epochs in the same order. A PE reuses a number only after its last epoch is done
/// there; then every PE has begun and closed that epoch. Two epochs of one number that a PE may know at the same time
/// therefore differ in parity. Frames of an epoch that has not begun on this PE wait until it begins.
///
/// Waves: a PE contributes to the waves of an epoch (Quiescence) once it has closed the epoch, all inner epochs and
/// continuations are done, and no handler has run in it for a round. It posts open buffers of the epoch before its
/// counts are read.
class Scopes {
 public:
  explicit Scopes(Engine& engine);

  // --- frames and counts

  std::uint8_t tag(ScopeId scope) const { return tags_[scope]; }
  /// Whether a frame may be handled: it is of the current phase, and its epoch has begun.
  bool takes(std::uint8_t tag) const { return tags_[scope_of_tag(tag)] == tag; }
  /// Whether a frame is of the current phase, and its epoch has not begun.
  bool awaits_epoch(std::uint8_t tag) const { return !takes(tag) && phase_of_tag(tag) == phase_; }
  Scope& operator[](ScopeId scope) { return *scopes_[scope]; }
  /// Messages of the scope on this PE; for the root those of all scopes.
  std::uint64_t created(ScopeId scope) const;
  std::uint64_t handled(ScopeId scope) const;

  // --- quiescence

  void enter_quiescence();
  bool quiescent() const { return root_->done; }
  /// Whether this PE should contribute to the root's next wave.
  bool quiescence_due() const { return closed_ == 0 && quiescence_.due(root_scope); }
  /// Whether other PEs may already be in the next phase. Then this PE must start no work without a message.
  bool quiescence_may_end() const {
    return awaited_ == root_.get() && (root_->done || quiescence_.has_contributed(root_scope));
  }
  /// Whether this PE has contributed to the epoch's wave: other PEs may know before it that the epoch is done.
  bool awaits_verdict(ScopeId epoch) const { return quiescence_.has_contributed(epoch); }
  void contribute_to_quiescence() { quiescence_.contribute(root_scope); }
  /// Returns the number of messages that all PEs have handled since the last quiescence.
  std::uint64_t leave_quiescence();

  // --- epochs

  /// The scope of the main program, when no handler runs.
  ScopeId of_main_program() const { return main_->id; }
  /// Begins an inner epoch of the current scope, and makes it the current one. Collective.
  std::shared_ptr<Scope> begin();
  /// Closes the innermost epoch. Does nothing if it is closed. UsageError if it is not the innermost one, or the
  /// caller may not close it.
  void close(Scope& scope);
  /// close() for an epoch that is destroyed, in any order.
  void close_destroyed(Scope& scope);
  std::uint64_t wait(Scope& scope);
  void then(const std::shared_ptr<Scope>& scope, std::function<void(std::uint64_t)> run);
  /// Contributes to waves of closed epochs where this PE should. Returns whether there were any.
  bool advance();

  /// Adds the PEs that delay the end of scopes that this PE has closed.
  void add_waits_for(std::vector<std::uint32_t>& pes) const;

  // --- for Quiescence

  /// All messages of the scope have been handled. `handled`: of the epoch, or for the root since the run began.
  void finish(ScopeId scope, std::uint64_t handled);

 private:
  ScopeId next_number(const Scope& around);
  void set_tag(ScopeId scope);
  /// Whether the main program waits for the scope, directly or through an outer epoch.
  bool main_program_waits_for(ScopeId scope) const;
  bool may_contribute(ScopeId scope);
  void end(Scope& scope);
  void run_later(Continuation continuation, std::uint64_t handled);

  Engine* engine_;
  Quiescence quiescence_;
  std::shared_ptr<Scope> root_, main_;
  // By number. nullptr: not in use.
  std::vector<std::shared_ptr<Scope>> scopes_ = std::vector<std::shared_ptr<Scope>>(scopes_max);
  std::array<std::uint8_t, scopes_max> tags_{};  // tags of frames that may be handled; 0: none, except for the root
  std::uint64_t parities_ = 0;                   // bit by number
  std::uint64_t closed_ = 0;                     // closed and not done, bit by number
  ScopeId last_number_ = 0;
  bool phase_ = false;
  const Scope* awaited_ = nullptr;
  std::uint64_t handled_before_ = 0;  // by all PEs, at the quiescence before the last
};

}  // namespace headway::am
