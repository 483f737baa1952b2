// SPDX-License-Identifier: BSD-3-Clause
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
#include <functional>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/launch/hosts_run.hpp>
#include <headway/launch/run.hpp>
#include <headway/transport/wire/meeting.hpp>
#include <optional>
#include <string_view>
#include <thread>

namespace headway::launch {
namespace {

using Clock = std::chrono::steady_clock;

// Time for a process to print why it ends, and then to end after SIGTERM, before SIGKILL.
constexpr auto grace_period = std::chrono::milliseconds(500);
// Two hosts detect a cut cable up to a second apart. Both should report it.
constexpr auto loss_grace_period = std::chrono::milliseconds(1500);
constexpr int check_interval_ms = 20;

// The first process has this multiple of the start limit: programs may work long before they call run().
constexpr int first_limits = 10;

std::atomic<int> end_signal{0};  // the signal that asked this process to end; 0: none
void record_signal(int signal) { end_signal = signal; }

/// While it exists, SIGINT and SIGTERM are recorded instead of ending this process.
class SignalRecorder {
 public:
  SignalRecorder() {
    end_signal = 0;
    struct sigaction action {};
    action.sa_handler = record_signal;
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  SignalRecorder(const SignalRecorder&) = delete;
  SignalRecorder& operator=(const SignalRecorder&) = delete;
  ~SignalRecorder() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

/// Quotes the text as one word of a shell.
std::string shell_quoted(std::string_view text) {
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
  // Set after it has ended with `status`: until then the cause may still be reported.
  std::optional<Clock::time_point> judged_at = {};
  int status = 0;
};

/// Gives a process of another host one line, and then this process's standard input. The line holds a secret that
/// must not appear in process lists.
class Input {
 public:
  ~Input() { end(); }

  /// Returns the standard input for a new process: the line and, if `all`, this process's input after it.
  int open(const std::string& line, bool all) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) base::throw_errno("pipe2");
    // shorter than the buffer of a pipe
    const bool written = write(ends[1], line.data(), line.size()) == ssize_t(line.size());
    if (all && written) {
      const pid_t parent = getpid();
      relay_ = fork();
      if (relay_ == 0) relay(ends[0], ends[1], parent);
    }
    close(ends[1]);
    if (!written || (all && relay_ < 0)) base::throw_errno("the standard input of a process");
    return ends[0];
  }
  void end() {
    if (relay_ <= 0) return;
    kill(relay_, SIGKILL);
    waitpid(relay_, nullptr, 0);
    relay_ = -1;
  }

 private:
  [[noreturn]] static void relay(int other_end, int to, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    signal(SIGINT, SIG_IGN);  // it ends with its parent
    close(other_end);
    char buffer[1 << 16];
    for (ssize_t got; (got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0;) {
      for (ssize_t at = 0; at < got;) {
        const ssize_t written = write(to, buffer + at, std::size_t(got - at));
        if (written <= 0) _exit(1);
        at += written;
      }
    }
    _exit(0);
  }
  pid_t relay_ = -1;
};

class Hosts {
 public:
  /// Processes of other hosts execute `command`; so do local ones without `child_body`.
  Hosts(const base::Settings& settings, const LaunchOptions& options, const std::vector<std::string>& command,
        const std::function<int()>& child_body = nullptr)
      : options_(options),
        command_(command),
        child_body_(child_body),
        place_(std::uint32_t(settings.processes()), !options.hosts.empty()),
        processes_(settings.processes()) {}
  ~Hosts() {
    kill_all(SIGKILL);
    for (const Process& process : processes_) {
      if (process.pid > 0) waitpid(process.pid, nullptr, 0);
    }
  }

  int run() {
    signals_.emplace();
    started_at_ = Clock::now();
    for (std::size_t process = 0; process < processes_.size(); ++process) start(process);
    while (std::ranges::any_of(processes_, [](const Process& p) { return p.pid > 0 || p.judged_at; })) {
      place_.serve(check_interval_ms);
      for (std::size_t process = 0; process < processes_.size(); ++process) check_process(process);
      if (place_.aborted() >= 0) end_others(place_.aborted(), "");
      for (; losses_reported_ < place_.lost().size(); ++losses_reported_) {
        const auto& [process, why] = place_.lost()[losses_reported_];
        fmt::print(stderr, "headway: {} can no longer be reached: {}\n", name_of(process), why);
        end_others(exit_status::failed, "", loss_grace_period);
      }
      judge();
      check_start_limit();
      if (end_signal != 0) end_others(128 + end_signal, "");
      if (ending_ && Clock::now() > terminate_at_) kill_all(SIGTERM);
      if (ending_ && Clock::now() > terminate_at_ + grace_period) kill_all(SIGKILL);
    }
    return status_;
  }

 private:
  void start(std::size_t process) {
    Process& one = processes_[process];
    const bool remote = !options_.hosts.empty();
    if (remote) one.host = options_.hosts[process * options_.hosts.size() / processes_.size()];
    const std::string address = !remote ? "127.0.0.1" : options_.address.empty() ? this_host() : options_.address;
    const std::string invitation = place_.invitation(address, std::uint32_t(process)).text();
    std::vector<std::string> words = remote ? agent_command(one.host) : command_;
    if (child_body_) std::fflush(nullptr);  // children must not write this process's buffers again
    const int input = remote ? input_.open(invitation + "\n", process == 0) : -1;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    one.pid = fork();
    if (one.pid < 0) base::throw_errno("fork");
    if (one.pid != 0) {
      if (input >= 0) close(input);
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(exit_status::failed);
    if (remote) {
      dup2(input, STDIN_FILENO);
    } else if (process != 0) {  // only process 0 gets the standard input
      const int nothing = open("/dev/null", O_RDONLY);
      if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    }
    if (!remote) setenv(base::meeting_variable, invitation.c_str(), 1);
    if (child_body_) {
      signals_.reset();
      place_.forget();
      _exit(child_body_());
    }
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "headway: {} cannot be started: {}\n", arguments[0], std::strerror(errno));
    _exit(127);
  }

  /// AGENT HOST LINE. The shell line reads the invitation from standard input: arguments are visible to all users of
  /// a host.
  std::vector<std::string> agent_command(const std::string& host) const {
    std::string line = fmt::format("IFS= read -r {0} && export {0} && cd {1} && exec env", base::meeting_variable,
                                   shell_quoted(current_folder()));
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      if (text.starts_with("HEADWAY_") || text.starts_with("UCX_") || text.starts_with("LD_LIBRARY_PATH="))
        line += " " + shell_quoted(text);
    }
    for (const std::string& word : command_) line += " " + shell_quoted(word);
    line = "exec sh -c " + shell_quoted(line);  // also if the user's shell there is not sh
    if (!options_.agent.empty()) return {options_.agent, host, line};
    return {"ssh", "-o", "ConnectTimeout=4", host, line};
  }

  static std::string current_folder() {
    char folder[PATH_MAX] = "";
    if (getcwd(folder, sizeof folder) == nullptr) base::throw_errno("getcwd");
    return folder;
  }

  std::string name_of(std::size_t process) const {
    const std::string& host = processes_[process].host;
    return fmt::format("process {}{}", process, host.empty() ? "" : " on " + host);
  }

  void check_process(std::size_t process) {
    Process& one = processes_[process];
    int status = 0;
    const pid_t pid = one.pid;
    if (pid <= 0 || waitpid(pid, &status, WNOHANG) != pid) return;
    one.pid = -1;
    if (ending_) return;
    const std::string who = name_of(process);
    const auto state = place_.state(process);
    one.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (WIFSIGNALED(status)) {
      end_others(exit_status::failed,
                 fmt::format("{} was ended by signal {} ({})", who, WTERMSIG(status), strsignal(WTERMSIG(status))));
    } else if (state == wire::MeetingPlace::State::awaited && place_.arrived() < processes_.size()) {
      end_without_run(who, one);
    } else {
      one.judged_at = Clock::now() + loss_grace_period;
    }
  }

  void end_without_run(const std::string& who, const Process& one) {
    if (one.status == 0) return end_others(exit_status::failed, who + " ended without having called headway::run()");
    // the process has printed the reason
    if (one.status == exit_status::unusable_settings) return end_others(one.status, "");
    const bool by_ssh = !one.host.empty() && options_.agent.empty();
    const char* const hint = one.status == 127             ? ": the program is not there, or cannot be started"
                             : one.status == 255 && by_ssh ? ": ssh does not reach that host"
                                                           : "";
    end_others(one.status,
               fmt::format("{} ended with status {} before it had come to headway::run(){}", who, one.status, hint));
  }

  /// Finds the cause for processes that have ended. A process that has left the run has the status of all.
  void judge() {
    for (std::size_t process = 0; process < processes_.size(); ++process) {
      Process& one = processes_[process];
      if (!one.judged_at) continue;
      using State = wire::MeetingPlace::State;
      const State state = place_.state(process);
      const bool left = state == State::left || state == State::lost;
      if (!left && state != State::gone && Clock::now() < *one.judged_at) continue;
      one.judged_at.reset();
      if (!left) {
        end_others(exit_status::failed,
                   fmt::format("{} ended with status {} in the middle of the run", name_of(process), one.status));
      } else if (one.status != 0) {
        if (status_ == 0) status_ = one.status;
        if (one.status >= exit_status::unusable_settings) end_others(status_, "");
      }
    }
  }

  /// Ends the run if processes do not arrive in time: a host may not answer, or its agent may wait for input.
  void check_start_limit() {
    if (ending_ || place_.arrived() == processes_.size()) return;
    if (place_.arrived() > 0 && !first_came_at_) first_came_at_ = Clock::now();
    const auto limit =
        first_came_at_ ? *first_came_at_ + options_.start_limit : started_at_ + first_limits * options_.start_limit;
    if (Clock::now() < limit) return;
    std::vector<std::string> missing;
    for (std::size_t process = 0; process < processes_.size(); ++process) {
      if (place_.state(process) == wire::MeetingPlace::State::awaited) missing.push_back(name_of(process));
    }
    end_others(exit_status::failed, fmt::format("{} {} not come to headway::run() within {} s{} (--start-limit)",
                                                fmt::join(missing, ", "), missing.size() == 1 ? "has" : "have",
                                                options_.start_limit.count() * (first_came_at_ ? 1 : first_limits),
                                                first_came_at_ ? " of the first" : ""));
  }

  void end_others(int status, const std::string& why, Clock::duration grace = grace_period) {
    if (ending_) return;
    ending_ = true;
    status_ = status;
    if (!why.empty()) fmt::print(stderr, "headway: {}\n", why);
    terminate_at_ = Clock::now() + (why.empty() ? grace : Clock::duration());
  }

  void kill_all(int signal) {
    for (const Process& process : processes_) {
      if (process.pid > 0) kill(process.pid, signal);
    }
  }

  LaunchOptions options_;
  std::vector<std::string> command_;
  std::function<int()> child_body_;
  std::optional<SignalRecorder> signals_;
  wire::MeetingPlace place_;
  std::vector<Process> processes_;
  Input input_;
  Clock::time_point started_at_;
  std::optional<Clock::time_point> first_came_at_;
  std::size_t losses_reported_ = 0;
  bool ending_ = false;
  int status_ = 0;
  Clock::time_point terminate_at_;
};

}  // namespace

int run_over_hosts(const base::Settings& settings, const LaunchOptions& options,
                   const std::vector<std::string>& command) {
  if (settings.processes() < options.hosts.size()) {
    throw SettingError(fmt::format("--hosts names {}, and this run has {}: allowed is at most one host per process",
                                   base::counted(options.hosts.size(), "host"),
                                   base::counted(settings.processes(), "process")));
  }
  return Hosts(settings, options, command).run();
}

int run_by_meeting(const base::Settings& settings, const std::function<int()>& process) {
  return Hosts(settings, {}, {}, process).run();
}

}  // namespace headway::launch
