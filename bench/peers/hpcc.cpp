// SPDX-License-Identifier: BSD-3-Clause
/// Runs MPIRandomAccess of the distribution's hpcc, the reference of HPC Challenge, and writes its result as a record:
/// `headway-peer-hpcc --log2 K --pes N -- mpirun -n N hpcc`. hpcc runs all of HPC Challenge, MPIRandomAccess first; it
/// is ended as soon as that is through.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>
#include <iostream>
#include <iterator>
#include <record/command_line.hpp>
#include <record/record.hpp>

#include "hpcc_report.hpp"

namespace headway::peers {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  unsigned log2 = 20;
  std::size_t pes = 1;
  std::string json = "-";
  std::vector<std::string> command;
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("MPIRandomAccess of hpcc, which COMMAND starts.", "headway-peer-hpcc");
  app.add_count("--log2", "K", "2^K words in all [20]", arguments.log2, hpcc_log2_min, 40);
  app.add_count("--pes", "N", "ranks that COMMAND starts [1]", arguments.pes, 1, 4096);
  app.add_text("--json", "FILE", "write the record to FILE, or - for standard output [-]", arguments.json);
  app.add_rest("COMMAND", "after --: such as mpirun -n 2 hpcc", arguments.command);
  return app.parse(argc, argv);
}

/// A directory of its own, removed with its files at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "headway-hpcc-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) base::throw_errno(("mkdtemp " + name).c_str());
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The signals that end this process, and that of an ended child: taken one by one, by next().
class Signals {
 public:
  Signals() {
    ::sigemptyset(&all_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&all_, signal);
    ::sigprocmask(SIG_BLOCK, &all_, &before_);
  }
  /// The next one within `timeout`, or 0.
  int next(std::chrono::milliseconds timeout) const {
    const timespec time = {timeout.count() / 1000, timeout.count() % 1000 * 1'000'000};
    const int signal = ::sigtimedwait(&all_, nullptr, &time);
    return signal > 0 ? signal : 0;
  }
  /// In a child, before it becomes another program.
  void restore() const { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t all_{}, before_{};
};

class Child {
 public:
  /// Starts `command` in `directory`; its output goes to the file printed.txt there.
  Child(const std::vector<std::string>& command, const fs::path& directory, const Signals& signals)
      : signals_(&signals) {
    pid_ = ::fork();
    if (pid_ < 0) base::throw_errno("fork");
    if (pid_ == 0) become(command, directory);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }

  bool has_ended() {
    if (!ended_) ended_ = ::waitpid(pid_, nullptr, WNOHANG) == pid_;
    return ended_;
  }

  /// mpirun ends its ranks; after five seconds the rest is killed.
  void end() {
    const std::int64_t limit = base::monotonic_ns() + 5'000'000'000;
    if (!has_ended()) ::kill(pid_, SIGTERM);
    while (!has_ended() && base::monotonic_ns() < limit) signals_->next(std::chrono::milliseconds(20));
    if (has_ended()) return;
    ::kill(pid_, SIGKILL);
    ended_ = ::waitpid(pid_, nullptr, 0) == pid_;
  }

 private:
  [[noreturn]] void become(const std::vector<std::string>& command, const fs::path& directory) const {
    signals_->restore();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const int printed = ::chdir(directory.c_str()) == 0 ? ::open("printed.txt", O_CREAT | O_WRONLY, 0600) : -1;
    ::dup2(printed, STDOUT_FILENO);
    ::dup2(printed, STDERR_FILENO);
    ::execvp(words[0], words.data());
    std::fprintf(stderr, "cannot start %s: %s\n", words[0], std::strerror(errno));
    ::_exit(127);
  }

  const Signals* signals_;
  pid_t pid_ = -1;
  bool ended_ = false;
};

bench::Json record_of(const Arguments& arguments, const HpccReport& report) {
  bench::Json record = bench::make_record({.bench = "randomaccess",
                                           .mode = "peer:hpcc",
                                           .transport = "mpi",
                                           .pes = arguments.pes,
                                           .processes = arguments.pes,
                                           .pes_per_process = 1,
                                           .message_bytes = sizeof(std::uint64_t),
                                           .messages = report.updates},
                                          report.seconds, report.passed);
  record["table_log2"] = report.log2;
  record["errors"] = report.errors;
  record["options"] = bench::Json::object();
  return record;
}

int run(const Arguments& arguments) {
  const Signals signals;
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "hpccinf.txt") << hpcc_input(arguments.log2, arguments.pes);
  Child child(arguments.command, directory.path(), signals);
  std::optional<HpccReport> report;
  while (!report) {
    const int signal = signals.next(std::chrono::milliseconds(20));
    if (signal != 0 && signal != SIGCHLD) return 128 + signal;
    const bool ended = child.has_ended();
    report = read_hpcc(read_file(directory.path() / "hpccoutf.txt"));
    if (!report && ended) {
      std::cerr << fmt::format("headway-peer-hpcc: {} ended without a result of MPIRandomAccess\n{}",
                               fmt::join(arguments.command, " "), read_file(directory.path() / "printed.txt"));
      return 1;
    }
  }
  child.end();
  if (report->log2 != arguments.log2) {
    std::cerr << fmt::format("headway-peer-hpcc: its table has 2^{} words instead of 2^{}\n", report->log2,
                             arguments.log2);
    return 1;
  }
  bench::write_json(arguments.json, record_of(arguments, *report));
  return report->passed ? 0 : 1;
}

}  // namespace
}  // namespace headway::peers

int main(int argc, char** argv) {
  headway::peers::Arguments arguments;
  if (const auto status = headway::peers::parse(argc, argv, arguments)) return *status;
  try {
    return headway::peers::run(arguments);
  } catch (const std::exception& error) {
    std::cerr << "headway-peer-hpcc: " << error.what() << '\n';
    return 1;
  }
}
