// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <headway/model/trace/replay.hpp>
#include <limits>
#include <numeric>

namespace headway::model::trace {
namespace {

constexpr double not_yet = -std::numeric_limits<double>::infinity();
enum StepKind { worked, posted, took, took_on_arrival };

}  // namespace

struct Replay::Step {
  double work_ns;
  std::uint32_t before;  // the step of the PE before
  std::uint32_t frame;
  int kind;
  std::uint32_t pe;
};

struct Replay::Turn {
  double at;
  std::uint64_t number;
  std::uint32_t pe;
  std::uint32_t version;
  bool operator>(const Turn& other) const { return at != other.at ? at > other.at : number > other.number; }
};

struct Replay::Pe {
  struct Arrival {
    double at;
    std::uint32_t frame;
    bool operator>(const Arrival& other) const { return at != other.at ? at > other.at : frame > other.frame; }
  };

  std::uint32_t id = 0;
  double clock = 0;
  std::size_t main = 0;                               // the next item of the program
  std::uint32_t at = 0, end = 0;                      // the next side item
  std::uint32_t frame = none, group = none;           // of these
  bool main_is_begun = false, side_is_begun = false;  // the next item: its work is done
  bool has_entered = false;                           // its wait
  bool waits = false;                                 // for a frame
  bool is_done = false;
  bool came_on_arrival = false;  // the clock is the arrival of the frame that it takes next
  std::uint32_t version = 0;     // of its turn; older ones are void
  std::uint32_t last_step = none;
  double free_at = 0;  // the injector
  std::uint32_t last_out = none;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> inbox;
  std::deque<std::uint32_t> ready;  // groups
};

double Path::work() const { return std::accumulate(work_ns.begin(), work_ns.end(), 0.0); }

double Path::dial_ns(const base::DialSettings& dials) const {
  return overheads * dials.overhead_ns + items * dials.item_overhead_ns + gaps * dials.gap_ns +
         gap_bytes * dials.gap_per_byte_ns + latencies * dials.latency_ns;
}

Replay::Replay(const Graph& graph) : graph_(&graph) {}
Replay::~Replay() = default;

void Replay::prepare(const base::DialSettings& dials) {
  dials_ = dials;
  const std::size_t frames = graph_->frames.size();
  arrivals_.assign(frames, not_yet);
  wait_needs_.resize(graph_->waits.size());
  for (std::size_t w = 0; w < wait_needs_.size(); ++w) wait_needs_[w] = graph_->waits[w].needs;
  group_needs_.resize(graph_->groups.size());
  for (std::size_t g = 0; g < group_needs_.size(); ++g) group_needs_[g] = graph_->groups[g].frames + 1;
  forced_ = 0;
  turns_.clear();
  made_turns_ = 0;
  pes_.clear();
  pes_.resize(graph_->programs.size());
  steps_.clear();
  if (keeps_steps_) {
    post_steps_.assign(frames, none);
    left_after_.assign(frames, none);
    after_before_.assign(frames, false);
  }
}

double Replay::run(const base::DialSettings& dials) {
  prepare(dials);
  for (std::size_t id = 0; id < pes_.size(); ++id) {
    pes_[id].id = std::uint32_t(id);
    pes_[id].clock = graph_->programs[id].begin_ns;
    turns_.push_back({pes_[id].clock, made_turns_++, std::uint32_t(id), 0});
  }
  std::ranges::make_heap(turns_, std::greater<>());
  do {
    while (!turns_.empty()) {
      std::ranges::pop_heap(turns_, std::greater<>());
      const Turn turn = turns_.back();
      turns_.pop_back();
      Pe& pe = pes_[turn.pe];
      if (turn.version != pe.version) continue;
      if (turn.at > pe.clock) {
        pe.clock = turn.at;
        pe.came_on_arrival = pe.waits;
      }
      pe.waits = false;
      act(turn.pe);
    }
  } while (force_one());
  double end = 0;
  for (const Pe& pe : pes_) end = std::max(end, pe.clock);
  return end;
}

/// Lets time pass. Returns whether the PE is still the first one, so that it may go on.
bool Replay::advance(Pe& pe, double ns) {
  pe.clock += ns;
  if (ns == 0 || turns_.empty() || pe.clock <= turns_.front().at) return true;
  turns_.push_back({pe.clock, made_turns_++, pe.id, ++pe.version});
  std::ranges::push_heap(turns_, std::greater<>());
  return false;
}

void Replay::add_step(Pe& pe, double work_ns, std::uint32_t frame, int kind) {
  if (!keeps_steps_) return;
  steps_.push_back({work_ns, pe.last_step, frame, kind, pe.id});
  pe.last_step = std::uint32_t(steps_.size() - 1);
}

/// The work before an item, which counts once. Returns whether the PE may go on.
bool Replay::begin_work(Pe& pe, const Item& item, bool& is_begun) {
  is_begun = true;
  double ns = item.work_ns;
  if (item.kind == Item::Kind::post) {
    const Frame& frame = graph_->frames[item.of];
    if (frame.source != frame.target) ns += dials_.overhead_ns;
    add_step(pe, item.work_ns, item.of, posted);
  } else if (item.work_ns != 0) {
    add_step(pe, item.work_ns, none, worked);
  }
  return advance(pe, ns);
}

/// The PE works until its clock passes that of another PE, or until it waits.
void Replay::act(std::size_t id) {
  Pe& pe = pes_[id];
  for (;;) {
    if (pe.at != pe.end) {
      const Item& item = graph_->side[pe.at];
      if (!pe.side_is_begun && !begin_work(pe, item, pe.side_is_begun)) return;
      pe.side_is_begun = false;
      ++pe.at;
      if (item.kind == Item::Kind::post) post(pe, item.of);
    } else if (pe.frame != none || pe.group != none) {
      finish_list(pe);
    } else if (!go_on_in_main(pe)) {
      return;
    }
  }
}

/// A PE posts its open buffers, and takes part in quiescence, when there are no frames for it.
bool Replay::begin_group(Pe& pe) {
  pe.group = pe.ready.front();
  pe.ready.pop_front();
  pe.at = graph_->groups[pe.group].begin;
  pe.end = graph_->groups[pe.group].end;
  return true;
}

/// A handler or a group is at its end.
void Replay::finish_list(Pe& pe) {
  if (pe.frame != none) handled(pe, std::exchange(pe.frame, none));
  if (pe.group == none) return;
  const Wait& wait = graph_->waits[graph_->groups[pe.group].wait];
  if (wait.needs_groups) --wait_needs_[graph_->groups[pe.group].wait];
  pe.group = none;
}

void Replay::handled(Pe& pe, std::uint32_t number) {
  const Frame& frame = graph_->frames[number];
  if (frame.wait != none) --wait_needs_[frame.wait];
  if (frame.group != none && --group_needs_[frame.group] == 0) pe.ready.push_back(frame.group);
}

bool Replay::go_on_in_main(Pe& pe) {
  const std::vector<Item>& items = graph_->programs[pe.id].items;
  if (pe.main == items.size()) {
    if (!pe.ready.empty()) return begin_group(pe);
    pe.is_done = true;
    return false;
  }
  const Item& item = items[pe.main];
  if (!pe.main_is_begun && !begin_work(pe, item, pe.main_is_begun)) return false;
  const bool is_poll = item.kind == Item::Kind::poll;
  if (is_poll && !pe.inbox.empty() && pe.inbox.top().at <= pe.clock) return begin_frame(pe);
  if (item.kind == Item::Kind::wait) {
    if (!std::exchange(pe.has_entered, true)) {
      const Wait& wait = graph_->waits[item.of];
      for (std::uint32_t g = wait.groups_begin; g < wait.groups_end; ++g) {
        if (--group_needs_[g] == 0) pe.ready.push_back(g);
      }
    }
    if (wait_needs_[item.of] != 0) {
      if (!pe.inbox.empty() && pe.inbox.top().at <= pe.clock) return begin_frame(pe);
      if (!pe.ready.empty()) return begin_group(pe);
      pe.waits = true;
      ++pe.version;
      if (!pe.inbox.empty()) {
        turns_.push_back({pe.inbox.top().at, made_turns_++, pe.id, pe.version});
        std::ranges::push_heap(turns_, std::greater<>());
      }
      return false;
    }
  }
  pe.main_is_begun = pe.has_entered = false;
  ++pe.main;
  if (item.kind == Item::Kind::post) post(pe, item.of);
  return true;
}

/// Takes the frame that arrived first. The item of the main program is still the next one.
bool Replay::begin_frame(Pe& pe) {
  pe.frame = pe.inbox.top().frame;
  pe.inbox.pop();
  const Frame& frame = graph_->frames[pe.frame];
  add_step(pe, frame.head_ns, pe.frame, std::exchange(pe.came_on_arrival, false) ? took_on_arrival : took);
  double ns = frame.head_ns;
  if (frame.source != frame.target) ns += dials_.overhead_ns + dials_.item_overhead_ns * frame.messages;
  pe.at = frame.begin;
  pe.end = frame.end;
  return advance(pe, ns);
}

void Replay::post(Pe& pe, std::uint32_t number) {
  const Frame& frame = graph_->frames[number];
  if (!frame.is_taken) return;
  double leaves = pe.clock;
  const bool is_own = frame.source == frame.target;
  if (!is_own) {
    if (keeps_steps_) {
      post_steps_[number] = pe.last_step;
      if (pe.free_at > leaves) left_after_[number] = pe.last_out;
    }
    leaves = std::max(leaves, pe.free_at) + dials_.gap_per_byte_ns * frame.bytes;
    pe.free_at = leaves + dials_.gap_ns;
    pe.last_out = number;
  } else if (keeps_steps_) {
    post_steps_[number] = pe.last_step;
  }
  double at = leaves + frame.network_ns + (is_own ? 0 : dials_.latency_ns);
  if (frame.before != none && arrivals_[frame.before] > at) {
    at = arrivals_[frame.before];
    if (keeps_steps_) after_before_[number] = true;
  }
  arrivals_[number] = at;
  Pe& target = pes_[frame.target];
  target.inbox.push({at, number});
  if (target.waits && target.inbox.top().frame == number) {
    turns_.push_back({std::max(at, target.clock), made_turns_++, frame.target, ++target.version});
    std::ranges::push_heap(turns_, std::greater<>());
  }
}

/// All PEs that are not done wait: the one with the earliest clock goes on. Returns whether there was one.
bool Replay::force_one() {
  Pe* first = nullptr;
  for (Pe& pe : pes_) {
    if (!pe.is_done && pe.waits && (first == nullptr || pe.clock < first->clock)) first = &pe;
  }
  if (first == nullptr) return false;
  ++forced_;
  first->waits = false;
  wait_needs_[graph_->programs[first->id].items[first->main].of] = 0;
  turns_.push_back({first->clock, made_turns_++, first->id, ++first->version});
  return true;
}

Path Replay::path(const base::DialSettings& dials) {
  keeps_steps_ = true;
  run(dials);
  keeps_steps_ = false;
  return walk();
}

Path Replay::walk() const {
  Path path;
  path.work_ns.resize(pes_.size());
  path.frames.resize(pes_.size());
  const Pe& last = *std::ranges::max_element(pes_, {}, &Pe::clock);
  std::uint32_t pe = last.id;
  for (std::uint32_t s = last.last_step; s != none;) {
    const Step& step = steps_[s];
    pe = step.pe;
    path.work_ns[pe] += step.work_ns;
    s = step.before;
    if (step.kind == worked) continue;
    const Frame* frame = &graph_->frames[step.frame];
    if (frame->source != frame->target) {
      path.overheads += 1;
      if (step.kind != posted) path.items += frame->messages;
    }
    if (step.kind != took_on_arrival) continue;
    std::uint32_t number = step.frame;
    while (after_before_[number]) number = graph_->frames[number].before;
    frame = &graph_->frames[number];
    path.network_ns += frame->network_ns;
    ++path.frames[frame->source];
    if (frame->source != frame->target) {
      path.latencies += 1;
      path.gap_bytes += frame->bytes;
      while (left_after_[number] != none) {
        number = left_after_[number];
        path.gaps += 1;
        path.gap_bytes += graph_->frames[number].bytes;
      }
    }
    s = post_steps_[number];
  }
  path.start_ns = graph_->programs[pe].begin_ns;
  return path;
}

}  // namespace headway::model::trace
