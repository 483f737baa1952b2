// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/error.hpp>
#include <headway/model/trace/graph.hpp>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace headway::model::trace {
namespace {

struct Times {
  std::int64_t posted_ns = 0, seen_ns = 0;
  std::uint32_t posted_era = 0, taken_era = 0;  // quiescences of sender and receiver before
  bool is_waited_for = false;  // the receiver had nothing to do, so that it saw the frame when it arrived
};

std::uint64_t channel(std::size_t source, std::size_t target, std::uint8_t hops_left) {
  return (std::uint64_t(source) << 32 | std::uint64_t(target) << 8) | std::min<std::size_t>(hops_left, hop_classes - 1);
}

}  // namespace

struct GraphBuilder::State {
  Graph graph;
  std::vector<Times> times;  // by frame
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> channels;
  std::vector<std::int64_t> begins, ends;  // by PE
  std::vector<bool> added;
  std::vector<std::vector<std::uint32_t>> quiescences;  // by PE: the waits, or none

  /// The frame with this number; each side makes the numbers of a channel one after the other.
  std::uint32_t frame(std::size_t source, std::size_t target, const Record& record) {
    std::vector<std::uint32_t>& all = channels[channel(source, target, record.hops_left)];
    if (record.sequence > all.size())
      throw SystemError(fmt::format("the trace of PE {}: frame {} to PE {} is missing", source, all.size(), target));
    if (record.sequence < all.size()) return all[record.sequence];
    if (graph.frames.size() >= none) throw SystemError("the traces have more frames than can be numbered");
    Frame made;
    made.source = std::uint16_t(source);
    made.target = std::uint16_t(target);
    made.bytes = record.bytes;
    made.messages = record.messages;
    if (!all.empty()) made.before = all.back();
    all.push_back(std::uint32_t(graph.frames.size()));
    graph.frames.push_back(made);
    times.emplace_back();
    return all.back();
  }
};

/// Reads the records of one PE in order.
class GraphBuilder::PeBuilder {
 public:
  PeBuilder(State& state, const PeTrace& trace)
      : state_(state),
        graph_(state.graph),
        pe_(trace.header.pe),
        receive_ns_(std::int64_t(trace.header.overhead_ns / 2)),
        main_(graph_.programs[pe_].items),
        quiescences_(state.quiescences[pe_]) {}

  void add(const Record& record) {
    switch (record.kind) {
      case Kind::begin: last_ns_ = state_.begins[pe_] = record.time_ns; break;
      case Kind::posted: add_post(record); break;
      case Kind::taken: add_taken(record); break;
      case Kind::found_none:
        pass(record.time_ns);
        if (block_ != none && !wait_) close_block();
        if (wait_) idle_since_ = record.time_ns;
        is_control_ = false;  // its handler is at its end
        break;
      case Kind::wait_begins:
        close_block();
        pass(record.time_ns);
        wait_ = record.phase;
        is_wait_in_main_ = was_idle_ = false;
        break;
      case Kind::wait_ends: end_wait(record.time_ns); break;
      case Kind::polled:
        if (!wait_ && block_ == none) main_.push_back({take_work(record.time_ns), none, Item::Kind::poll});
        break;
      case Kind::end:
        close_block();
        pass(record.time_ns);
        state_.ends[pe_] = record.time_ns;
        break;
      case Kind::phase_begins:
      case Kind::phase_ends:
      case Kind::flushed:
      case Kind::mark: break;  // the order of frames does not need them
    }
  }

 private:
  /// The list to which work and posts belong now.
  std::vector<Item>& list() { return block_ != none || group_ != none ? graph_.side : main_; }
  void append(Item item) { list().push_back(item); }

  double take_work(std::int64_t until) {
    const std::int64_t ns = std::max<std::int64_t>(until - last_ns_, 0);
    last_ns_ = std::max(last_ns_, until);
    return double(ns);
  }
  void pass(std::int64_t until) {
    if (until > last_ns_) append({take_work(until), none, Item::Kind::work});
  }

  void close_block() {
    if (block_ != none) graph_.frames[std::exchange(block_, none)].end = std::uint32_t(graph_.side.size());
    if (group_ != none) graph_.groups[std::exchange(group_, none)].end = std::uint32_t(graph_.side.size());
    is_control_ = false;
  }

  /// In a wait, what follows handlers outside of them belongs to a group: it needs the frames handled before.
  void open_group(std::size_t target) {
    if (!wait_ || !is_wait_in_main_) return;
    const bool is_first_flush = *wait_ == Phase::waiting && !was_idle_;
    if (group_ != none && !is_first_flush) return;
    close_block();
    // Buffers that the program has filled before it waits: they need no frame of other PEs.
    const bool is_of_program = is_first_flush && std::ranges::none_of(ungrouped_, [&](std::uint32_t frame) {
                                 return graph_.frames[frame].source == target;
                               });
    group_ = std::uint32_t(graph_.groups.size());
    const auto wait = std::uint32_t(graph_.waits.size() - 1);
    graph_.groups.push_back({.begin = std::uint32_t(graph_.side.size()), .end = 0, .frames = 0, .wait = wait});
    groups_of_wait_.push_back({group_, {}});
    if (!is_of_program) groups_of_wait_.back().frames = std::exchange(ungrouped_, {});
    graph_.waits[wait].groups_end = std::uint32_t(graph_.groups.size());
    if (graph_.waits[wait].needs_groups) ++graph_.waits[wait].needs;
  }

  void add_post(const Record& record) {
    if (record.is_foreign != 0) {
      throw SystemError(fmt::format(
          "the trace of PE {}: it posted a frame of another PE of its process; trace with one PE per process", pe_));
    }
    const bool in_handler = block_ != none && (record.phase == Phase::handling || is_control_);
    if (!in_handler) {
      const bool is_late = !wait_;
      if (is_late) close_block();
      open_group(record.peer);
      if (group_ != none && record.is_control == 0) groups_of_wait_.back().is_wave = false;
    }
    idle_since_.reset();
    const std::uint32_t frame = state_.frame(pe_, record.peer, record);
    if (std::exchange(graph_.frames[frame].is_posted, true))
      throw SystemError(fmt::format("the trace of PE {}: frame {} to PE {} twice", pe_, record.sequence, record.peer));
    state_.times[frame].posted_ns = record.time_ns;
    state_.times[frame].posted_era = std::uint32_t(quiescences_.size());
    append({take_work(record.time_ns), frame, Item::Kind::post});
  }

  void add_taken(const Record& record) {
    const std::uint32_t frame = state_.frame(record.peer, pe_, record);
    Times& times = state_.times[frame];
    if (std::exchange(graph_.frames[frame].is_taken, true))
      throw SystemError(fmt::format("the trace of PE {}: frame {} of PE {} twice", pe_, record.sequence, record.peer));
    times.taken_era = std::uint32_t(quiescences_.size());
    was_idle_ = was_idle_ || (is_wait_in_main_ && idle_since_);
    times.is_waited_for = wait_ && idle_since_;
    times.seen_ns = std::max(record.time_ns - receive_ns_, last_ns_);
    if (times.is_waited_for) {
      last_ns_ = times.seen_ns;  // up to here the PE was idle
    } else if (!wait_ && block_ == none) {
      main_.push_back({take_work(times.seen_ns), none, Item::Kind::poll});
    }
    close_block();
    idle_since_.reset();
    if (wait_ && !is_wait_in_main_) {
      is_wait_in_main_ = true;
      main_.push_back({0, std::uint32_t(graph_.waits.size()), Item::Kind::wait});
      const auto groups = std::uint32_t(graph_.groups.size());
      graph_.waits.push_back(
          {.needs = 0, .groups_begin = groups, .groups_end = groups, .needs_groups = *wait_ != Phase::waiting});
      ungrouped_.clear();
    }
    graph_.frames[frame].head_ns = take_work(record.time_ns);
    if (wait_) ungrouped_.push_back(frame);
    if (wait_ && (*wait_ == Phase::epoch || (*wait_ == Phase::collective && record.is_control != 0))) need(frame);
    last_taken_ = frame;
    block_ = frame;
    if (wait_ && record.is_control != 0) is_control_frame_.insert(frame);
    graph_.frames[frame].begin = std::uint32_t(graph_.side.size());
    is_control_ = record.is_control != 0;
  }

  void need(std::uint32_t frame) {
    graph_.frames[frame].wait = std::uint32_t(graph_.waits.size() - 1);
    ++graph_.waits.back().needs;
  }

  /// A group needs the frames handled since the last group. A wave of quiescence goes round while messages are on
  /// their way, and the last two waves find that none is left. So earlier waves need no messages: the next group does.
  void settle_groups() {
    std::size_t waves = 0;
    for (const GroupOfWait& group : groups_of_wait_) waves += group.is_wave;
    std::vector<std::uint32_t> passed_on;
    for (GroupOfWait& group : groups_of_wait_) {
      const bool is_early = *wait_ == Phase::quiescing && group.is_wave && waves-- > waves_at_end;
      group.frames.insert(group.frames.end(), passed_on.begin(), passed_on.end());
      passed_on.clear();
      for (const std::uint32_t frame : group.frames) {
        if (is_early && !is_control_frame_.contains(frame)) {
          passed_on.push_back(frame);
        } else {
          graph_.frames[frame].group = group.number;
          ++graph_.groups[group.number].frames;
        }
      }
    }
    groups_of_wait_.clear();
    is_control_frame_.clear();
  }

  /// Of a wait for an answer only the last frame is needed.
  void end_wait(std::int64_t at) {
    close_block();
    if (wait_) settle_groups();
    if (wait_ && *wait_ != Phase::quiescing && is_wait_in_main_ && graph_.frames[last_taken_].wait == none)
      need(last_taken_);
    if (wait_ && *wait_ == Phase::quiescing)
      quiescences_.push_back(is_wait_in_main_ ? std::uint32_t(graph_.waits.size() - 1) : none);
    wait_.reset();
    idle_since_.reset();
    pass(at);
  }

  static constexpr std::size_t waves_at_end = 2;

  struct GroupOfWait {
    std::uint32_t number;
    std::vector<std::uint32_t> frames;
    bool is_wave = true;  // control messages alone
  };

  State& state_;
  Graph& graph_;
  std::size_t pe_;
  std::int64_t receive_ns_;  // from the moment at which a frame is there until its record
  std::vector<Item>& main_;
  std::int64_t last_ns_ = 0;  // all before has its place
  std::optional<Phase> wait_;
  bool is_wait_in_main_ = false;
  bool was_idle_ = false;  // in this wait, after its first frames and posts
  std::vector<std::uint32_t>& quiescences_;
  std::uint32_t last_taken_ = none;
  std::optional<std::int64_t> idle_since_;
  std::uint32_t block_ = none, group_ = none;
  bool is_control_ = false;  // the block handles a control message, in no phase of its own
  std::vector<GroupOfWait> groups_of_wait_;
  std::unordered_set<std::uint32_t> is_control_frame_;
  std::vector<std::uint32_t> ungrouped_;  // frames of this wait, handled after the last group
};

GraphBuilder::GraphBuilder(std::size_t pes) : state_(std::make_unique<State>()) {
  state_->graph.programs.resize(pes);
  state_->begins.resize(pes);
  state_->ends.resize(pes);
  state_->added.resize(pes);
  state_->quiescences.resize(pes);
}

GraphBuilder::~GraphBuilder() = default;

void GraphBuilder::add(const PeTrace& trace) {
  const std::size_t pe = trace.header.pe;
  if (pe >= state_->added.size() || state_->added[pe])
    throw SystemError(fmt::format("PE {} has two traces, or is none of {} PEs", pe, state_->added.size()));
  state_->added[pe] = true;
  if (pe == 0) state_->graph.header = trace.header;
  PeBuilder builder(*state_, trace);
  for (const Record& record : trace.records) builder.add(record);
}

Graph GraphBuilder::finish() {
  Graph& graph = state_->graph;
  const std::int64_t begin = std::ranges::min(state_->begins);
  for (std::size_t pe = 0; pe < graph.programs.size(); ++pe)
    graph.programs[pe].begin_ns = double(state_->begins[pe] - begin);
  graph.run_ns = double(std::ranges::max(state_->ends) - begin);
  // The n-th quiescence of a PE needs the frames that others have posted before the end of their n-th one.
  for (std::size_t f = 0; f < graph.frames.size(); ++f) {
    Frame& frame = graph.frames[f];
    const Times& times = state_->times[f];
    const std::vector<std::uint32_t>& waits = state_->quiescences[frame.target];
    if (!frame.is_taken || frame.wait != none || times.posted_era < times.taken_era || times.posted_era >= waits.size())
      continue;
    frame.wait = waits[times.posted_era];
    if (frame.wait != none) ++graph.waits[frame.wait].needs;
  }
  // Of frames that a PE did not wait for, the trace has no arrival. They take the network as long as the fastest ones.
  const Header& header = graph.header;
  double fastest[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  auto through = [&](const Frame& frame) { return header.gap_per_byte_ns * frame.bytes; };
  for (std::size_t f = 0; f < graph.frames.size(); ++f) {
    Frame& frame = graph.frames[f];
    if (frame.is_taken && !frame.is_posted)
      throw SystemError(
          fmt::format("the trace of PE {}: it lacks a frame that PE {} took", frame.source, frame.target));
    if (!frame.is_taken) {
      ++graph.lost;
      continue;
    }
    const Times& times = state_->times[f];
    frame.network_ns = double(times.seen_ns - times.posted_ns);
    double& least = fastest[frame.source == frame.target];
    if (times.is_waited_for) least = std::min(least, std::max(frame.network_ns - through(frame), 0.0));
  }
  if (fastest[0] > 1e18) fastest[0] = header.overhead_ns / 2 + header.latency_ns;
  for (std::size_t f = 0; f < graph.frames.size(); ++f) {
    Frame& frame = graph.frames[f];
    if (!frame.is_taken || state_->times[f].is_waited_for) continue;
    const double estimate = frame.source == frame.target ? 0 : fastest[0] + through(frame);
    frame.network_ns = std::min(frame.network_ns, estimate);
  }
  return std::move(graph);
}

Graph read_graph(const std::string& folder) {
  auto path = [&](std::size_t pe) { return folder + "/" + fmt::format(file_name_format, pe); };
  PeTrace trace = read_trace(path(0));
  const Header first = trace.header;
  GraphBuilder builder(first.pes);
  for (std::size_t pe = 0; pe < first.pes; ++pe) {
    if (pe != 0) trace = read_trace(path(pe));
    const Header& header = trace.header;
    auto refuse = [&](const std::string& why) {
      throw SystemError(fmt::format("{}: it cannot be used as a trace: {}", path(pe), why));
    };
    if (header.pe != pe) refuse(fmt::format("it is of PE {}", header.pe));
    if (header.pes != first.pes || header.clock != first.clock)
      refuse(fmt::format("it is of another run than that of PE 0: {} PEs and {}", header.pes, first.pes));
    builder.add(trace);
  }
  return builder.finish();
}

}  // namespace headway::model::trace
