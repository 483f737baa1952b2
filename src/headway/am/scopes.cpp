// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <bit>
#include <headway/am/engine.hpp>
#include <headway/am/scopes.hpp>
#include <headway/base/error.hpp>
#include <utility>

namespace headway::am {
namespace {

constexpr std::uint64_t bit(ScopeId scope) { return std::uint64_t(1) << scope; }

}  // namespace

Scopes::Scopes(Engine& engine)
    : engine_(&engine), quiescence_(engine, *this), root_(std::make_shared<Scope>()), main_(root_) {
  scopes_[root_scope] = root_;
}

void Scopes::set_tag(ScopeId scope) { tags_[scope] = scope_tag(scope, (parities_ & bit(scope)) != 0, phase_); }

std::uint64_t Scopes::created(ScopeId scope) const {
  if (scope != root_scope) return scopes_[scope]->created;
  std::uint64_t sum = 0;
  for (const auto& s : scopes_) sum += s != nullptr ? s->created : 0;
  return sum;
}

std::uint64_t Scopes::handled(ScopeId scope) const {
  if (scope != root_scope) return scopes_[scope]->handled;
  std::uint64_t sum = 0;
  for (const auto& s : scopes_) sum += s != nullptr ? s->handled : 0;
  return sum;
}

void Scopes::add_waits_for(std::vector<std::uint32_t>& pes) const {
  for (std::size_t id = 1; id < scopes_max; ++id) {
    if ((closed_ >> id & 1) != 0) quiescence_.add_waits_for(ScopeId(id), pes);
  }
  if (closed_ == 0 && awaited_ == root_.get()) quiescence_.add_waits_for(root_scope, pes);
}

bool Scopes::main_program_waits_for(ScopeId id) const {
  const Scope* scope = scopes_[id].get();
  while (scope != nullptr && scope != awaited_) scope = scope->around.get();
  return scope != nullptr && !scope->done;
}

// --- quiescence

void Scopes::enter_quiescence() {
  root_->done = false;
  awaited_ = root_.get();
}

std::uint64_t Scopes::leave_quiescence() {
  awaited_ = nullptr;
  phase_ = !phase_;
  for (std::size_t scope = 0; scope < scopes_max; ++scope) {
    if (scopes_[scope] != nullptr) set_tag(ScopeId(scope));
  }
  return root_->handled_everywhere - std::exchange(handled_before_, root_->handled_everywhere);
}

void Scopes::finish(ScopeId id, std::uint64_t handled) {
  const std::shared_ptr<Scope> scope = scopes_[id];
  scope->done = true;
  scope->handled_everywhere = handled;
  if (id == root_scope) return;
  scopes_[id] = nullptr;
  tags_[id] = 0;
  closed_ &= ~bit(id);
  Scope& around = *scope->around;
  around.created += scope->created;
  around.handled += scope->handled;
  --around.inner;
  for (Continuation& continuation : std::exchange(scope->when_done, {})) run_later(std::move(continuation), handled);
}

// --- epochs

ScopeId Scopes::next_number(const Scope& around) {
  std::uint64_t taken = 0;
  for (const Scope* scope = &around; scope->id != root_scope; scope = scope->around.get()) taken |= bit(scope->id);
  if (std::size_t(std::popcount(taken)) >= epochs_nested_max) {
    throw UsageError(fmt::format("more than {} nested epochs on PE {}: end inner epochs before making more",
                                 epochs_nested_max, engine_->id()));
  }
  do last_number_ = ScopeId(last_number_ % (scopes_max - 1) + 1);
  while ((taken & bit(last_number_)) != 0);
  return last_number_;
}

std::shared_ptr<Scope> Scopes::begin() {
  if (engine_->in_handler() && !engine_->in_continuation()) {
    throw UsageError(
        "an Epoch made inside a handler: epochs are collective, so only the main program and continuations of epochs "
        "may make them");
  }
  const std::shared_ptr<Scope> around = scopes_[engine_->scope()];
  const ScopeId id = next_number(*around);
  if (scopes_[id] != nullptr) {
    if (engine_->in_handler()) {
      throw UsageError(fmt::format(
          "a continuation on PE {} makes an epoch while an epoch is not done that began {} epochs before: a "
          "continuation cannot wait for it; keep fewer epochs open",
          engine_->id(), scopes_max - 1));
    }
    engine_->wait_until([&] { return scopes_[id] == nullptr; }, report::Phase::epoch);
  }
  auto scope = std::make_shared<Scope>();
  scope->id = id;
  scope->around = around;
  scope->made_by_main = !engine_->in_handler();
  ++around->inner;
  scopes_[id] = scope;
  parities_ ^= bit(id);
  set_tag(id);
  if (scope->made_by_main) main_ = scope;
  engine_->enter_scope(id);
  engine_->scope_began();
  return scope;
}

void Scopes::close(Scope& scope) {
  if (scope.closed) return;
  if (scope.made_by_main == engine_->in_handler()) {
    throw UsageError(scope.made_by_main
                         ? "an epoch of the main program is ended inside a handler: the main program ends it"
                         : "an epoch made in a continuation is ended by the main program: a continuation ends it");
  }
  if (engine_->scope() != scope.id) {
    throw UsageError(
        fmt::format("epoch number {} is ended while the inner epoch number {} is open: inner epochs end first",
                    scope.id, engine_->scope()));
  }
  end(scope);
}

void Scopes::close_destroyed(Scope& scope) {
  if (!scope.closed) end(scope);
}

void Scopes::end(Scope& scope) {
  scope.closed = true;
  scope.active = false;
  closed_ |= bit(scope.id);
  while (main_->closed) main_ = main_->around;
  if (engine_->scope() != scope.id) return;
  // Outer epochs may have been destroyed before.
  const Scope* around = scope.around.get();
  while (around->closed && around->id != engine_->handler_scope()) around = around->around.get();
  engine_->enter_scope(around->id);
}

std::uint64_t Scopes::wait(Scope& scope) {
  engine_->require_may_block(report::Phase::epoch);
  close(scope);
  if (!scope.done) {
    engine_->flush_scope(scope.id, FlushReason::requested);
    awaited_ = &scope;
    engine_->wait_until([&] { return scope.done; }, report::Phase::epoch);
    awaited_ = nullptr;
  }
  return scope.handled_everywhere;
}

void Scopes::then(const std::shared_ptr<Scope>& scope, std::function<void(std::uint64_t)> run) {
  close(*scope);
  const std::shared_ptr<Scope>& current = scopes_[engine_->scope()];
  for (const Scope* around = current.get(); around != nullptr; around = around->around.get()) {
    if (around == scope.get()) {
      throw UsageError("a handler of an epoch waits for the end of that epoch, which would never be done");
    }
  }
  ++current->continuations;
  Continuation continuation{current, std::move(run)};
  if (scope->done)
    run_later(std::move(continuation), scope->handled_everywhere);
  else
    scope->when_done.push_back(std::move(continuation));
}

void Scopes::run_later(Continuation continuation, std::uint64_t handled) {
  const ScopeId scope = continuation.scope->id;
  engine_->run_continuation_later(scope, [continuation = std::move(continuation), handled] {
    continuation.run(handled);
    --continuation.scope->continuations;
  });
}

/// Waves that cannot succeed are not started: their messages would fill the inboxes that missing messages need.
bool Scopes::may_contribute(ScopeId id) {
  Scope& scope = *scopes_[id];
  if (std::exchange(scope.active, false) || scope.inner != 0 || scope.continuations != 0) return false;
  if (!quiescence_.due(id) || engine_->store().queued(id) || engine_->has_paused(id)) return false;
  if (engine_->held_back(id)) return false;
  // While the main program runs, it may still make the handler or object that messages wait for.
  return main_program_waits_for(id) || engine_->undeliverable_messages(id) == 0;
}

bool Scopes::advance() {
  bool any = false;
  for (std::uint64_t left = closed_; left != 0; left &= left - 1) {
    const auto id = ScopeId(std::countr_zero(left));
    if (!may_contribute(id)) continue;
    engine_->flush_scope(id, FlushReason::requested);
    quiescence_.contribute(id);
    any = true;
  }
  return any;
}

}  // namespace headway::am
