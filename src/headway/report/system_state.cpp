// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sys/syscall.h>

#include <cstdint>
#include <fstream>
#include <headway/report/system_state.hpp>
#include <optional>

namespace headway::report {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
}

/// The number after `name` in a file of lines "NAME NUMBER".
std::optional<std::uint64_t> number_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string found;
  for (std::uint64_t value = 0; file >> found >> value;) {
    if (found == name) return value;
  }
  return std::nullopt;
}

}  // namespace

char state_of(pid_t process, pid_t thread) {
  const std::string text = first_line(thread == 0 ? fmt::format("/proc/{}/stat", process)
                                                  : fmt::format("/proc/{}/task/{}/stat", process, thread));
  const auto name_end = text.rfind(')');
  return name_end != text.npos && name_end + 2 < text.size() ? text[name_end + 2] : '\0';
}

bool catches(pid_t process, int signal) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("SigCgt:")) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

bool is_undisturbed_by_signals(pid_t process, pid_t thread) {
  const std::string text = first_line(fmt::format("/proc/{}/task/{}/syscall", process, thread));
  if (text.starts_with("running")) return true;
  if (text.empty() || text[0] < '0' || text[0] > '9') return state_of(process, thread) == 'R';
  switch (std::stol(text)) {  // restarted after a signal, see signal(7); sleeps and poll() are not
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_flock:
    case SYS_futex: return true;
    default: return false;
  }
}

std::string sleeps_in(pid_t process, pid_t thread) {
  const std::string text = first_line(fmt::format("/proc/{}/task/{}/wchan", process, thread));
  return text == "0" ? "" : text;
}

std::uint64_t killed_for_memory() {
  std::ifstream groups("/proc/self/cgroup");  // lines "NUMBER:CONTROLLERS:PATH"
  for (std::string line; std::getline(groups, line);) {
    const auto controllers = line.find(':'), path = line.find(':', controllers + 1);
    if (path == line.npos) continue;
    const bool v2 = line.starts_with("0::");
    if (!v2 && line.find("memory") > path) continue;
    const std::string file = v2 ? "/sys/fs/cgroup" + line.substr(path + 1) + "/memory.events"
                                : "/sys/fs/cgroup/memory" + line.substr(path + 1) + "/memory.oom_control";
    if (const auto count = number_in(file, "oom_kill")) return *count;
  }
  return number_in("/proc/vmstat", "oom_kill").value_or(0);
}

}  // namespace headway::report
