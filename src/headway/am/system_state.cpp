#include <fmt/format.h>
#include <sys/syscall.h>

#include <cstdint>
#include <fstream>
#include <headway/am/system_state.hpp>

namespace headway::am {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
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
  switch (std::stol(text)) {  // see signal(7) on SA_RESTART; sleeps and poll() are not among them
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

}  // namespace headway::am
