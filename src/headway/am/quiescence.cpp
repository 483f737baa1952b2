// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/am/quiescence.hpp>

namespace headway::am {
namespace {

void require_scope(std::uint64_t scope) {
  if (scope >= scopes_max) {
    throw FormatError(fmt::format("its scope is {}, and scopes are 0 to {}", scope, scopes_max - 1));
  }
}

}  // namespace

Quiescence::Quiescence(Engine& engine, Scopes& scopes) : engine_(&engine), scopes_(&scopes) {
  const std::size_t id = engine.id();
  parent_ = id & (id - 1);
  for (std::size_t bit = 1; (id & bit) == 0 && id + bit < engine.size(); bit <<= 1) children_.push_back(id + bit);
  control_counts_ = engine.add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    if (bytes.size() != sizeof(CountsWithCalls)) {
      return take_counts(source, Engine::control_value<CountsMessage>(bytes), {});
    }
    const auto with = Engine::control_value<CountsWithCalls>(bytes);
    take_counts(source, with.message, with.more);
  });
  control_verdict_ = engine.add_control([this](std::size_t source, std::span<const std::byte> bytes) {
    if (engine_->id() == 0) throw FormatError(fmt::format("a verdict from PE {}, and PE 0 receives none", source));
    if (source != parent_) {
      throw FormatError(
          fmt::format("a verdict from PE {}, and PE {} is expected: the parent in the tree", source, parent_));
    }
    const bool with_called = bytes.size() == sizeof(VerdictWithCalled);
    const auto message = with_called ? Engine::control_value<VerdictWithCalled>(bytes).message
                                     : Engine::control_value<VerdictMessage>(bytes);
    require_scope(message.scope);
    if (!waves_[message.scope].contributed) {
      throw FormatError(
          fmt::format("a verdict for scope {}, to whose wave this PE has not contributed", message.scope));
    }
    take_verdict(message, with_called ? Engine::control_value<VerdictWithCalled>(bytes).more : 0);
  });
}

void Quiescence::take_counts(std::size_t source, const CountsMessage& message, const Calls& calls) {
  const auto child = std::size_t(std::ranges::find(children_, source) - children_.begin());
  if (child == children_.size()) {
    throw FormatError(fmt::format("counts from PE {}, and expected are the children in the tree: {} of them", source,
                                  children_.size()));
  }
  require_scope(message.scope);
  Wave& wave = waves_[message.scope];
  if (wave.children_in == children_.size()) {
    throw FormatError(fmt::format("counts for scope {}, for which all {} children have contributed", message.scope,
                                  children_.size()));
  }
  wave.sum.created += message.counts.created;
  wave.sum.handled += message.counts.handled;
  wave.sum.undeliverable += message.counts.undeliverable;
  wave.calls.add(calls);
  ++wave.children_in;
  wave.arrived_children |= std::uint64_t(1) << child;
}

void Quiescence::contribute(ScopeId scope) {
  Wave& wave = waves_[scope];
  wave.sum.created += scopes_->created(scope);
  wave.sum.handled += scopes_->handled(scope);
  wave.sum.undeliverable += engine_->undeliverable_messages(scope);
  wave.calls.add(engine_->calls(scope));
  wave.contributed = true;
  if (engine_->id() != 0) {
    const CountsWithCalls message{{scope, wave.sum}, wave.calls};
    const std::size_t bytes = wave.calls.any() ? sizeof message : sizeof message.message;
    engine_->send_control(parent_, control_counts_, std::as_bytes(std::span(&message, 1)).first(bytes));
    return;
  }
  take_verdict({judge(wave), scope, wave.sum.handled}, wave.calls.called_max);
}

void Quiescence::add_waits_for(ScopeId scope, std::vector<std::uint32_t>& pes) const {
  const Wave& wave = waves_[scope];
  if (wave.contributed) return pes.push_back(std::uint32_t(parent_));
  for (std::size_t child = 0; child < children_.size(); ++child) {
    if ((wave.arrived_children >> child & 1) == 0) pes.push_back(std::uint32_t(children_[child]));
  }
}

Quiescence::Verdict Quiescence::judge(Wave& wave) {
  const bool stable = wave.have_previous && wave.previous == wave.sum;
  wave.previous = wave.sum;
  wave.have_previous = true;
  if (!stable || wave.calls.under_way()) return Verdict::again;
  if (wave.sum.created == wave.sum.handled) {
    wave.have_previous = false;
    return Verdict::done;
  }
  return wave.sum.created == wave.sum.handled + wave.sum.undeliverable ? Verdict::undelivered : Verdict::again;
}

void Quiescence::take_verdict(const VerdictMessage& message, std::uint64_t called_max) {
  if (message.verdict > Verdict::undelivered) {
    throw FormatError(fmt::format("its verdict is {}, and verdicts are 0 to {}", std::uint32_t(message.verdict),
                                  std::uint32_t(Verdict::undelivered)));
  }
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    const VerdictWithCalled with{message, called_max};
    const std::size_t bytes = waves_[message.scope].calls.any() ? sizeof with : sizeof message;
    engine_->send_control(*child, control_verdict_, std::as_bytes(std::span(&with, 1)).first(bytes));
  }
  Wave& wave = waves_[message.scope];
  wave.sum = {};
  wave.calls = {};
  wave.children_in = 0;
  wave.arrived_children = 0;
  wave.contributed = false;
  switch (message.verdict) {
    case Verdict::again: return;
    case Verdict::done:
      if (message.scope == root_scope) engine_->set_calls_made(called_max);
      scopes_->finish(ScopeId(message.scope), message.handled);
      return;
    case Verdict::undelivered: {
      const std::string text = engine_->undelivered(ScopeId(message.scope));
      if (!text.empty()) engine_->fail(report::FailureKind::undelivered, text);
      return;  // another PE holds the undelivered messages, and ends the run
    }
  }
}

}  // namespace headway::am
