// SPDX-License-Identifier: BSD-3-Clause
#include "watched_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/report/process_record.hpp>
#include <headway/report/system_state.hpp>
#include <optional>
#include <sstream>
#include <utility>

namespace headway::tools {
namespace {

/// The pid of a process in its own namespace.
pid_t own_pid_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream numbers(line.substr(6));
    for (pid_t number; numbers >> number;) pid = number;  // from the outermost namespace to its own
    break;
  }
  return pid;
}

std::optional<std::uint64_t> resident_bytes_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  std::uint64_t size = 0, resident = 0;
  if (!(file >> size >> resident)) return std::nullopt;
  return resident * std::uint64_t(sysconf(_SC_PAGESIZE));
}

/// Attaches by the descriptor of another process.
std::unique_ptr<local::Segment> attach(const FoundRun& found) {
  const FoundRun::Holder& holder = found.holders.front();
  const std::string path = fmt::format("/proc/{}/fd/{}", holder.pid, holder.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0)
    throw SettingError(
        fmt::format("the shared memory of process {} cannot be opened: {}", holder.pid, std::strerror(errno)));
  std::unique_ptr<local::Segment> segment;
  try {
    segment = std::make_unique<local::Segment>(descriptor);
  } catch (const SettingError&) {
    close(descriptor);
    throw SettingError(fmt::format("process {} runs with another version of Headway than this command", holder.pid));
  }
  // Another watcher must not take this process for a part of the run. The mapping stays.
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || dup3(nothing, descriptor, O_CLOEXEC) < 0) base::throw_errno("open of /dev/null");
  close(nothing);
  return segment;
}

std::uint64_t count_of(std::uint64_t created) { return std::int64_t(created) < 0 ? 0 : created; }

}  // namespace

WatchedRun::WatchedRun(FoundRun found) : found_(std::move(found)), segment_(attach(found_)), seen_(pes()) {
  for (const FoundRun::Holder& holder : found_.holders) pids_here_[own_pid_of(holder.pid)] = holder.pid;
}

const report::PeBoard& WatchedRun::board(std::size_t pe) const { return report::board_of(*segment_, pe); }

std::string WatchedRun::program() const {
  const char* const text = board(0).program;
  const std::string path(text, strnlen(text, sizeof board(0).program));
  return path.empty() ? program_of(found_.holders.back().pid) : path;
}

bool WatchedRun::has_ended() const {
  return std::ranges::none_of(found_.holders, [&](const auto& holder) { return found_.is_open_in(holder); });
}

void WatchedRun::sample() {
  if (is_simulated()) return;
  for (std::size_t pe = 0; pe < pes(); ++pe) {
    Seen& seen = seen_[pe];
    const report::Phase phase = board(pe).phase.load(std::memory_order_relaxed);
    ++seen.samples;
    if (report::waits(phase)) ++seen.waiting;
    if (phase == report::Phase::handling) ++seen.handling;
  }
}

void WatchedRun::take(std::size_t pe) {
  const auto answer = report::statistics_of(board(pe));
  if (!answer) return;
  Seen& seen = seen_[pe];
  seen.newest = *answer;
  if (!seen.has_answered) seen.shown = *answer;
  seen.has_answered = true;
}

void WatchedRun::ask() {
  for (std::size_t pe = 0; pe < pes(); ++pe) report::ask_for_statistics(report::board_of(*segment_, pe));
}

void WatchedRun::take() {
  for (std::size_t pe = 0; pe < pes(); ++pe) take(pe);
}

/// 0 if unknown.
pid_t WatchedRun::process_of(std::size_t pe) const {
  const std::size_t first = segment_->header().simulated != 0 ? 0 : pe - pe % segment_->header().pes_per_process;
  const report::ProcessRecord& record = report::process_record_of(*segment_, first);
  const pid_t pid = record.pid.load(std::memory_order_acquire);
  if (record.pid_namespace.load(std::memory_order_relaxed) == report::pid_namespace()) return pid;
  const auto here = pids_here_.find(pid);
  return here == pids_here_.end() ? 0 : here->second;
}

void WatchedRun::add_to(View& view) {
  std::map<pid_t, std::optional<std::uint64_t>> resident;
  std::map<pid_t, char> states;
  for (std::size_t pe = 0; pe < pes(); ++pe) {
    take(pe);
    Seen& seen = seen_[pe];
    const report::Phase phase = board(pe).phase.load(std::memory_order_relaxed);
    WatchedPe shown;
    shown.pe = segment_->header().first_pe + pe;
    shown.pid = process_of(pe);
    if (shown.pid != 0 && !resident.contains(shown.pid)) {
      resident[shown.pid] = resident_bytes_of(shown.pid);
      states[shown.pid] = report::state_of(shown.pid);
    }
    const char state = states[shown.pid];
    shown.resident_bytes = resident[shown.pid];
    shown.state = state == 'T' || state == 't' ? "is stopped" : report::describe(phase);
    if (seen.has_answered) {
      shown.rates = rates_between(seen.shown, seen.newest);
      shown.frames = seen.newest.frames;
      shown.buffer_bytes = seen.newest.buffer_bytes;
      shown.memory_bytes = seen.newest.memory_bytes;
      shown.budget_bytes = seen.newest.budget_bytes;
      shown.spill_bytes = seen.newest.spill_bytes;
      shown.spilled_frames = seen.newest.spilled_frames;
    }
    // On the board they are at least as new as in the answer.
    shown.messages = count_of(board(pe).created.load(std::memory_order_relaxed));
    shown.handled = board(pe).handled.load(std::memory_order_relaxed);
    const bool runs = phase != report::Phase::starting && phase != report::Phase::finished;
    if (seen.samples > 0 && runs) {
      shown.waiting = double(seen.waiting) / seen.samples;
      shown.handling = double(seen.handling) / seen.samples;
    }
    view.pes.push_back(std::move(shown));
    seen.shown = seen.newest;
    seen.samples = seen.waiting = seen.handling = 0;
  }
}

}  // namespace headway::tools
