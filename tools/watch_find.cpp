// SPDX-License-Identifier: BSD-3-Clause
#include "watch_find.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace headway::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view link_of_segment = "/memfd:headway (deleted)";

std::optional<int> number_of(const fs::path& path) {
  const std::string name = path.filename();
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

fs::path folder_of(pid_t pid) { return fmt::format("/proc/{}", pid); }

std::vector<pid_t> all_processes() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    if (const auto pid = number_of(at->path())) pids.push_back(*pid);
  }
  std::ranges::sort(pids);
  return pids;
}

bool is_of_this_user(pid_t pid) {
  struct stat status {};
  return stat(folder_of(pid).c_str(), &status) == 0 && status.st_uid == geteuid();
}

/// Adds the shared memories that a process has open. False if its descriptors cannot be read.
bool add_runs_of(pid_t pid, std::vector<FoundRun>& runs) {
  std::error_code error;
  for (fs::directory_iterator at(folder_of(pid) / "fd", error), end; !error && at != end; at.increment(error)) {
    std::error_code closed;
    if (fs::read_symlink(at->path(), closed).native() != link_of_segment || closed) continue;
    struct stat status {};
    if (stat(at->path().c_str(), &status) != 0) continue;
    const auto is_same = [&](const FoundRun& run) { return run.device == status.st_dev && run.inode == status.st_ino; };
    auto run = std::ranges::find_if(runs, is_same);
    if (run == runs.end()) run = runs.insert(run, FoundRun{status.st_dev, status.st_ino, {}});
    if (run->holders.empty() || run->holders.back().pid != pid)
      run->holders.push_back({pid, number_of(at->path()).value_or(-1)});
  }
  return !error;
}

/// 0 if unknown.
pid_t parent_of(pid_t pid) {
  std::ifstream file(folder_of(pid) / "stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name before it may contain anything
  if (name_end == std::string::npos || name_end + 4 > text.size()) return 0;
  return pid_t(std::strtol(text.c_str() + name_end + 4, nullptr, 10));
}

bool descends_from(pid_t pid, pid_t ancestor) {
  for (int generations = 0; pid > 1 && generations < 1000; ++generations) {
    pid = parent_of(pid);
    if (pid == ancestor) return true;
  }
  return false;
}

}  // namespace

bool FoundRun::is_open_in(const Holder& holder) const {
  struct stat status {};
  return stat(fmt::format("/proc/{}/fd/{}", holder.pid, holder.descriptor).c_str(), &status) == 0 &&
         status.st_dev == device && status.st_ino == inode;
}

std::string program_of(pid_t pid) {
  std::error_code error;
  return fs::read_symlink(folder_of(pid) / "exe", error);
}

std::vector<FoundRun> find_runs() {
  std::vector<FoundRun> runs;
  for (const pid_t pid : all_processes()) {
    if (is_of_this_user(pid)) add_runs_of(pid, runs);
  }
  return runs;
}

std::vector<FoundRun> find_runs_of(pid_t pid) {
  std::vector<FoundRun> runs;
  if (!fs::exists(folder_of(pid))) throw SettingError(fmt::format("PID: there is no process {}", pid));
  const bool readable = add_runs_of(pid, runs);
  if (!runs.empty()) return runs;
  for (const pid_t other : all_processes()) {
    if (descends_from(other, pid)) add_runs_of(other, runs);
  }
  if (!runs.empty()) return runs;
  if (!readable)
    throw SettingError(fmt::format("PID: process {} is of another user, and its descriptors cannot be read", pid));
  const std::string program = program_of(pid);
  throw SettingError(fmt::format("PID: process {}{} has no part in a run of Headway, nor have its descendants", pid,
                                 program.empty() ? "" : fmt::format(" ({})", program)));
}

}  // namespace headway::tools
