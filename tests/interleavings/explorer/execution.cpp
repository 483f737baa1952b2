// SPDX-License-Identifier: BSD-3-Clause
#include "execution.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace headway::explore {
namespace {

Execution* current_execution = nullptr;

const char* text_of(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed: return "relaxed";
    case std::memory_order_consume: return "consume";
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    case std::memory_order_seq_cst: return "seq_cst";
  }
  return "?";
}

ThreadSet only(unsigned thread) { return ThreadSet(1u << thread); }

}  // namespace

Execution& Execution::current() {
  if (current_execution == nullptr) throw std::logic_error("explored memory outside of explore()");
  return *current_execution;
}

// --- threads

Execution::End Execution::run(const std::function<std::unique_ptr<Program>()>& make, bool traced) {
  memory_.clear();
  running_ = Memory::test_itself;
  somebody_died_ = false;
  traced_ = traced;
  steps_ = 0;
  failure_.clear();
  trace_.clear();
  atomic_names_.clear();
  plain_names_.clear();
  current_execution = this;
  const std::unique_ptr<Program> program = make();
  count_ = program->threads();
  if (count_ > threads_max) throw std::length_error("a program has too many threads");
  for (unsigned t = 0; t < count_; ++t) {
    Thread& thread = threads_[t];
    thread.state = State::ready;
    thread.next = {};
    thread.in_vain = false;
    thread.spurious_failures = 0;
    thread.looked.clear();
    thread.fiber = std::make_unique<base::Fiber>(
        [this, t, &program] {
          run_thread(*program, t);
          threads_[t].state = State::ended;
        },
        std::size_t(64) << 10);
    // Up to its first step it touches nothing that others see.
    running_ = t;
    memory_.started(t);
    thread.fiber->resume();
  }

  End end = End::complete;
  Upcoming threads;
  while (failure_.empty()) {
    upcoming(threads);
    if (threads.enabled == 0) {
      if (!end_vain_waits()) break;
      continue;
    }
    const int chosen = search_->choose_thread(threads);
    if (chosen == Search::nobody) {
      end = End::cut_short;
      break;
    }
    running_ = unsigned(chosen);
    ++steps_;
    memory_.set_step(search_->step());
    threads_[running_].fiber->resume();
    if (steps_ > options_.steps_max) fail("somebody does not terminate");
  }
  running_ = Memory::test_itself;
  if (end == End::complete && failure_.empty()) {
    for (unsigned t = 0; t < count_; ++t) {
      if (threads_[t].state != State::dead) memory_.joined(t);
    }
    program->check();
  }
  for (Thread& thread : threads_) thread.fiber.reset();
  return end;
}

void Execution::run_thread(Program& program, unsigned id) {
  std::string thrown;
  try {
    program.thread(id);
  } catch (const std::exception& error) {
    thrown = error.what();
  }
  if (!thrown.empty()) fail(std::move(thrown));
}

void Execution::upcoming(Upcoming& threads) const {
  threads.enabled = 0;
  for (unsigned t = 0; t < count_; ++t) {
    const Thread& thread = threads_[t];
    threads.footprints[t] = thread.next;
    threads.news[t] = Upcoming::always;
    if (thread.state == State::ready) {
      threads.enabled |= only(t);
      if (thread.touches >= 0)
        threads.news[t] = memory_.step_of(std::size_t(thread.touches), memory_.newest(std::size_t(thread.touches)));
    } else if (thread.state == State::waiting_for_news) {
      threads.news[t] = newest_news(thread);
      if (threads.news[t] > 0) threads.enabled |= only(t);
    }
  }
}

/// No thread can move: all waits are in vain. If no thread died that is a failure, unless the options allow it.
bool Execution::end_vain_waits() {
  bool any = false;
  for (unsigned t = 0; t < count_; ++t) {
    Thread& thread = threads_[t];
    if (thread.state != State::waiting_for_news && thread.state != State::in_futex) continue;
    any = true;
    thread.state = State::ready;
    thread.in_vain = true;
    thread.next = {};
    thread.touches = -1;
    memory_.hurry(t);
    search_->woken_by_standstill(t);
  }
  if (any && !somebody_died_ && options_.standstill_fails)
    fail("all that have not ended wait, and nobody will wake them");
  return any;
}

void Execution::step(const Footprint& footprint) {
  if (!on_thread()) return;
  threads_[running_].next = footprint;
  threads_[running_].touches = -1;
  base::Fiber::suspend();
  may_die();
}

/// A step of an operation on one atomic location.
void Execution::step(std::size_t location, bool changes, std::memory_order order) {
  if (!on_thread()) return;
  Footprint footprint = touching(location, changes);
  const bool sequential = order == std::memory_order_seq_cst;
  if (sequential) footprint.add(order_location, true);
  threads_[running_].next = footprint;
  threads_[running_].touches = sequential ? -1 : int(location);
  base::Fiber::suspend();
  may_die();
}

void Execution::may_die() {
  if (somebody_died_ || (options_.mortal & only(running_)) == 0 || search_->found_before(0)) return;
  if (search_->choose(2) == 0) return;
  somebody_died_ = true;
  threads_[running_].state = State::dead;
  note([] { return "dies"; });
  stop();
}

void Execution::stop() {
  for (;;) base::Fiber::suspend();
}

/// Whether this step need not find that store: it did so elsewhere. Steps that take part in the order of sequential
/// consistency may find it to another effect.
bool Execution::explored(std::size_t location, StoreIndex store, std::memory_order order) const {
  return order != std::memory_order_seq_cst && on_thread() && search_->found_before(memory_.step_of(location, store));
}

StoreIndex Execution::earliest_unexplored(std::size_t location, StoreIndex earliest, std::memory_order order) const {
  while (explored(location, earliest, order)) ++earliest;
  return earliest;
}

void Execution::fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);  // its memory must not stay on a stack that is abandoned
  note([&] { return fmt::format("FAILURE: {}", failure_); });
  if (base::Fiber::current() != nullptr) stop();
}

void Execution::note_text(std::string text) {
  const std::string who = on_thread() ? fmt::format("thread {}", running_) : "the test";
  trace_ += fmt::format("  {:4}  {:9} {}\n", steps_, who, text);
}

// --- atomic locations

std::size_t Execution::add_atomic(std::uint64_t value) {
  if (on_thread()) throw std::logic_error("explored memory is made by a program's constructor");
  const std::size_t location = memory_.add_atomic(value);
  atomic_names_.push_back(fmt::format("atomic {}", location));
  return location;
}

std::size_t Execution::add_plain() {
  if (on_thread()) throw std::logic_error("explored memory is made by a program's constructor");
  const std::size_t location = memory_.add_plain();
  plain_names_.push_back(fmt::format("plain {}", location));
  return location;
}

Footprint Execution::touching(std::size_t location, bool changes) {
  Footprint footprint;
  footprint.add(location, changes);
  return footprint;
}

void Execution::looked_at(std::size_t location, StoreIndex store) {
  if (!on_thread()) return;
  std::vector<Looked>& looked = threads_[running_].looked;
  for (Looked& l : looked) {
    if (l.location != location) continue;
    l.newest = std::max(l.newest, store);
    return;
  }
  looked.push_back({std::uint16_t(location), store});
}

std::uint64_t Execution::load(std::size_t location, std::memory_order order) {
  step(location, false, order);
  const StoreIndex newest = memory_.newest(location);
  const StoreIndex earliest = earliest_unexplored(location, memory_.earliest(running_, location, order), order);
  const unsigned age = choose(newest - earliest + 1u);
  const StoreIndex store = StoreIndex(newest - age);
  if (on_thread()) search_->found(memory_.step_of(location, store));
  looked_at(location, store);
  const std::uint64_t value = memory_.load(running_, location, store, order);
  note([&] {
    return fmt::format("{} = {:#x} load {}{}", atomic_names_[location], value, text_of(order),
                       age == 0 ? "" : fmt::format(" ({} stores old)", age));
  });
  return value;
}

void Execution::store(std::size_t location, std::uint64_t value, std::memory_order order) {
  step(location, true, order);
  memory_.store(running_, location, value, order);
  note([&] { return fmt::format("{} := {:#x} store {}", atomic_names_[location], value, text_of(order)); });
}

void Execution::finish_read_modify_write(std::size_t location, std::uint64_t before, std::uint64_t after,
                                         std::memory_order order) {
  memory_.read_modify_write(running_, location, after, order);
  looked_at(location, memory_.newest(location));
  note([&] {
    return fmt::format("{} = {:#x} := {:#x} exchange {}", atomic_names_[location], before, after, text_of(order));
  });
}

bool Execution::compare_exchange(std::size_t location, std::uint64_t& expected, std::uint64_t desired,
                                 std::memory_order success, std::memory_order failure, bool weak) {
  step(location, true, success);
  // The stores that the exchange may find, the likely ones first: the newest store holds `expected`; visible stores
  // hold other values; a store holds `expected`, and the exchange still fails.
  const StoreIndex newest = memory_.newest(location);
  const StoreIndex earliest = earliest_unexplored(location, memory_.earliest(running_, location, failure), success);
  const bool can_succeed = memory_.value(location, newest) == expected;
  std::array<StoreIndex, 64> others;
  unsigned count = 0;
  int spurious = -1;
  for (int s = newest; s >= int(earliest); --s) {
    if (memory_.value(location, StoreIndex(s)) != expected) {
      if (count == others.size()) throw std::length_error("too many stores may be seen");
      others[count++] = StoreIndex(s);
    } else {
      spurious = s;
    }
  }
  if (!weak || !on_thread() || threads_[running_].spurious_failures == options_.spurious_failures_max) spurious = -1;
  unsigned found = choose(unsigned(can_succeed) + count + unsigned(spurious >= 0));
  if (can_succeed && found-- == 0) {
    finish_read_modify_write(location, expected, desired, success);
    return true;
  }
  const bool for_no_reason = found == count;
  if (for_no_reason) ++threads_[running_].spurious_failures;
  const StoreIndex store = for_no_reason ? StoreIndex(spurious) : others[found];
  looked_at(location, store);
  expected = memory_.load(running_, location, store, failure);
  note([&] {
    return fmt::format("{} = {:#x} exchange failed{} {}", atomic_names_[location], expected,
                       for_no_reason ? " for no reason" : "", text_of(failure));
  });
  return false;
}

void Execution::fence(std::memory_order order) {
  Footprint footprint;
  if (order == std::memory_order_seq_cst) footprint.add(order_location, true);
  step(footprint);
  memory_.fence(running_, order);
  note([&] { return fmt::format("fence {}", text_of(order)); });
}

void Execution::fence_everywhere() {
  // Changes the stores that other threads may find afterwards, at every location.
  Footprint footprint;
  footprint.add(order_location, true);
  for (std::size_t location = 0; location < atomic_names_.size(); ++location) footprint.add(location, true);
  step(footprint);
  for (int round = 0; round < 2; ++round) {  // so that all know of all
    for (unsigned thread = 0; thread < threads_.size(); ++thread) memory_.fence(thread, std::memory_order_seq_cst);
  }
  note([&] { return std::string("fence everywhere"); });
}

// --- waiting

void Execution::futex_wait(std::size_t location, std::uint64_t value) {
  step(touching(location, true));
  const StoreIndex newest = memory_.newest(location);
  const StoreIndex store = StoreIndex(newest - choose(newest - memory_.kernel_earliest(running_, location) + 1u));
  if (memory_.value(location, store) != value) {
    note([&] {
      return fmt::format("{} = {:#x} futex wait returns", atomic_names_[location], memory_.value(location, store));
    });
    return;
  }
  note([&] { return fmt::format("{} = {:#x} futex waits", atomic_names_[location], value); });
  Thread& thread = threads_[running_];
  thread.state = State::in_futex;
  thread.futex = location;
  base::Fiber::suspend();
  note([&] { return fmt::format("{} futex {}", atomic_names_[location], thread.in_vain ? "times out" : "woken"); });
  thread.in_vain = false;
}

void Execution::futex_wake_one(std::size_t location) {
  step(touching(location, true));
  memory_.kernel_release(running_, location);
  std::array<unsigned, threads_max> waiting;
  unsigned count = 0;
  for (unsigned t = 0; t < count_; ++t) {
    if (threads_[t].state == State::in_futex && threads_[t].futex == location) waiting[count++] = t;
  }
  note([&] { return fmt::format("{} futex wake, {} wait", atomic_names_[location], count); });
  if (count == 0) return;
  const unsigned woken = waiting[choose(count)];
  threads_[woken].state = State::ready;
  threads_[woken].next = {};
  search_->woken(woken, running_);
}

/// The last step that brought a thread that waits for news some; 0 if none has.
int Execution::newest_news(const Thread& thread) const {
  int newest = 0;
  for (const Looked& looked : thread.looked) {
    const StoreIndex next = StoreIndex(looked.newest + 1);
    if (memory_.newest(looked.location) >= next) newest = std::max(newest, memory_.step_of(looked.location, next));
  }
  return newest;
}

bool Execution::wait_for_news() {
  Thread& thread = threads_[running_];
  thread.next = {};
  for (const Looked& looked : thread.looked) thread.next.add(looked.location, false);
  thread.state = State::waiting_for_news;
  base::Fiber::suspend();
  thread.state = State::ready;
  may_die();
  bool news = false;
  if (!thread.in_vain) {
    std::array<Looked, locations_max> newer;
    unsigned count = 0;
    for (const Looked& looked : thread.looked) {
      const StoreIndex next = StoreIndex(looked.newest + 1);
      if (memory_.newest(looked.location) < next || explored(looked.location, next, std::memory_order_relaxed))
        continue;
      newer[count++] = looked;
    }
    const Looked& seen = newer[choose(count)];
    memory_.hurry(running_, seen.location, StoreIndex(seen.newest + 1));
    search_->found(memory_.step_of(seen.location, StoreIndex(seen.newest + 1)));
    note([&] { return fmt::format("{} has news", atomic_names_[seen.location]); });
    news = true;
  } else {
    note([] { return "waits for news in vain"; });
  }
  thread.in_vain = false;
  thread.looked.clear();
  return news;
}

// --- plain locations

void Execution::read_plain(std::size_t location) {
  if (on_thread()) may_die();
  if (!memory_.read_plain(running_, location)) {
    fail(fmt::format("data race: {} is read while it may be written", plain_names_[location]));
  }
}

void Execution::write_plain(std::size_t location, std::uint64_t value) {
  if (on_thread()) may_die();
  note([&] { return fmt::format("{} := {:#x}", plain_names_[location], value); });
  if (!memory_.write_plain(running_, location)) {
    fail(fmt::format("data race: {} is written while it may be read or written", plain_names_[location]));
  }
}

}  // namespace headway::explore
