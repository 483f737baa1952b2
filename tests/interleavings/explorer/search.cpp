// SPDX-License-Identifier: BSD-3-Clause
#include "search.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace headway::explore {
namespace {

ThreadSet only(unsigned thread) { return ThreadSet(1u << thread); }
unsigned lowest(ThreadSet threads) { return unsigned(std::countr_zero(unsigned(threads))); }

template <class Clock>
void join(Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

}  // namespace

void Footprint::add(std::size_t location, bool changes) {
  for (std::size_t i = 0; i < count; ++i) {
    if (accesses[i].location != location) continue;
    accesses[i].changes |= changes;
    return;
  }
  if (count == accesses.size()) throw std::length_error("a step touches too many locations");
  accesses[count++] = {std::uint16_t(location), changes};
}

bool Footprint::conflicts_with(const Footprint& other) const { return matters_to(other) || other.matters_to(*this); }

bool Footprint::matters_to(const Footprint& other) const {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < other.count; ++j) {
      if (accesses[i].changes && accesses[i].location == other.accesses[j].location) return true;
    }
  }
  return false;
}

void Search::restart() {
  fresh_from_ = path_.empty() ? 0 : path_.size() - 1;  // there the last execution and this one part
  depth_ = 0;
  asleep_ = 0;
  disturbed_ = 0;
  explored_until_.fill(nothing);
  known_until_ = nothing;
  step_ = 0;
  last_thread_ = nobody;
  preemptions_ = 0;
  steps_.clear();
  clocks_ = {};
  histories_.clear();
}

Search::Node& Search::next_node(bool& fresh) {
  fresh = depth_ == path_.size();
  if (fresh) path_.emplace_back();
  return path_[depth_++];
}

int Search::choose_thread(const Upcoming& threads) {
  const std::size_t index = depth_;
  bool fresh;
  Node& node = next_node(fresh);
  if (fresh) {
    const bool may_stay = last_thread_ != nobody && (threads.enabled & only(unsigned(last_thread_))) != 0;
    node.enabled = threads.enabled;
    if (preemptions_max_ == unbounded) {
      for (unsigned t = 0; t < threads_max; ++t) {
        if ((disturbed_ & only(t)) != 0 && threads.news[t] > explored_until_[t]) asleep_ &= ThreadSet(~only(t));
      }
      node.asleep = asleep_;
    } else if (may_stay && preemptions_ == preemptions_max_) {
      node.enabled = only(unsigned(last_thread_));
    }
    const ThreadSet candidates = node.enabled & ThreadSet(~node.asleep);
    if (candidates == 0) {
      path_.pop_back();
      --depth_;
      return nobody;
    }
    node.taken =
        may_stay && (candidates & only(unsigned(last_thread_))) != 0 ? unsigned(last_thread_) : lowest(candidates);
    if (index < repeated_.size()) node.taken = repeated_[index];
    node.wanted = preemptions_max_ == unbounded ? only(node.taken) : candidates;
  }
  const unsigned thread = node.taken;
  if (last_thread_ != nobody && unsigned(last_thread_) != thread &&
      (threads.enabled & only(unsigned(last_thread_))) != 0) {
    ++preemptions_;
  }
  last_thread_ = int(thread);
  if (preemptions_max_ == unbounded) moved(thread, threads, index);
  ++step_;
  return int(thread);
}

unsigned Search::choose(unsigned count) {
  if (count <= 1) return 0;
  const std::size_t index = depth_;
  bool fresh;
  Node& node = next_node(fresh);
  if (fresh) {
    node.count = count;
    if (index < repeated_.size()) node.taken = repeated_[index];
  }
  if (node.count != count) throw std::logic_error("an execution does not repeat: a program must be deterministic");
  return node.taken;
}

bool Search::advance() {
  for (; !path_.empty(); path_.pop_back()) {
    Node& node = path_.back();
    if (node.count != 0) {
      if (++node.taken < node.count) return true;
      continue;
    }
    node.done |= only(node.taken);
    if (const ThreadSet left = node.wanted & ThreadSet(~node.done) & ThreadSet(~node.asleep); left != 0) {
      node.taken = lowest(left);
      return true;
    }
  }
  return false;
}

std::vector<unsigned> Search::choices() const {
  std::vector<unsigned> choices;
  for (std::size_t i = 0; i < depth_; ++i) choices.push_back(path_[i].taken);
  return choices;
}

void Search::woken(unsigned thread, unsigned waker) { join(clocks_[thread], clocks_[waker]); }

void Search::woken_by_standstill(unsigned thread) {
  for (const Clock& clock : clocks_) join(clocks_[thread], clock);
}

Search::History& Search::history(std::size_t location) {
  while (histories_.size() <= location) {
    histories_.emplace_back();
    histories_.back().last_read_since.fill(-1);
  }
  return histories_[location];
}

void Search::found(int step) {
  if (preemptions_max_ != unbounded || step == 0) return;
  Step& now = steps_.back();
  join(now.clock, steps_[std::size_t(step - 1)].clock);
  clocks_[now.thread] = now.clock;
}

/// Records the step that `thread` is about to make, and where it could have been made earlier to another effect.
void Search::moved(unsigned thread, const Upcoming& threads, std::size_t node) {
  Node& here = path_[node];
  const Footprint& footprint = threads.footprints[thread];
  known_until_ = explored_until_[thread];
  explored_until_[thread] = nothing;
  asleep_ = ThreadSet(here.asleep | here.done) & ThreadSet(~only(thread));
  disturbed_ = 0;
  for (unsigned t = 0; t < threads_max; ++t) {
    if ((asleep_ & only(t)) == 0) continue;
    if ((here.asleep & only(t)) == 0) explored_until_[t] = step();
    if (footprint.matters_to(threads.footprints[t])) disturbed_ |= only(t);
  }

  Clock clock = clocks_[thread];
  auto after = [&](int index) {
    const Step& earlier = steps_[std::size_t(index)];
    if (earlier.thread == thread) return;
    if (!precedes(earlier, clock) && node >= fresh_from_) explore_before(std::size_t(index), thread, footprint);
    join(clock, earlier.clock);
  };
  const int this_step = int(steps_.size());
  for (std::size_t i = 0; i < footprint.count; ++i) {
    const auto [location, changes] = footprint.accesses[i];
    History& past = history(location);
    if (!changes) {
      past.last_read_since[thread] = this_step;
      continue;
    }
    for (const int read : past.last_read_since) {
      if (read >= 0) after(read);
    }
    if (past.last_change >= 0) after(past.last_change);
    past.last_change = this_step;
    past.last_read_since.fill(-1);
  }
  ++clock[thread];
  clocks_[thread] = clock;
  steps_.push_back({thread, clock[thread], clock, node, footprint});
}

/// `thread` could make a step of this footprint before the step `earlier`, with which it conflicts: sees to it that
/// some execution does, or is known to be equivalent to one that has been explored.
void Search::explore_before(std::size_t earlier, unsigned thread, const Footprint& footprint) {
  Node& node = path_[steps_[earlier].node];
  independent_.clear();  // steps since that do not come after `earlier`
  auto first_of = [&](auto comes_after) {
    return std::none_of(independent_.begin(), independent_.end(),
                        [&](std::size_t other) { return comes_after(steps_[other]); });
  };
  ThreadSet seen = 0;
  ThreadSet initial = 0;  // threads with a first step here that comes after none of the others
  for (std::size_t i = earlier + 1; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (precedes(steps_[earlier], step.clock)) continue;
    if ((seen & only(step.thread)) == 0 && first_of([&](const Step& other) { return precedes(other, step.clock); })) {
      initial |= only(step.thread);
    }
    seen |= only(step.thread);
    independent_.push_back(i);
  }
  if ((seen & only(thread)) == 0 && first_of([&](const Step& other) {
        return precedes(other, clocks_[thread]) || footprint.conflicts_with(other.footprint);
      })) {
    initial |= only(thread);
  }
  if ((initial & (node.wanted | node.asleep)) != 0) return;
  const ThreadSet possible = initial & node.enabled;
  if ((possible & only(thread)) != 0) {
    node.wanted |= only(thread);
  } else if (possible != 0) {
    node.wanted |= only(lowest(possible));
  } else if (initial != only(thread)) {
    node.wanted = node.enabled;
  }  // else it could not move there: it has been waiting for `earlier`
}

}  // namespace headway::explore
