// SPDX-License-Identifier: BSD-3-Clause
/// Calls by which the layers above tell their activity to an endpoint that counts or traces.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/model/trace/record.hpp>
#include <headway/transport/endpoint.hpp>
#include <string_view>

namespace headway::transport {

/// Endpoints of this process that observe. 0 in all other runs, where calls for them are skipped.
inline std::atomic<std::size_t> observers{0};
inline bool is_observed() { return observers.load(std::memory_order_relaxed) != 0; }

/// A buffer of an aggregator that is about to be posted.
struct Flush {
  std::uint8_t reason;     // an am::FlushReason
  std::int64_t opened_ns;  // clock_ns()
};

/// Something that is not visible in frames.
struct MarkOf {
  model::trace::Mark mark;
  model::trace::MarkEnd end;
  std::size_t peer;
  std::uint64_t bytes = 0;
  std::uint32_t number = 0;  // pairs the two ends
};

/// An endpoint that counts or traces. Called on the PE's thread. Each call passes to the next one, if there is one.
class Observer {
 public:
  explicit Observer(Observer* next) : next_(next) { observers.fetch_add(1, std::memory_order_relaxed); }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// The program's wait has ended, with or without a frame.
  virtual void leave_wait() {
    if (next_ != nullptr) next_->leave_wait();
  }
  /// The handler of the last frame has ended, and no poll follows.
  virtual void end_handler() {
    if (next_ != nullptr) next_->end_handler();
  }
  /// Phases of the program nest.
  virtual void begin_phase(std::string_view name) {
    if (next_ != nullptr) next_->begin_phase(name);
  }
  virtual void end_phase() {
    if (next_ != nullptr) next_->end_phase();
  }
  /// One that keeps why buffers are posted, and when they were opened; nullptr if there is none.
  virtual Observer* keeper_of_flushes() { return next_ == nullptr ? nullptr : next_->keeper_of_flushes(); }
  /// The run's clock, as a keeper of flushes reads it.
  virtual std::int64_t clock_ns() { return 0; }
  /// Before and after the call that posts a buffer. It may have to wait, and is posted later then.
  virtual void begin_flush(const Flush& /*flush*/) {}
  virtual void end_flush(const Frame* /*frame*/) {}
  virtual void mark(const MarkOf& mark) {
    if (next_ != nullptr) next_->mark(mark);
  }
  /// The PE's time from begin to end belongs to handlers, as that of tasks, or to communication. They nest.
  enum class Work : std::uint8_t { handlers, communication };
  virtual void begin_work(Work work) {
    if (next_ != nullptr) next_->begin_work(work);
  }
  virtual void end_work() {
    if (next_ != nullptr) next_->end_work();
  }

 protected:
  ~Observer() { observers.fetch_sub(1, std::memory_order_relaxed); }

 private:
  Observer* next_;
};

/// Observer::begin_work() and end_work(). `observer` may be nullptr.
class Working {
 public:
  Working(Observer* observer, Observer::Work work) : observer_(observer) {
    if (observer_ != nullptr) [[unlikely]]
      observer_->begin_work(work);
  }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
  ~Working() {
    if (observer_ != nullptr) [[unlikely]]
      observer_->end_work();
  }

 private:
  Observer* observer_;
};

/// nullptr in a run that is not observed.
inline Observer* observer_of(Endpoint& endpoint) {
  if (!is_observed()) [[likely]]
    return nullptr;
  return endpoint.observer();
}

/// Tells the observer, if there is one.
inline void mark(Endpoint& endpoint, const MarkOf& what) {
  if (Observer* const observer = observer_of(endpoint)) observer->mark(what);
}

}  // namespace headway::transport
