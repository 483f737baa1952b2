// SPDX-License-Identifier: BSD-3-Clause
#include <headway/am/engine.hpp>
#include <headway/am/epoch.hpp>
#include <headway/base/error.hpp>
#include <utility>

namespace headway {

Epoch::Epoch(Pe& pe) : engine_(&pe.engine()), scope_(engine_->scopes().begin()) {}

Epoch::~Epoch() {
  // A closed epoch may outlive its run.
  if (!scope_->closed && !engine_->has_failed()) engine_->scopes().close_destroyed(*scope_);
}

void Epoch::close() { engine_->scopes().close(*scope_); }
std::uint64_t Epoch::wait() { return engine_->scopes().wait(*scope_); }
bool Epoch::done() const { return scope_->done; }

std::uint64_t Epoch::handled() const {
  if (!scope_->done) throw UsageError("handled() of an epoch that is not done: call wait(), or check done() before");
  return scope_->handled_everywhere;
}

void Epoch::then(std::function<void(std::uint64_t)> continuation) {
  engine_->scopes().then(scope_, std::move(continuation));
}

}  // namespace headway
