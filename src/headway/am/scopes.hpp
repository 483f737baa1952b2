/// All scopes of one PE: which frames may be handled, whose messages are counted where, and which epochs are done.
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

/// Numbers. Epochs are numbered in turn from 1 to 63, skipping those of the epochs around the new one: these are the
/// same on every PE, because epochs are made in the same order everywhere, whenever each is done. A PE gives a number
/// again only when its last epoch is done there, so everywhere begun and closed: two epochs of one number that a PE may
/// hear of at the same time differ in parity. Frames of an epoch that has not begun on this PE wait until it begins.
///
/// Waves. A PE's part in the waves of an epoch (Quiescence) is due once it has closed it, all epochs and continuations
/// in it are done, and no handler has run in it for a round; open buffers of the epoch are posted before its counts are
/// read.
class Scopes {
 public:
  explicit Scopes(Engine& engine);

  // --- frames and counts

  std::uint8_t tag(ScopeId scope) const { return tags_[scope]; }
  /// Whether a frame may be handled: it is of this phase, and its epoch has begun.
  bool takes(std::uint8_t tag) const { return tags_[scope_of_tag(tag)] == tag; }
  /// Whether it is of this phase, and of an epoch that has not begun.
  bool awaits_epoch(std::uint8_t tag) const { return !takes(tag) && phase_of_tag(tag) == phase_; }
  Scope& operator[](ScopeId scope) { return *scopes_[scope]; }
  /// Of the root: of all scopes.
  std::uint64_t created(ScopeId scope) const;
  std::uint64_t handled(ScopeId scope) const;

  // --- quiescence

  void enter_quiescence();
  bool quiescent() const { return root_->done; }
  /// Whether the root's next wave waits for this PE.
  bool quiescence_due() const { return closed_ == 0 && quiescence_.due(root_scope); }
  /// Whether other PEs may be in the next phase already: nothing may begin here by itself, without a message.
  bool quiescence_may_end() const { return awaited_ == root_.get() && (root_->done || quiescence_.has_contributed(root_scope)); }
  /// Whether others may know that an epoch is done before this PE does: it has given its part.
  bool awaits_verdict(ScopeId epoch) const { return quiescence_.has_contributed(epoch); }
  void contribute_to_quiescence() { quiescence_.contribute(root_scope); }
  /// Returns how many messages were handled everywhere since the last quiescence.
  std::uint64_t leave_quiescence();

  // --- epochs

  /// The scope that the main program is in, when no handler runs.
  ScopeId of_main_program() const { return main_->id; }
  /// Begins an epoch within the current scope, which it becomes. Collective.
  std::shared_ptr<Scope> begin();
  /// UsageError unless it is the innermost epoch and the caller may close it. Nothing if it is closed.
  void close(Scope& scope);
  /// The same for one that is destroyed, in whatever order.
  void close_destroyed(Scope& scope);
  std::uint64_t wait(Scope& scope);
  void then(const std::shared_ptr<Scope>& scope, std::function<void(std::uint64_t)> run);
  /// Gives this PE's part of the waves of closed epochs, where it is due. Returns whether there were any.
  bool advance();

  /// Adds the PEs without which the scopes that this PE has closed cannot be done.
  void add_waits_for(std::vector<std::uint32_t>& pes) const;

  // --- for Quiescence

  /// The scope's messages have all been handled; since the run began, or in the epoch, so many.
  void finish(ScopeId scope, std::uint64_t handled);

 private:
  ScopeId next_number(const Scope& around);
  void set_tag(ScopeId scope);
  /// Whether the main program can do nothing before the scope is done.
  bool main_program_waits_for(ScopeId scope) const;
  bool may_contribute(ScopeId scope);
  void end(Scope& scope);
  void run_later(Continuation continuation, std::uint64_t handled);

  Engine* engine_;
  Quiescence quiescence_;
  std::shared_ptr<Scope> root_, main_;
  // By number. nullptr: no epoch has it.
  std::vector<std::shared_ptr<Scope>> scopes_ = std::vector<std::shared_ptr<Scope>>(scopes_max);
  std::array<std::uint8_t, scopes_max> tags_{};  // of the frames that may be handled; 0: of none, except for the root
  std::uint64_t parities_ = 0;                   // bit by number
  std::uint64_t closed_ = 0;                     // closed and not done, bit by number
  ScopeId last_number_ = 0;
  bool phase_ = false;
  const Scope* awaited_ = nullptr;
  std::uint64_t handled_before_ = 0;  // everywhere, as of the last quiescence but one
};

}  // namespace headway::am
