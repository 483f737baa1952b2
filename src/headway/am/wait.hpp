/// Waiting for what a handler does.
#pragma once

#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <utility>

namespace headway {

/// Runs handlers until done() holds, which reads what handlers of this PE change. Posts open buffers when there is
/// nothing else to do, and sleeps when nothing moves, unlike a loop over progress(). UsageError in a handler or while
/// handlers are deferred.
template <class Done>
void wait_until(Pe& pe, Done done) {
  pe.engine().wait_until(std::move(done), report::Phase::condition);
}

}  // namespace headway
