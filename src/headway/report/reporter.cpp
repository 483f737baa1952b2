#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <headway/report/attendance.hpp>
#include <headway/report/reporter.hpp>
#include <headway/report/system_state.hpp>
#include <headway/base/counted.hpp>
#include <headway/transport/local/local.hpp>
#include <map>
#include <sstream>

namespace headway::report {
namespace {

constexpr std::int64_t patience_ns = 200'000'000;
constexpr std::int64_t patience_per_pe_ns = 4'000'000;  // many PEs on few cores take their time
constexpr std::int64_t naming_patience_ns = 2'000'000'000, naming_patience_per_pe_ns = 50'000'000;
constexpr std::size_t frames_shown = 8, lines_unread_max = 12;

/// Answers as PEs outside the library never give one.
bool may_answer(Phase phase) { return phase != Phase::starting && phase != Phase::finished; }

}  // namespace

Reporter::Reporter(const local::Segment& segment) : segment_(&segment), asked_(segment.header().pes) {}

bool Reporter::meets(std::size_t pe) const {
  const std::size_t first = pe - pe % segment_->header().pes_per_process;
  return attendance_of(*segment_, first).meeting.load(std::memory_order_relaxed) != 0;
}

void Reporter::begin(std::int64_t now, const PidOf& pid_of, bool disturb) {
  disturb_ = disturb;
  ++request_;
  symbols_ = std::make_unique<Symbols>();
  std::map<pid_t, char> states;
  for (std::size_t pe = 0; pe < asked_.size(); ++pe) {
    PeBoard& board = board_of(*segment_, pe);
    const pid_t pid = pid_of(pe / segment_->header().pes_per_process);
    if (pid > 0 && !states.contains(pid)) states[pid] = state_of(pid);
    const char state = pid > 0 ? states[pid] : '\0';
    asked_[pe] = {pid,
                  pid > 0 && state != 'T' && state != 't' && !meets(pe) && may_answer(board.phase),
                  false,
                  moves_of(board),
                  {}};
    board.report_wanted.store(request_, std::memory_order_release);
    if (asked_[pe].expected) local::Doorbell(segment_->control(pe).sleeping).ring();
  }
  stage_ = Stage::asking;
  until_ = now + patience_ns + patience_per_pe_ns * std::int64_t(asked_.size());
}

bool Reporter::all_answered() const {
  for (std::size_t pe = 0; pe < asked_.size(); ++pe) {
    if (asked_[pe].expected && report_area_of(*segment_, pe).given.load(std::memory_order_acquire) != request_)
      return false;
  }
  return true;
}

bool Reporter::all_stacks_there() const {
  for (std::size_t pe = 0; pe < asked_.size(); ++pe) {
    if (asked_[pe].signalled && report_area_of(*segment_, pe).stack_given.load(std::memory_order_acquire) != request_) {
      return false;
    }
  }
  return true;
}

std::optional<std::vector<PeView>> Reporter::step(std::int64_t now) {
  if (stage_ == Stage::asking && (all_answered() || now >= until_)) {
    signal_silent();
    stage_ = Stage::signalling;
    until_ = now + patience_ns;
  }
  if (stage_ == Stage::signalling && (all_stacks_there() || now >= until_)) {
    name_stacks(now);
    stage_ = Stage::naming;
  }
  if (stage_ != Stage::naming || !symbols_->done(now)) return std::nullopt;
  stage_ = Stage::idle;
  return views();
}

/// Makes threads that have not answered write down their stacks. Never where the signal could end the process: its
/// number means something only in the same pid namespace, and only while a handler is there.
void Reporter::signal_silent() {
  const std::uint64_t own_namespace = pid_namespace();
  std::map<pid_t, bool> can;
  for (std::size_t pe = 0; pe < asked_.size(); ++pe) {
    Asked& asked = asked_[pe];
    if (!asked.expected || report_area_of(*segment_, pe).given.load(std::memory_order_acquire) == request_) continue;
    const Attendance& process = attendance_of(*segment_, pe - pe % segment_->header().pes_per_process);
    const int signal = process.stack_signal.load(std::memory_order_relaxed);
    const pid_t thread = board_of(*segment_, pe).thread.load(std::memory_order_acquire);
    if (signal == 0 || thread == 0 || process.pid.load(std::memory_order_relaxed) != asked.pid ||
        process.pid_namespace.load(std::memory_order_relaxed) != own_namespace) {
      continue;
    }
    if (!can.contains(asked.pid)) can[asked.pid] = catches(asked.pid, signal);
    if (!can[asked.pid] || (!disturb_ && !is_undisturbed_by_signals(asked.pid, thread))) continue;
    asked.signalled = syscall(SYS_tgkill, asked.pid, thread, signal) == 0;
  }
}

void Reporter::name_stacks(std::int64_t now) {
  for (std::size_t pe = 0; pe < asked_.size(); ++pe) {
    const ReportArea& area = report_area_of(*segment_, pe);
    if (area.stack_given.load(std::memory_order_acquire) != request_) continue;
    const std::size_t depth = std::min<std::size_t>(area.stack_depth, ReportArea::stack_depth_max);
    asked_[pe].stack = symbols_->add(asked_[pe].pid, {area.stack, area.stack + depth}, area.stack_is_exact != 0);
  }
  symbols_->start(now, naming_patience_ns + naming_patience_per_pe_ns * std::int64_t(asked_.size()));
}

// --- what is shown

std::vector<PeView> Reporter::views() const {
  std::vector<PeView> all;
  std::vector<std::uint32_t> absent;
  for (std::size_t pe = 0; pe < asked_.size(); ++pe) {
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
  const Asked& asked = asked_[pe];
  PeView view = view_of(board_of(*segment_, pe));
  view.meeting = meets(pe);
  view.who = asked.pid < 0 ? "ended" : fmt::format("pid {}", asked.pid);
  if (asked.expected && report_area_of(*segment_, pe).given.load(std::memory_order_acquire) == request_) {
    add_answer(view, pe);
  } else if (asked.pid > 0) {
    add_silent(view, pe);
  }
  if (asked.stack) view.stack = symbols_->text(*asked.stack, frames_shown);
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

/// What can be seen from outside: the system's word for the thread, and what lies unread before it.
void Reporter::add_silent(PeView& view, std::size_t pe) const {
  const Asked& asked = asked_[pe];
  const PeBoard& board = board_of(*segment_, pe);
  view.consistent = asked.moves == moves_of(board);
  const pid_t thread = board.thread.load(std::memory_order_relaxed);
  const char state = state_of(asked.pid);
  if (state == 'T') view.state = "is stopped by a signal";
  if (state == 't') view.state = "is held by a debugger";
  if (asked.expected && view.state.empty()) {
    const std::string where = thread != 0 ? sleeps_in(asked.pid, thread) : "";
    if (waits(view.phase)) view.state = "does not answer";
    if (!waits(view.phase) && !where.empty()) view.state = fmt::format("sleeps in the kernel ({})", where);
  }
  struct Pile {
    std::uint64_t messages = 0, frames = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Pile> unread;
  local::for_each_unread(*segment_, pe, [&](const FrameHeader& header) {
    if (header.kind != std::uint8_t(FrameKind::messages)) return;
    Pile& pile = unread[{header.handler, header.source}];
    pile.messages += header.count;
    ++pile.frames;
  });
  for (const auto& [key, pile] : unread) {
    const auto& [handler, source] = key;
    std::string name = fmt::format("aggregator number {}", handler);
    // Where it has not run here yet, it may have elsewhere.
    for (const std::size_t other : {pe, std::size_t(source), std::size_t(0)}) {
      if (handler >= handler_names_max || other >= asked_.size()) continue;
      if (const char* known = board_of(*segment_, other).handler_names[handler]; known[0] != 0) {
        name = known;
        break;
      }
    }
    if (view.report.lines.size() == lines_unread_max) break;
    view.report.lines.push_back(fmt::format("{} of {} in {} from PE {} {} not handled yet",
                                            counted(pile.messages, "message"), name, counted(pile.frames, "frame"),
                                            source, by_number(pile.messages, "is", "are")));
  }
}

}  // namespace headway::report
