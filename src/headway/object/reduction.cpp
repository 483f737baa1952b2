// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/object/messages.hpp>
#include <headway/object/reduction.hpp>

namespace headway::object {

void throw_size_unknown() {
  throw UsageError(
      "a reduction over a sparse array needs its size, which insert() and erase() have changed: call done_inserting() "
      "on all PEs");
}

void throw_not_counted() {
  throw UsageError(
      "contribute(): the sparse array does not count this element, which was inserted after the last done_inserting(): "
      "call "
      "done_inserting() on all PEs after insert()");
}

void throw_nothing_to_reduce() {
  throw UsageError("reduce(): the collection or section has 0 elements: at least 1 is needed");
}

Reductions::Reductions(CallAggregator& calls, std::function<std::size_t(std::uint64_t)> local_size)
    : calls_(&calls),
      local_size_(std::move(local_size)),
      number_(calls.pe().engine().add_handler(*this)),
      me_(calls.pe(), this) {}

Reductions::~Reductions() {
  am::Engine& engine = calls_->pe().engine();
  if (engine.id() != 0) engine.count_open_buffers(-int(partials_.size()));
  engine.remove_handler(number_);
}

std::unique_ptr<Partial>& Reductions::partial_at(ReductionId id, const void* type) {
  const am::Engine& engine = calls_->pe().engine();
  auto at = partials_.find(id);
  if (at != partials_.end() && engine.id() != 0 && at->second->scope != engine.scope()) {
    send_up(at);  // values of different epochs do not share a message
    at = partials_.end();
  }
  if (at == partials_.end()) return partials_[id];
  if (at->second->type != type) {
    throw UsageError(
        fmt::format("elements contribute values, operators or targets of different types to reduction number {}: "
                    "each element must contribute to the same reductions in the same order",
                    id.number));
  }
  return at->second;
}

void Reductions::begin(Partial& partial) {
  am::Engine& engine = calls_->pe().engine();
  partial.scope = engine.scope();
  if (engine.id() != 0) engine.count_open_buffers(1);
}

void Reductions::add_count(ReductionId id, std::uint64_t count, bool own) {
  const auto at = partials_.find(id);
  Partial& partial = *at->second;
  partial.count += count;
  if (own) partial.own += count;
  Pe& pe = calls_->pe();
  if (pe.id() == 0) {
    if (partial.count < partial.total) return;
    const std::unique_ptr<Partial> whole = std::move(at->second);
    partials_.erase(at);
    if (whole->count > whole->total) {
      throw UsageError(fmt::format("{} contributed to a reduction over {}: call done_inserting() after insert()",
                                   base::counted(whole->count, "element"), whole->total));
    }
    whole->finish(pe);
    return;
  }
  FromBelow& below = from_below_[id.stream];
  if (id.number > below.number) below = {id.number, 0, below.now};
  if (!own && id.number == below.number) below.now += count;
  if (partial.own >= local_size_(id.stream) && partial.count - partial.own >= below.before) send_up(at);
}

Reductions::Partials::iterator Reductions::send_up(Partials::iterator at) {
  am::Engine& engine = calls_->pe().engine();
  const std::unique_ptr<Partial> partial = std::move(at->second);
  const ReductionId id = at->first;
  at = partials_.erase(at);
  engine.count_open_buffers(-1);
  const am::ScopeId scope = engine.scope();
  if (scope != partial->scope) engine.enter_scope(partial->scope);
  partial->send(*calls_, engine.id() & (engine.id() - 1), me_, id);
  if (scope != partial->scope) engine.enter_scope(scope);
  return at;
}

void Reductions::send_later(am::ScopeId scope) {
  calls_->pe().engine().run_later(scope, [this, scope] {
    for (auto at = partials_.begin(); at != partials_.end();)
      at = at->second->scope == scope ? send_up(at) : std::next(at);
  });
}

bool Reductions::flush_open(am::FlushReason) {
  if (partials_.empty() || calls_->pe().id() == 0) return false;
  std::vector<am::ScopeId> scopes;
  for (const auto& [id, partial] : partials_) {
    if (std::ranges::find(scopes, partial->scope) == scopes.end()) scopes.push_back(partial->scope);
  }
  for (const am::ScopeId scope : scopes) send_later(scope);
  return true;
}

bool Reductions::flush_scope(am::ScopeId scope, am::FlushReason) {
  if (calls_->pe().id() == 0) return false;
  for (const auto& [id, partial] : partials_) {
    if (partial->scope != scope) continue;
    send_later(scope);
    return true;
  }
  return false;
}

am::FrameHandler::Result Reductions::handle(const transport::Arrival& arrival, std::uint32_t&) {
  calls_->pe().engine().refuse(arrival, "no frame is allowed: reductions send calls");
}

}  // namespace headway::object
