#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <headway/am/hosts_run.hpp>
#include <headway/am/run.hpp>
#include <headway/base/error.hpp>
#include <headway/transport/wire/meeting.hpp>
#include <string_view>
#include <thread>

extern char** environ;

namespace headway::am {
namespace {

using Clock = std::chrono::steady_clock;

// Processes have so long to say themselves why they end, and those that are told to end so long before they are killed.
constexpr auto patience = std::chrono::milliseconds(500);
constexpr int look_ms = 20;

std::atomic<int> asked_to_end{0};  // by this signal
void note_signal(int signal) { asked_to_end = signal; }

/// While it exists Ctrl-C and SIGTERM are noted instead of ending this process.
class SignalsNoted {
 public:
  SignalsNoted() {
    asked_to_end = 0;
    struct sigaction action {};
    action.sa_handler = note_signal;
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  SignalsNoted(const SignalsNoted&) = delete;
  SignalsNoted& operator=(const SignalsNoted&) = delete;
  ~SignalsNoted() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

/// As one word of a shell.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string this_host() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

struct Process {
  pid_t pid = -1;  // -1: has ended
  std::string host;
};

class Hosts {
 public:
  Hosts(const Settings& settings, const LaunchOptions& options, const std::vector<std::string>& command)
      : options_(options),
        command_(command),
        place_(std::uint32_t(settings.processes()), !options.hosts.empty()),
        processes_(settings.processes()) {}
  ~Hosts() { kill_all(SIGKILL); }

  int run() {
    const SignalsNoted noted;
    for (std::size_t process = 0; process < processes_.size(); ++process) start(process);
    while (std::ranges::any_of(processes_, [](const Process& p) { return p.pid > 0; })) {
      place_.serve(look_ms);
      for (std::size_t process = 0; process < processes_.size(); ++process) look_at(process);
      if (place_.aborted() >= 0) end_others(place_.aborted(), "");
      if (place_.lost()) {
        end_others(exit_status::failed,
                   fmt::format("{} can no longer be reached: {}", name_of(place_.lost()->process), place_.lost()->why));
      }
      if (asked_to_end != 0) end_others(128 + asked_to_end, "");
      if (ending_ && Clock::now() > terminate_at_) kill_all(SIGTERM);
      if (ending_ && Clock::now() > terminate_at_ + patience) kill_all(SIGKILL);
    }
    return status_;
  }

 private:
  void start(std::size_t process) {
    Process& one = processes_[process];
    const bool remote = !options_.hosts.empty();
    if (remote) one.host = options_.hosts[process * options_.hosts.size() / processes_.size()];
    const std::string invitation =
        fmt::format("{}={}", meeting_variable,
                    place_.invitation(remote ? this_host() : "127.0.0.1", std::uint32_t(process)).text());
    std::vector<std::string> words = remote ? over_agent(one.host, invitation) : command_;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    one.pid = fork();
    if (one.pid < 0) throw_errno("fork");
    if (one.pid != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(exit_status::failed);
    if (process != 0) {  // standard input is process 0's
      const int nothing = open("/dev/null", O_RDONLY);
      if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    }
    if (!remote) putenv(const_cast<char*>(invitation.c_str()));
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "headway: {} cannot be started: {}\n", arguments[0], std::strerror(errno));
    _exit(127);
  }

  /// AGENT HOST 'cd HERE && env VARIABLES PROGRAM ARGUMENTS'
  std::vector<std::string> over_agent(const std::string& host, const std::string& invitation) const {
    std::string line = fmt::format("cd {} && exec env {}", quoted(current_folder()), quoted(invitation));
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      if (text.starts_with("HEADWAY_") || text.starts_with("UCX_") || text.starts_with("LD_LIBRARY_PATH="))
        line += " " + quoted(text);
    }
    for (const std::string& word : command_) line += " " + quoted(word);
    return {options_.agent, host, line};
  }

  static std::string current_folder() {
    char folder[PATH_MAX] = "";
    if (getcwd(folder, sizeof folder) == nullptr) throw_errno("getcwd");
    return folder;
  }

  std::string name_of(std::size_t process) const {
    const std::string& host = processes_[process].host;
    return fmt::format("process {}{}", process, host.empty() ? "" : " on " + host);
  }

  void look_at(std::size_t process) {
    Process& one = processes_[process];
    int status = 0;
    const pid_t pid = one.pid;
    if (pid <= 0 || waitpid(pid, &status, WNOHANG) != pid) return;
    one.pid = -1;
    if (ending_) return;
    const std::string who = name_of(process);
    if (WIFSIGNALED(status)) {
      end_others(exit_status::failed,
                 fmt::format("{} was ended by signal {} ({})", who, WTERMSIG(status), strsignal(WTERMSIG(status))));
    } else if (WEXITSTATUS(status) == 0 && place_.arrived() < processes_.size()) {
      end_others(exit_status::failed, fmt::format("{} ended without having called headway::run()", who));
    } else if (WEXITSTATUS(status) != 0) {
      // It has said why, or its PEs' status is the run's, which all processes know.
      if (status_ == 0) status_ = WEXITSTATUS(status);
      if (WEXITSTATUS(status) >= exit_status::unusable_settings || place_.arrived() < processes_.size())
        end_others(status_, "");
    }
  }

  void end_others(int status, const std::string& why) {
    if (ending_) return;
    ending_ = true;
    status_ = status;
    if (!why.empty()) fmt::print(stderr, "headway: {}\n", why);
    terminate_at_ = Clock::now() + (why.empty() ? patience : Clock::duration());
  }

  void kill_all(int signal) {
    for (const Process& process : processes_) {
      if (process.pid > 0) kill(process.pid, signal);
    }
  }

  LaunchOptions options_;
  std::vector<std::string> command_;
  wire::MeetingPlace place_;
  std::vector<Process> processes_;
  bool ending_ = false;
  int status_ = 0;
  Clock::time_point terminate_at_;
};

}  // namespace

int run_over_hosts(const Settings& settings, const LaunchOptions& options, const std::vector<std::string>& command) {
  if (settings.processes() < options.hosts.size()) {
    throw SettingError(fmt::format("--hosts names {} hosts, and this run has {} process{}: allowed are at most so many",
                                   options.hosts.size(), settings.processes(), settings.processes() == 1 ? "" : "es"));
  }
  return Hosts(settings, options, command).run();
}

}  // namespace headway::am
