#include <dirent.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <headway/am/engine.hpp>
#include <headway/am/identity.hpp>
#include <headway/am/launch.hpp>
#include <headway/am/run.hpp>
#include <headway/am/supervisor.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/local/local.hpp>
#include <iostream>
#include <thread>

namespace headway::am {
namespace {

void say(const std::string& text) { fmt::print(stderr, "headway: {}\n", text); }

/// How a process reaches the run it is part of.
struct Attachment {
  int segment = -1;
  int lifeline = -1;
  std::size_t process = 0;

  static Attachment parse(const std::string& text) {
    Attachment attachment;
    const char* at = text.data();
    const char* end = at + text.size();
    bool good = true;
    auto number = [&](auto& value, char separator) {
      const auto [next, error] = std::from_chars(at, end, value);
      good = good && error == std::errc() && (separator == 0 ? next == end : next != end && *next == separator);
      at = good ? next + (separator != 0) : end;
    };
    number(attachment.segment, ':');
    number(attachment.lifeline, ':');
    number(attachment.process, 0);
    if (!good) throw SettingError(fmt::format("{}={}: it is set by `headway run` only", launch_variable, text));
    return attachment;
  }
};

void flush_output() {
  std::cout.flush();
  std::fflush(nullptr);
}

/// One process's part of one run.
class ProcessRun {
 public:
  ProcessRun(const Attachment& attachment, std::size_t generation, const std::function<int(Pe&)>& body)
      : attachment_(attachment), segment_(dup(attachment.segment)), body_(&body) {
    const local::SegmentHeader& header = segment_.header();
    first_ = attachment.process * header.pes_per_process;
    last_ = std::min<std::size_t>(first_ + header.pes_per_process, header.pes);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    meet(segment_.header().arrived, generation);  // all have left the run before
    for (std::size_t pe = first_; pe < last_; ++pe) local::reset(segment_, pe);
    PeBoard& mine = board(first_);
    copy_text(mine.program, program_path());
    copy_text(mine.build_identity, build_identity());
    for (std::size_t pe = first_; pe < last_; ++pe) {
      board(pe).waiting_for.store(no_pe, std::memory_order_relaxed);
      board(pe).phase.store(Phase::computing, std::memory_order_relaxed);
    }
    meet(segment_.header().ready, generation);
    refuse_other_builds();
  }

  int run() {
    std::vector<std::thread> threads;
    for (std::size_t pe = first_ + 1; pe < last_; ++pe) threads.emplace_back([this, pe] { run_pe(pe); });
    run_pe(first_);
    for (std::thread& thread : threads) thread.join();
    PeBoard& mine = board(first_);
    for (std::size_t pe = last_; pe-- > first_;) {
      if (board(pe).status != 0) mine.status = board(pe).status;
    }
    mine.process_finished.store(1, std::memory_order_release);
    return mine.status;
  }

 private:
  PeBoard& board(std::size_t pe) { return *reinterpret_cast<PeBoard*>(segment_.board(pe).data()); }

  template <std::size_t N>
  static void copy_text(char (&to)[N], const std::string& text) {
    const std::size_t length = std::min(text.size(), N - 1);
    std::memcpy(to, text.data(), length);
    to[length] = 0;
  }

  /// Waits until every process of the run has come here `generation` times.
  void meet(std::atomic<std::uint64_t>& count, std::size_t generation) {
    const std::uint64_t all = generation * segment_.header().processes;
    count.fetch_add(1, std::memory_order_acq_rel);
    for (unsigned round = 0; count.load(std::memory_order_acquire) < all; ++round) {
      if (segment_.header().processes_gone.load(std::memory_order_acquire) != 0) {
        fail(first_, FailureKind::failed, "another process of this run ended without calling run() as often as this one");
      }
      check_lifeline();
      usleep(round < 20 ? 50 : 1000);
    }
  }

  void refuse_other_builds() {
    const PeBoard& first = board(0);
    const PeBoard& mine = board(first_);
    if (std::strcmp(first.build_identity, mine.build_identity) == 0) return;
    fail(first_, FailureKind::settings,
         fmt::format("differing programs: PE 0 runs {} (build {}), PE {} runs {} (build {}); all processes of a run must "
                     "run the same build",
                     first.program, first.build_identity, first_, mine.program, mine.build_identity));
  }

  void check_lifeline() {
    pollfd lifeline{attachment_.lifeline, 0, 0};
    if (poll(&lifeline, 1, 0) > 0 && (lifeline.revents & (POLLHUP | POLLERR)) != 0) _exit(exit_status::failed);
  }

  [[noreturn]] void fail(std::size_t pe, FailureKind kind, const std::string& text) {
    PeBoard& mine = board(pe);
    copy_text(mine.failure_text, text);
    mine.failure.store(kind, std::memory_order_release);
    end(int(kind));
  }

  [[noreturn]] static void end(int status) {
    flush_output();
    _exit(status);
  }

  void bind(std::size_t pe) {
    if (segment_.header().bind_cores == 0) return;
    static const std::vector<int> processors = allowed_processors();  // as they were before the first PE was bound
    cpu_set_t set;
    CPU_ZERO(&set);
    const int processor = processors[pe % processors.size()];
    if (processor >= CPU_SETSIZE) return;
    CPU_SET(processor, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  }

  void run_pe(std::size_t pe_number) {
    const local::SegmentHeader& header = segment_.header();
    const std::size_t cores = available_cores();
    bind(pe_number);
    const std::unique_ptr<Endpoint> endpoint = local::make_endpoint(segment_, pe_number);
    try {
      Engine engine(*endpoint, EngineOptions{.budget_bytes = header.arena_bytes,
                                             .spill_bytes = header.spill_bytes,
                                             .pes_on_host = header.pes,
                                             .cores = cores,
                                             .still_wanted = [this] { check_lifeline(); }});
      board(pe_number).status = (*body_)(engine.pe());
      if (!engine.has_failed()) engine.quiesce();
    } catch (const RunFailed&) {
    } catch (const std::exception& error) {
      fail(pe_number, FailureKind::failed, fmt::format("the program threw: {}", error.what()));
    } catch (...) {
      fail(pe_number, FailureKind::failed, "the program threw something that is no std::exception");
    }
    const FailureKind kind = board(pe_number).failure.load(std::memory_order_relaxed);
    if (kind != FailureKind::none) end(int(kind));
    board(pe_number).phase.store(Phase::finished, std::memory_order_relaxed);
  }

  Attachment attachment_;
  local::Segment segment_;
  const std::function<int(Pe&)>* body_;
  std::size_t first_ = 0, last_ = 0;
};

std::size_t threads_of_this_process() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return 1;
  std::size_t threads = 0;
  while (const dirent* entry = readdir(tasks)) threads += entry->d_name[0] != '.';
  closedir(tasks);
  return threads;
}

bool mpi_is_initialised() {
  using Initialized = int (*)(int*);
  void* symbol = dlsym(RTLD_DEFAULT, "MPI_Initialized");
  if (symbol == nullptr) return false;
  int flag = 0;
  reinterpret_cast<Initialized>(symbol)(&flag);
  return flag != 0;
}

void make_output_line_buffered() {
  if (isatty(STDOUT_FILENO) == 0) std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
}

}  // namespace

int run(int argc, char** argv, const std::function<int(Pe&)>& body) {
  const std::string program = argc > 0 && argv != nullptr && argv[0] != nullptr ? argv[0] : "PROGRAM";
  static const std::string launched = take_launch_descriptor();
  static std::size_t generation = 0;  // of a launched process: how often it has called run()
  try {
    if (!launched.empty()) {
      make_output_line_buffered();
      const int status = ProcessRun(Attachment::parse(launched), ++generation, body).run();
      flush_output();
      return status;
    }
    const Settings settings = Settings::from_environment();
    const char* obstacle = nullptr;
    if (mpi_is_initialised()) obstacle = "MPI is initialised already";
    if (threads_of_this_process() > 1) obstacle = obstacle ? obstacle : "other threads run already";
    if (obstacle != nullptr) {
      throw SettingError(fmt::format("{} starts its processes by fork, which is not safe here: {}; start it with "
                                     "`headway run {}` instead",
                                     program, obstacle, program));
    }
    Supervisor supervisor(settings);
    return supervisor.run([&](std::size_t, const std::string& attach) {
      int status = exit_status::unusable_settings;
      try {
        make_output_line_buffered();
        status = ProcessRun(Attachment::parse(attach), 1, body).run();
      } catch (const std::exception& error) {
        say(error.what());
      }
      flush_output();
      _exit(status);
    });
  } catch (const std::exception& error) {  // a setting, or the system, before any PE was there
    say(error.what());
    return exit_status::unusable_settings;
  }
}

}  // namespace headway::am

namespace headway {

int launch(const LaunchOptions& options, const std::vector<std::string>& command) {
  const Settings settings = Settings::from_environment();
  if (options.debug_pe >= 0 && std::size_t(options.debug_pe) >= settings.pes) {
    throw SettingError(fmt::format("--debug {}: this run has PEs 0 to {}", options.debug_pe, settings.pes - 1));
  }
  Settings effective = settings;
  int on_terminal = -1;
  if (options.debug_pe >= 0) {
    on_terminal = options.debug_pe / int(settings.pes_per_process);
    effective.stall = {};
  }
  am::Supervisor supervisor(effective);
  return supervisor.run(
      [&](std::size_t process, const std::string& attach) {
        setenv(launch_variable, attach.c_str(), 1);
        std::vector<std::string> words = command;
        if (int(process) == on_terminal) words.insert(words.begin(), {"gdb", "-q", "--args"});
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        execvp(arguments[0], arguments.data());
        fmt::print(stderr, "headway: cannot start {}: {}\n", words[0], std::strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
      },
      on_terminal);
}

}  // namespace headway
