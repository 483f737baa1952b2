// SPDX-License-Identifier: BSD-3-Clause
// How a PE waits for a condition, and for quiescence.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <headway/am/engine.hpp>
#include <headway/base/error.hpp>
#include <headway/transport/count/endpoint.hpp>
#include <headway/transport/observer.hpp>

namespace headway::am {
namespace {

// An immediate answer arrives sooner than the processor's pause instruction ends.
constexpr unsigned eager_rounds = 128;
// A PE spins this long after a sleep shorter than this. Else two PEs that answer each other would both pay for sleep
// and wake each time.
constexpr std::int64_t spin_ns_max = 1'000'000;
constexpr unsigned yields_when_oversubscribed = 4;
// A receiver that frees a cell of its inbox wakes no sender, so the sender polls.
constexpr std::int64_t sleep_ns_polling = 200'000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

const char* name_of(report::Phase what) {
  switch (what) {
    case report::Phase::sending: return "a send that waits";
    case report::Phase::quiescing: return "quiesce()";
    case report::Phase::collective: return "a blocking collective";
    case report::Phase::epoch: return "the wait() of an epoch";
    case report::Phase::condition: return "wait_until()";
    case report::Phase::future: return "a wait for a future";
    default: return "progress()";
  }
}

}  // namespace

void Engine::require_may_block(report::Phase what) const {
  if (in_handler_) {
    throw UsageError(fmt::format(
        "{} inside a handler: a handler may not wait; send a message and continue in its handler", name_of(what)));
  }
  if (deferrals_ != 0) {
    throw UsageError(fmt::format(
        "{} while handlers are deferred: it would wait forever; destroy the DeferHandlers before", name_of(what)));
  }
}

void Engine::publish_counts() {
  board_->created.store(scopes_.created(root_scope), std::memory_order_relaxed);
  board_->handled.store(scopes_.handled(root_scope), std::memory_order_relaxed);
  board_->held_frames.store(store_.queued_frames() + paused_frames_ + early_.size() + later_.size(),
                            std::memory_order_relaxed);
}

void Engine::enter_wait(report::Phase what, std::uint32_t peer) {
  rounds_idle_ = 0;
  // Global memory waits for one PE until the word is there.
  if (what == report::Phase::future || (what == report::Phase::condition && peer != report::no_pe)) {
    if (auto* const counted = count::CountedEndpoint::of(*endpoint_)) counted->count_read();
  }
  board_->waiting_for.store(peer, std::memory_order_relaxed);
  board_->phase.store(what, std::memory_order_relaxed);
}

void Engine::leave_wait() {
  if (idle_flush_deferred_) flush_idle(IdleFlush::all);
  count_activity();
  if (auto* const observer = transport::observer_of(*endpoint_)) observer->leave_wait();
  board_->phase.store(report::Phase::computing, std::memory_order_relaxed);
}

void Engine::pause() {
  const unsigned round = rounds_idle_++;
  switch (options_.idle) {
    case Idle::spin:
      if (round < eager_rounds) return;
      if (round == eager_rounds) idle_since_ = now();
      if (round % 16 != 0 || now() - idle_since_ < spin_ns_) return relax();
      break;
    case Idle::yield:
      if (round < yields_when_oversubscribed) {
        sched_yield();
        return;
      }
      break;
    case Idle::sleep: break;
  }
  if (store_.reclaim()) return;
  std::int64_t longest =
      waits_polling_ || store_.queued() || paused_frames_ != 0 ? sleep_ns_polling : options_.sleep_ns_max;
  handlers_.for_each([&](std::uint32_t, Entry& entry) {
    if (const std::int64_t due = entry.handler->due(); due != never) {
      longest = std::min(longest, std::max<std::int64_t>(due - now(), 1'000));
    }
  });
  publish_counts();
  endpoint_->sleep(longest);
  if (options_.idle == Idle::spin) {
    spin_ns_ = now() - idle_since_ < spin_ns_max ? spin_ns_max : std::int64_t(endpoint_->costs().wake_ns);
  }
  options_.while_waiting();
}

std::uint64_t Engine::quiesce() {
  require_may_block(report::Phase::quiescing);
  if (auto* const counted = count::CountedEndpoint::of(*endpoint_)) counted->count_barrier();
  enter_wait(report::Phase::quiescing, report::no_pe);
  scopes_.enter_quiescence();
  flush_all(FlushReason::requested);
  while (!scopes_.quiescent()) {
    if (progress()) {
      rounds_idle_ = 0;
    } else if (flush_all(FlushReason::requested)) {
      continue;
    } else if (scopes_.quiescence_due() && !store_.queued() && paused_frames_ == 0) {
      scopes_.contribute_to_quiescence();
    } else {
      pause();
    }
  }
  // Verdicts for other PEs may still wait for a full inbox. This PE may make no further library call, so it posts
  // them now.
  while (store_.queued()) {
    if (!store_.drain()) pause();
  }
  leave_wait();
  const std::uint64_t handled = scopes_.leave_quiescence();
  scope_began();
  return handled;
}

void Engine::finish() {
  quiesce();
  std::string text;
  for (const auto& extension : extensions_) {
    const std::string one = extension->unfinished();
    if (!one.empty()) text += (text.empty() ? "" : "; ") + one;
  }
  if (!text.empty()) fail(report::FailureKind::undelivered, text);
}

}  // namespace headway::am
