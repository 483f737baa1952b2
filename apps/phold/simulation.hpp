// SPDX-License-Identifier: BSD-3-Clause
/// PHOLD: processes handle events; each event makes one later event of another process (Fujimoto, "Performance of Time
/// Warp under synthetic workloads", 1990). The work of one process, and a serial program.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/base/random.hpp>
#include <limits>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace headway::phold {

inline constexpr double never = std::numeric_limits<double>::infinity();

struct Options {
  std::uint32_t processes = 1;
  std::uint32_t events = 100;  // of each process at first; there are always as many in all
  double lookahead = 1;        // an event is at least so much later than the one that makes it, and on average
  double mean = 1;             // so much later than that
  double end_time = 40;        // events from then on are not handled
  std::uint32_t words = 8;     // mean content of an event: uniform from 0 to twice as many
  std::uint64_t seed = 1;
};

/// When an event happens; of two at the same time the one with the lower source, and then number, is first.
struct When {
  double time = 0;
  std::uint32_t source = 0;  // the process that made it
  std::uint32_t number = 0;  // how many that had made before
  friend bool operator>(const When& a, const When& b) {
    return std::tie(a.time, a.source, a.number) > std::tie(b.time, b.source, b.number);
  }
};

/// Each word of an event's content.
inline std::uint64_t word_of(const When& when, std::size_t i) {
  return Random(Random(std::uint64_t(when.source) << 32 | when.number).next() + i).next();
}

struct Event {
  When when;
  std::vector<std::uint64_t> content;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(when.time, when.source, when.number, content);
  }
};

/// What an event makes.
struct Next {
  std::uint32_t destination;
  When when;
  std::size_t words;
};

/// Of a process, apart from how events reach it. All that it draws depends on its number and on how many events it has
/// had.
class State {
 public:
  State() = default;
  State(const Options& options, std::uint32_t self) {
    for (std::uint32_t i = 0; i < options.events; ++i) {
      Random random = stream(options, self, made_);
      Event event{{-options.mean * std::log(1 - random.fraction()), self, made_++}, {}};
      event.content.resize(random.below(2 * std::uint64_t(options.words) + 1));
      for (std::size_t k = 0; k < event.content.size(); ++k) event.content[k] = word_of(event.when, k);
      add(std::move(event));
    }
  }

  void add(Event event) {
    events_.push_back(std::move(event));
    std::ranges::push_heap(events_, later);
  }
  /// When its next event is.
  double next_time() const {
    if (events_.empty()) return never;
    return events_.front().when.time;
  }

  /// Takes the next event; what that makes is the caller's to send.
  Next handle(const Options& options, std::uint32_t self) {
    std::ranges::pop_heap(events_, later);
    const Event event = std::move(events_.back());
    events_.pop_back();
    for (std::size_t i = 0; i < event.content.size(); ++i) {
      errors_ += event.content[i] != word_of(event.when, i);
      checksum_ = (checksum_ ^ event.content[i]) * 0x100000001b3;
    }
    checksum_ = (checksum_ ^ event.when.source ^ std::uint64_t(event.when.number) << 32) * 0x100000001b3;
    ++handled_;
    Random random = stream(options, self, made_);
    const double delay = options.lookahead - options.mean * std::log(1 - random.fraction());
    const auto destination = std::uint32_t(random.below(options.processes));
    const std::size_t words = random.below(2 * std::uint64_t(options.words) + 1);
    return {destination, {event.when.time + delay, self, made_++}, words};
  }

  std::uint64_t handled() const { return handled_; }
  std::uint64_t errors() const { return errors_; }
  std::size_t waiting() const { return events_.size(); }
  /// Of the events that it has handled, in their order.
  std::uint64_t checksum() const { return checksum_; }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(events_, made_, handled_, errors_, checksum_);
  }

 private:
  static bool later(const Event& a, const Event& b) { return a.when > b.when; }
  static Random stream(const Options& options, std::uint32_t self, std::uint32_t made) {
    return Random(Random(options.seed).next() ^ Random(std::uint64_t(self) << 32 | made).next());
  }

  std::vector<Event> events_;  // a heap, the next one first
  std::uint32_t made_ = 0;
  std::uint64_t handled_ = 0, errors_ = 0, checksum_ = 0xcbf29ce484222325;
};

/// Adds up to the same in any order of processes.
inline std::uint64_t weighed(std::uint32_t process, const State& state) {
  return Random(state.checksum() ^ Random(std::uint64_t(process) << 32 ^ state.handled()).next()).next();
}

struct Outcome {
  std::uint64_t handled = 0, waiting = 0, errors = 0, checksum = 0;
  bool operator==(const Outcome&) const = default;
  void add(std::uint32_t process, const State& state) {
    handled += state.handled();
    waiting += state.waiting();
    errors += state.errors();
    checksum += weighed(process, state);
  }
};

/// All processes on one processor, event by event.
inline Outcome simulate(const Options& options) {
  std::vector<State> states;
  for (std::uint32_t i = 0; i < options.processes; ++i) states.emplace_back(options, i);
  using Entry = std::pair<double, std::uint32_t>;  // perhaps no longer true
  std::vector<Entry> queue;
  const auto push = [&](std::uint32_t process) {
    queue.emplace_back(states[process].next_time(), process);
    std::ranges::push_heap(queue, std::greater<>());
  };
  for (std::uint32_t i = 0; i < options.processes; ++i) push(i);
  while (!queue.empty()) {
    std::ranges::pop_heap(queue, std::greater<>());
    const auto [time, process] = queue.back();
    queue.pop_back();
    if (time != states[process].next_time()) continue;
    if (time >= options.end_time) break;
    const Next next = states[process].handle(options, process);
    Event event{next.when, std::vector<std::uint64_t>(next.words)};
    for (std::size_t k = 0; k < next.words; ++k) event.content[k] = word_of(event.when, k);
    states[next.destination].add(std::move(event));
    push(next.destination);
    if (process != next.destination) push(process);
  }
  Outcome outcome;
  for (std::uint32_t i = 0; i < options.processes; ++i) outcome.add(i, states[i]);
  return outcome;
}

}  // namespace headway::phold
