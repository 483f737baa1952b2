// SPDX-License-Identifier: BSD-3-Clause
/// Runs random programs on the simulated transport, one a seed, and says which break a promise of the library.
///
///     headway_seeds [--first SEED] [--count N] [--jobs J] [--violations-max N] [--without KIND] [--expect-violation]
///                   [--verbose]
///
/// KIND, of what programs have besides their messages: fixed-forms, short-lived, teams, memories, small-sizes; several
/// by several options. Ends with 0 if no seed breaks a promise; with --expect-violation, if one does.

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <headway/base/error.hpp>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "simulated.hpp"

namespace seeds {
namespace {

constexpr std::size_t jobs_max = 256;
constexpr int cpu_seconds_max = 60;  // of one seed

struct Options {
  std::uint64_t first = 1, count = 1000;
  std::size_t jobs = std::max(1u, std::thread::hardware_concurrency());
  std::uint64_t violations_max = 10;
  bool expect_violation = false, verbose = false;
  ProgramLimits limits;
};

/// State that all jobs share.
struct Progress {
  std::atomic<std::uint64_t> next, done, violations, messages, frames, spilled_frames;
  std::atomic<std::uint64_t> lowest_violation;  // seed
  std::atomic<std::uint64_t> current[jobs_max];
};

void report(Progress& progress, const Program& program, std::string what) {
  std::ranges::replace(what, '\n', ' ');
  const std::string line = fmt::format("seed {}: {}; in: {}; again: headway_seeds --first {} --count 1 --verbose\n",
                                       program.seed, what, program.describe(), program.seed);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
  ++progress.violations;
  std::uint64_t lowest = progress.lowest_violation;
  while (program.seed < lowest && !progress.lowest_violation.compare_exchange_weak(lowest, program.seed)) continue;
}

/// A seed that runs for ever is one that dies.
void limit_cpu() {
  const itimerval limit{{0, 0}, {cpu_seconds_max, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

void run_job(const Options& options, Progress& progress, std::size_t job) {
  for (;;) {
    const std::uint64_t index = progress.next++;
    if (index >= options.count || progress.violations >= options.violations_max) return;
    const std::uint64_t seed = options.first + index;
    progress.current[job] = seed;
    limit_cpu();
    Program program;
    draw(program, seed, options.limits);
    if (options.verbose) fmt::print("seed {}: {}\n", seed, program.describe());
    const Verdict verdict = run_simulated(program, options.verbose);
    if (!verdict.violation.empty()) report(progress, program, verdict.violation);
    ++progress.done;
    progress.messages += verdict.messages;
    progress.frames += verdict.frames;
    progress.spilled_frames += verdict.spilled_frames;
  }
}

pid_t start_job(const Options& options, Progress& progress, std::size_t job) {
  const pid_t pid = fork();
  if (pid < 0) headway::base::throw_errno("fork");
  if (pid == 0) {
    run_job(options, progress, job);
    std::fflush(stdout);
    _exit(0);
  }
  return pid;
}

void report_death(const Options& options, Progress& progress, std::size_t job, int status) {
  Program program;
  draw(program, progress.current[job], options.limits);
  ++progress.done;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  report(progress, program,
         signal == SIGPROF ? fmt::format("it runs for more than {} s", cpu_seconds_max)
         : signal != 0     ? fmt::format("it dies of signal {} ({})", signal, strsignal(signal))
                           : fmt::format("it exits with {}", WEXITSTATUS(status)));
}

void run_jobs(const Options& options, Progress& progress) {
  std::vector<pid_t> pids(options.jobs);
  for (std::size_t job = 0; job < options.jobs; ++job) pids[job] = start_job(options, progress, job);
  for (std::size_t running = options.jobs; running > 0;) {
    int status = 0;
    const pid_t pid = wait(&status);
    if (pid < 0) headway::base::throw_errno("wait");
    const auto job = std::size_t(std::ranges::find(pids, pid) - pids.begin());
    if (status == 0) {
      --running;
    } else {
      report_death(options, progress, job, status);
      pids[job] = start_job(options, progress, job);
    }
  }
}

bool& limit_of(ProgramLimits& limits, const std::string& kind) {
  if (kind == "fixed-forms") return limits.fixed_forms;
  if (kind == "short-lived") return limits.short_lived;
  if (kind == "teams") return limits.teams;
  if (kind == "memories") return limits.memories;
  if (kind == "small-sizes") return limits.small_sizes;
  throw std::runtime_error(
      fmt::format("--without {}: allowed are fixed-forms, short-lived, teams, memories, small-sizes", kind));
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--verbose") {
      options.verbose = true;
    } else if (option == "--expect-violation") {
      options.expect_violation = true;
      options.violations_max = 1;
    } else {
      if (i + 1 == argc) throw std::runtime_error(option + " needs a value");
      if (option == "--without") {
        limit_of(options.limits, argv[++i]) = false;
        continue;
      }
      const std::uint64_t value = std::stoull(argv[++i]);
      if (option == "--first")
        options.first = value;
      else if (option == "--count")
        options.count = value;
      else if (option == "--jobs")
        options.jobs = std::clamp<std::size_t>(value, 1, jobs_max);
      else if (option == "--violations-max")
        options.violations_max = value;
      else
        throw std::runtime_error("there is no option " + option);
    }
  }
  return options;
}

int run_all(const Options& options) {
  void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  Progress& progress = *new (memory) Progress{};
  progress.lowest_violation = ~std::uint64_t(0);
  if (options.verbose) std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // nothing is lost of a seed that dies
  const auto begin = std::chrono::steady_clock::now();
  run_jobs(options, progress);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const std::uint64_t violations = progress.violations;
  fmt::print("{} seeds from {} in {:.1f} s, {:.0f} a second; {} messages, {} frames, {} spilled; {} violations\n",
             progress.done.load(), options.first, seconds, double(progress.done) / seconds, progress.messages.load(),
             progress.frames.load(), progress.spilled_frames.load(), violations);
  if (options.expect_violation && violations != 0) {
    fmt::print("found after {} seeds\n", progress.lowest_violation - options.first + 1);
  }
  return (violations != 0) == options.expect_violation ? 0 : 1;
}

}  // namespace
}  // namespace seeds

int main(int argc, char** argv) {
  try {
    return seeds::run_all(seeds::parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "headway_seeds: {}\n", error.what());
    return 2;
  }
}
