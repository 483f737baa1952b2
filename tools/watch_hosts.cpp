// SPDX-License-Identifier: BSD-3-Clause
// Starts `headway watch --json` on other hosts by an agent, and merges the lines.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>
#include <string_view>

#include "watch_source.hpp"

namespace headway::tools {
namespace {

/// One word of a shell.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::vector<std::string> agent_command(const WatchedHosts& hosts, const std::string& host) {
  std::string line = "exec";
  for (const std::string& word : hosts.command) line += " " + shell_quoted(word);
  line = "exec sh -c " + shell_quoted(line);  // also if the user's shell there is not sh
  if (!hosts.agent.empty()) return {hosts.agent, host, line};
  return {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=4", host, line};
}

/// The watcher on one host: a process group of its own, which ends with this object.
class Watcher {
 public:
  Watcher(std::string host, std::vector<std::string> command) : host_(std::move(host)) {
    int output[2], errors[2];
    if (pipe2(output, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0) base::throw_errno("pipe2");
    pid_ = fork();
    if (pid_ < 0) base::throw_errno("fork");
    if (pid_ == 0) become(command, output[1], errors[1]);
    close(output[1]);
    close(errors[1]);
    output_ = output[0];
    errors_ = errors[0];
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher() {
    if (pid_ > 0) kill(-pid_, SIGTERM);
    end();
  }

  const std::string& host() const { return host_; }
  int output() const { return output_; }
  int errors() const { return errors_; }
  bool lives() const { return output_ >= 0; }
  bool has_new() const { return new_; }
  const View& view() const { return view_; }
  View& take() {
    new_ = false;
    return view_;
  }
  bool has_failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

  /// Reads a piece. At the end of the output the watcher may have failed.
  void read_output() {
    std::array<char, 1 << 16> piece;
    const ssize_t bytes = read(output_, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) return;
    if (bytes <= 0) return end();
    lines_.append(piece.data(), std::size_t(bytes));
    for (std::size_t newline; (newline = lines_.find('\n')) != std::string::npos;) {
      add(lines_.substr(0, newline));
      lines_.erase(0, newline + 1);
    }
  }
  void read_errors() {
    std::array<char, 4096> piece;
    const ssize_t bytes = read(errors_, piece.data(), piece.size());
    if (bytes > 0) {
      error_text_.append(piece.data(), std::size_t(bytes));
      if (error_text_.size() > piece.size()) error_text_.erase(0, error_text_.size() - piece.size());
    } else if (bytes == 0 || errno != EINTR) {
      close(errors_);
      errors_ = -1;
    }
  }

 private:
  [[noreturn]] static void become(std::vector<std::string>& command, int output, int errors) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "{} cannot be started: {}\n", arguments[0], std::strerror(errno));
    _exit(127);
  }

  void add(const std::string& line) {
    try {
      view_ = view_of_json(line);
      for (WatchedPe& pe : view_.pes) pe.host = host_;
      new_ = true;
    } catch (const SettingError& error) {
      if (failure_.empty()) failure_ = error.what();
    }
  }

  void end() {
    if (pid_ <= 0) return;
    while (errors_ >= 0 && output_ >= 0 && pid_ > 0 && is_readable(errors_)) read_errors();
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    close(output_);
    output_ = -1;
    if (errors_ >= 0) close(errors_);
    errors_ = -1;
    if (status == 0 || !failure_.empty()) return;
    while (error_text_.ends_with('\n')) error_text_.pop_back();
    const std::string last = error_text_.substr(error_text_.rfind('\n') + 1);
    failure_ = !last.empty()         ? last
               : WIFSIGNALED(status) ? fmt::format("its watcher was ended by signal {}", WTERMSIG(status))
                                     : fmt::format("its watcher ended with status {}", WEXITSTATUS(status));
  }

  static bool is_readable(int descriptor) {
    pollfd one{descriptor, POLLIN, 0};
    return poll(&one, 1, 0) > 0;
  }

  std::string host_;
  pid_t pid_ = -1;
  int output_ = -1, errors_ = -1;
  std::string lines_, error_text_, failure_;
  View view_;
  bool new_ = false;
};

class HostsSource : public WatchSource {
 public:
  HostsSource(const WatchedHosts& hosts, std::int64_t interval_ns)
      : interval_ns_(interval_ns), begin_(base::monotonic_ns()) {
    for (const std::string& host : hosts.hosts)
      watchers_.push_back(std::make_unique<Watcher>(host, agent_command(hosts, host)));
  }

  /// Once all hosts have sent a view, or one has and the others are late by half an interval.
  Next next(Wait& wait, WatchOutput& output, View& view) override {
    std::int64_t first_at = 0;
    for (;;) {
      bool any_lives = false, any_new = false, all_new = true;
      for (const auto& watcher : watchers_) {
        any_lives |= watcher->lives();
        any_new |= watcher->has_new();
        all_new &= watcher->has_new() || !watcher->lives();
      }
      const std::int64_t now = base::monotonic_ns();
      if (any_new && first_at == 0) first_at = now;
      if (any_new && (all_new || now - first_at >= interval_ns_ / 2)) {
        merge(view);
        return Next::view;
      }
      if (!any_lives) return Next::ended;
      if (!wait_for_output(wait, any_new ? first_at + interval_ns_ / 2 : now + interval_ns_)) return Next::interrupted;
      name_failures(output);
    }
  }

  int status() const override {
    return std::ranges::any_of(watchers_, [](const auto& watcher) { return watcher->has_failed(); }) ? 1 : 0;
  }

 private:
  bool wait_for_output(Wait& wait, std::int64_t until) {
    std::vector<pollfd> polled;
    for (const auto& watcher : watchers_) {  // poll() skips negative descriptors
      polled.push_back({watcher->output(), POLLIN, 0});
      polled.push_back({watcher->errors(), POLLIN, 0});
    }
    if (!wait.until(until, polled)) return false;
    for (std::size_t i = 0; i < watchers_.size(); ++i) {
      if (polled[2 * i + 1].revents != 0) watchers_[i]->read_errors();
      if (polled[2 * i].revents != 0) watchers_[i]->read_output();
    }
    return true;
  }

  void name_failures(WatchOutput& output) {
    named_.resize(watchers_.size());
    for (std::size_t i = 0; i < watchers_.size(); ++i) {
      if (!watchers_[i]->has_failed() || named_[i]) continue;
      named_[i] = true;
      output.note(fmt::format("headway watch: host {}: {}", watchers_[i]->host(), watchers_[i]->failure()));
    }
  }

  void merge(View& view) {
    view = {"", 1e-9 * double(base::monotonic_ns() - begin_), false, {}};
    for (const auto& watcher : watchers_) {
      const bool shown = watcher->lives() || watcher->has_new();
      const View& one = watcher->take();
      if (!shown || one.pes.empty()) continue;
      if (view.program.empty()) view.program = one.program;
      view.simulated |= one.simulated;
      view.pes.insert(view.pes.end(), one.pes.begin(), one.pes.end());
    }
    std::ranges::stable_sort(view.pes, {}, &WatchedPe::pe);
  }

  std::int64_t interval_ns_, begin_;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  std::vector<bool> named_;
};

}  // namespace

std::unique_ptr<WatchSource> watch_hosts(const WatchedHosts& hosts, std::int64_t interval_ns) {
  return std::make_unique<HostsSource>(hosts, interval_ns);
}

}  // namespace headway::tools
