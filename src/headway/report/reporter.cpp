// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <headway/base/counted.hpp>
#include <headway/report/process_record.hpp>
#include <headway/report/reporter.hpp>
#include <headway/report/system_state.hpp>
#include <headway/transport/local/local.hpp>
#include <map>
#include <sstream>

namespace headway::report {
namespace {

constexpr std::int64_t timeout_ns = 200'000'000;
constexpr std::int64_t timeout_per_pe_ns = 4'000'000;  // many PEs on few cores answer slowly
constexpr std::int64_t naming_timeout_ns = 2'000'000'000, naming_timeout_per_pe_ns = 50'000'000;
constexpr std::size_t frames_shown = 8, lines_unread_max = 12;

/// Whether a PE in that phase can answer.
bool may_answer(Phase phase) { return phase != Phase::starting && phase != Phase::finished; }

}  // namespace

Reporter::Reporter(const local::Segment& segment) : segment_(&segment), requests_(segment.header().pes) {}

bool Reporter::waits_for_start(std::size_t pe) const {
  const std::size_t first = pe - pe % segment_->header().pes_per_process;
  return process_record_of(*segment_, first).meeting.load(std::memory_order_relaxed) != 0;
}

void Reporter::begin(std::int64_t now, const PidOf& pid_of, bool disturb) {
  disturb_ = disturb;
  request_ = (request_ + 1) % report_numbers;
  symbols_ = std::make_unique<Symbols>();
  std::map<pid_t, char> states;
  for (std::size_t pe = 0; pe < requests_.size(); ++pe) {
    PeBoard& board = board_of(*segment_, pe);
    const pid_t pid = pid_of(pe / segment_->header().pes_per_process);
    if (pid > 0 && !states.contains(pid)) states[pid] = state_of(pid);
    const char state = pid > 0 ? states[pid] : '\0';
    requests_[pe] = {pid,
                     pid > 0 && state != 'T' && state != 't' && !waits_for_start(pe) && may_answer(board.phase),
                     false,
                     moves_of(board),
                     {}};
    std::uint32_t wanted = board.wanted.load(std::memory_order_relaxed);
    while (!board.wanted.compare_exchange_weak(wanted, with_report(wanted, request_), std::memory_order_release,
                                               std::memory_order_relaxed)) {
    }
    if (requests_[pe].expected) local::Doorbell(segment_->control(pe).sleeping).ring();
  }
  state_ = State::asking;
  until_ = now + timeout_ns + timeout_per_pe_ns * std::int64_t(requests_.size());
}

bool Reporter::all_answered() const {
  for (std::size_t pe = 0; pe < requests_.size(); ++pe) {
    if (requests_[pe].expected && report_area_of(*segment_, pe).given.load(std::memory_order_acquire) != request_)
      return false;
  }
  return true;
}

bool Reporter::all_stacks_written() const {
  for (std::size_t pe = 0; pe < requests_.size(); ++pe) {
    if (requests_[pe].signalled &&
        report_area_of(*segment_, pe).stack_given.load(std::memory_order_acquire) != request_) {
      return false;
    }
  }
  return true;
}

std::optional<std::vector<PeView>> Reporter::step(std::int64_t now) {
  if (state_ == State::asking && (all_answered() || now >= until_)) {
    signal_silent();
    state_ = State::signalling;
    until_ = now + timeout_ns;
  }
  if (state_ == State::signalling && (all_stacks_written() || now >= until_)) {
    name_stacks(now);
    state_ = State::naming;
  }
  if (state_ != State::naming || !symbols_->done(now)) return std::nullopt;
  state_ = State::idle;
  return views();
}

/// Signals threads that have not answered, so that they write their stacks. Never if the signal could end the
/// process: the pid must be of this pid namespace, and the process must have the handler.
void Reporter::signal_silent() {
  const std::uint64_t own_namespace = pid_namespace();
  std::map<pid_t, bool> can;
  for (std::size_t pe = 0; pe < requests_.size(); ++pe) {
    Request& request = requests_[pe];
    if (!request.expected || report_area_of(*segment_, pe).given.load(std::memory_order_acquire) == request_) continue;
    const ProcessRecord& process = process_record_of(*segment_, pe - pe % segment_->header().pes_per_process);
    const int signal = process.stack_signal.load(std::memory_order_relaxed);
    const pid_t thread = board_of(*segment_, pe).thread.load(std::memory_order_acquire);
    if (signal == 0 || thread == 0 || process.pid.load(std::memory_order_relaxed) != request.pid ||
        process.pid_namespace.load(std::memory_order_relaxed) != own_namespace) {
      continue;
    }
    if (!can.contains(request.pid)) can[request.pid] = catches(request.pid, signal);
    if (!can[request.pid] || (!disturb_ && !is_undisturbed_by_signals(request.pid, thread))) continue;
    request.signalled = syscall(SYS_tgkill, request.pid, thread, signal) == 0;
  }
}

void Reporter::name_stacks(std::int64_t now) {
  for (std::size_t pe = 0; pe < requests_.size(); ++pe) {
    const ReportArea& area = report_area_of(*segment_, pe);
    if (area.stack_given.load(std::memory_order_acquire) != request_) continue;
    const std::size_t depth = std::min<std::size_t>(area.stack_depth, ReportArea::stack_depth_max);
    requests_[pe].stack = symbols_->add(requests_[pe].pid, {area.stack, area.stack + depth}, area.stack_is_exact != 0);
  }
  symbols_->start(now, naming_timeout_ns + naming_timeout_per_pe_ns * std::int64_t(requests_.size()));
}

// --- views

std::vector<PeView> Reporter::views() const {
  std::vector<PeView> all;
  std::vector<std::uint32_t> absent;
  for (std::size_t pe = 0; pe < requests_.size(); ++pe) {
    all.push_back(view(pe));
    if (all.back().phase == Phase::starting && !all.back().meeting) absent.push_back(std::uint32_t(pe));
  }
  if (absent.size() > ReportArea::waits_for_max) absent.resize(ReportArea::waits_for_max);
  for (PeView& one : all) {
    if (one.meeting) one.report.waits_for = absent;
  }
  return all;
}

PeView Reporter::view(std::size_t pe) const {
  const Request& request = requests_[pe];
  PeView view = view_of(board_of(*segment_, pe));
  view.meeting = waits_for_start(pe);
  view.process = request.pid < 0 ? "ended" : fmt::format("pid {}", request.pid);
  if (request.expected && report_area_of(*segment_, pe).given.load(std::memory_order_acquire) == request_) {
    add_answer(view, pe);
  } else if (request.pid > 0) {
    add_silent(view, pe);
  }
  if (request.stack) view.stack = symbols_->text(*request.stack, frames_shown);
  return view;
}

void Reporter::add_answer(PeView& view, std::size_t pe) const {
  const ReportArea& area = report_area_of(*segment_, pe);
  view.answered = true;
  view.phase = area.phase;
  view.consistent = area.moves == moves_of(board_of(*segment_, pe));
  view.report.waits_for.assign(area.waits_for,
                               area.waits_for + std::min<std::size_t>(area.waits_for_count, ReportArea::waits_for_max));
  std::istringstream lines(std::string(area.text, std::min<std::size_t>(area.text_bytes, sizeof area.text)));
  for (std::string line; std::getline(lines, line);) view.report.lines.push_back(line);
}

/// Describes a PE that did not answer: the kernel's state of its thread, and unread frames in its inbox.
void Reporter::add_silent(PeView& view, std::size_t pe) const {
  const Request& request = requests_[pe];
  const PeBoard& board = board_of(*segment_, pe);
  view.consistent = request.moves == moves_of(board);
  const pid_t thread = board.thread.load(std::memory_order_relaxed);
  const char state = state_of(request.pid);
  if (state == 'T') view.state = "is stopped by a signal";
  if (state == 't') view.state = "is held by a debugger";
  if (request.expected && view.state.empty()) {
    const std::string where = thread != 0 ? sleeps_in(request.pid, thread) : "";
    if (waits(view.phase)) view.state = "does not answer";
    if (!waits(view.phase) && !where.empty()) view.state = fmt::format("sleeps in the kernel ({})", where);
  }
  struct Unread {
    std::uint64_t messages = 0, frames = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Unread> unread;
  local::for_each_unread(*segment_, pe, [&](const transport::FrameHeader& header) {
    if (header.kind != std::uint8_t(transport::FrameKind::messages)) return;
    Unread& counts = unread[{header.handler, header.source}];
    counts.messages += header.count;
    ++counts.frames;
  });
  for (const auto& [key, counts] : unread) {
    const auto& [handler, source] = key;
    std::string name = fmt::format("aggregator number {}", handler);
    // The handler may not have run on this PE; other boards may have its name.
    for (const std::size_t other : {pe, std::size_t(source), std::size_t(0)}) {
      if (handler >= handler_names_max || other >= requests_.size()) continue;
      if (const char* known = board_of(*segment_, other).handler_names[handler]; known[0] != 0) {
        name = known;
        break;
      }
    }
    if (view.report.lines.size() == lines_unread_max) break;
    view.report.lines.push_back(
        fmt::format("{} of {} in {} from PE {} {} not handled yet", base::counted(counts.messages, "message"), name,
                    base::counted(counts.frames, "frame"), source, base::by_number(counts.messages, "is", "are")));
  }
}

}  // namespace headway::report
