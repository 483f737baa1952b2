// SPDX-License-Identifier: BSD-3-Clause
/// Waits for a condition that a handler makes true.
#pragma once

#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <utility>

namespace headway {

/// Runs handlers until done() is true; handlers of this PE change the data that done() reads. Unlike a loop over
/// progress(), it posts open buffers when the PE is idle, and sleeps when nothing moves. UsageError in a handler, and
/// while handlers are deferred.
template <class Done>
void wait_until(Pe& pe, Done done) {
  pe.engine().wait_until(std::move(done), report::Phase::condition);
}

}  // namespace headway
