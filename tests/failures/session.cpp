// SPDX-License-Identifier: BSD-3-Clause
#include "session.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace headway::testing {
namespace {

namespace fs = std::filesystem;

std::size_t repeats_given = 0;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

void open_as(int descriptor, const fs::path& path, int flags) {
  const int opened = open(path.c_str(), flags, 0600);
  if (opened < 0) _exit(126);
  dup2(opened, descriptor);
  close(opened);
}

/// The fields of /proc/PID/stat behind the name: state, parent, ...
std::pair<char, pid_t> state_and_parent(const fs::path& process) {
  const std::string stat = read_file(process / "stat");
  const auto name_end = stat.rfind(')');
  if (name_end == stat.npos) return {'\0', -1};
  std::istringstream fields(stat.substr(name_end + 1));
  char state = 0;
  pid_t parent = -1;
  fields >> state >> parent;
  return {state, parent};
}

double seconds_waited_for_processor(pid_t pid) {
  std::istringstream text(read_file("/proc/" + std::to_string(pid) + "/schedstat"));
  double running = 0, waiting = 0;
  text >> running >> waiting;
  return waiting * 1e-9;
}

template <class Visit>
void for_each_process(Visit visit) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == name.npos) visit(pid_t(std::atoi(name.c_str())), entry.path());
  }
}

}  // namespace

Session::Session(const std::vector<std::string>& command, const Variables& environment, const SessionOptions& options) {
  static int number = 0;
  mark_ = "FAILURES_SESSION=" + std::to_string(getpid()) + "." + std::to_string(++number);
  std::string pattern = fs::temp_directory_path() / "failures-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  folder_ = pattern;
  fs::create_directory(folder_ / "work");
  std::ofstream(folder_ / "input") << options.input;
  start(command, environment, options);
}

Session::~Session() {
  for (const pid_t process : processes()) kill(process, SIGKILL);
  wait(10);
  seconds_until_gone();
  if (terminal_ >= 0) close(terminal_);
  if (unread_ >= 0) close(unread_);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Session::start(const std::vector<std::string>& command, const Variables& environment,
                    const SessionOptions& options) {
  int blocked[2] = {-1, -1};
  if (options.output_blocked && pipe2(blocked, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  pid_ = options.terminal ? forkpty(&terminal_, nullptr, nullptr, nullptr) : fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ != 0) {
    if (!options.terminal) setpgid(pid_, pid_);
    if (blocked[1] >= 0) close(blocked[1]);
    unread_ = blocked[0];
    return;
  }
  if (!options.terminal) {
    setpgid(0, 0);
    open_as(0, folder_ / "input", O_RDONLY);
    if (options.output_blocked)
      dup2(blocked[1], 1);
    else
      open_as(1, folder_ / "output", O_WRONLY | O_CREAT | O_APPEND);
    open_as(2, folder_ / "errors", O_WRONLY | O_CREAT | O_APPEND);
  }
  if (chdir((folder_ / "work").c_str()) != 0) _exit(126);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) ::signal(signal, SIG_DFL);
  // Only the test gives settings: those of the user that runs the tests are removed.
  std::vector<std::string> settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.starts_with("HEADWAY_")) settings.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : settings) unsetenv(name.c_str());
  setenv("HEADWAY_BIND", "none", 1);
  setenv("TMPDIR", (folder_ / "work").c_str(), 1);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  putenv(mark_.data());
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(125);
}

std::string Session::output() {
  if (terminal_ < 0) return read_file(folder_ / "output");
  read_terminal();
  return shown_;
}

std::string Session::errors() const { return read_file(folder_ / "errors"); }

void Session::read_terminal() {
  char buffer[4096];
  pollfd ready{terminal_, POLLIN, 0};
  while (poll(&ready, 1, 0) > 0) {
    const ssize_t got = read(terminal_, buffer, sizeof buffer);
    if (got <= 0) return;
    shown_.append(buffer, std::size_t(got));
  }
}

bool Session::wait_for_lines(std::size_t lines, double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const std::string text = output();
    if (std::size_t(std::ranges::count(text, '\n')) >= lines) return true;
    if (seconds_since(begin) > seconds) return false;
    nap();
  }
}

void Session::type(const std::string& text) const {
  if (write(terminal_, text.data(), text.size()) != ssize_t(text.size())) throw std::runtime_error("write");
}

std::vector<pid_t> Session::processes() const {
  std::vector<pid_t> found;
  for_each_process([&](pid_t pid, const fs::path& path) {
    const char state = state_and_parent(path).first;
    if (state == 'Z' || state == 'X' || state == '\0') return;
    const std::string variables = '\0' + read_file(path / "environ");
    if (variables.find('\0' + mark_ + '\0') != variables.npos) found.push_back(pid);
  });
  return found;
}

std::vector<pid_t> Session::children() const {
  std::vector<pid_t> found;
  for_each_process([&](pid_t pid, const fs::path& path) {
    const auto [state, parent] = state_and_parent(path);
    if (parent == pid_ && state != 'Z') found.push_back(pid);
  });
  std::ranges::sort(found);
  return found;
}

int Session::wait(double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  while (!ended_) {
    int status = 0;
    if (terminal_ >= 0) read_terminal();
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      ended_ = true;
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    } else if (seconds_since(begin) > seconds) {
      return -1;
    } else {
      nap();
    }
  }
  return status_;
}

Session::Seconds Session::until_gone(double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  const double waited_before = ended_ ? 0 : seconds_waited_for_processor(pid_);
  double waited = waited_before;
  for (;;) {
    if (!ended_) {
      waited = std::max(waited, seconds_waited_for_processor(pid_));  // of one that has ended none are known
      wait(0);
    }
    const double passed = seconds_since(begin);
    if (passed > seconds) return {passed, passed};
    if (ended_ && processes().empty()) return {passed, passed - (waited - waited_before)};
    nap();
  }
}

std::string Session::leftovers() {
  std::string text;
  seconds_until_gone(2);
  for (const pid_t process : processes()) {
    text +=
        "process " + std::to_string(process) + ": " + read_file("/proc/" + std::to_string(process) + "/cmdline") + "\n";
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "work"))
    text += "file " + entry.path().string() + "\n";
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev/shm", ignored)) {
    if (entry.path().filename().string().find("headway") != std::string::npos) text += entry.path().string() + "\n";
  }
  return text;
}

Outcome run_to_end(const std::vector<std::string>& command, const Variables& environment,
                   const SessionOptions& options) {
  Session session(command, environment, options);
  const int status = session.wait();
  return {status, session.output(), session.errors(), session.leftovers()};
}

std::string victim() { return HEADWAY_VICTIM; }
std::string headway_command() { return HEADWAY_COMMAND; }

bool has_terminals() {
  int ends[2] = {-1, -1};
  if (openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) != 0) return false;
  close(ends[0]);
  close(ends[1]);
  return true;
}

Variables pes(std::size_t n, std::size_t per_process) {
  return {{"HEADWAY_PES", std::to_string(n)}, {"HEADWAY_PES_PER_PROCESS", std::to_string(per_process)}};
}

Variables operator+(Variables a, const Variables& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::size_t repeats(std::size_t fallback) { return repeats_given != 0 ? repeats_given : fallback; }

}  // namespace headway::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--repeat="))
      headway::testing::repeats_given = std::strtoull(argument.c_str() + 9, nullptr, 10);
  }
  return RUN_ALL_TESTS();
}
