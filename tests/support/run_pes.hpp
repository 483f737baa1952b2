// SPDX-License-Identifier: BSD-3-Clause
/// Runs a test's body on PEs of their own, from a test process that is none of them. For GoogleTest.
///
/// The PEs are forked: EXPECT and ASSERT work in the body and report from there. Changes of the body to memory are lost
/// at its end; results go to the test through Shared. No threads may run in the test process. The same holds where a
/// launcher starts the PEs (launched_pes.hpp).
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <headway/launch/run.hpp>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <support/launched_pes.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::testing {

using Settings = std::vector<std::pair<std::string, std::string>>;  // variables of the environment

/// Sets variables as long as it lives.
class Environment {
 public:
  explicit Environment(const Settings& settings) {
    for (const auto& [name, value] : settings) {
      const char* before = std::getenv(name.c_str());
      before_.emplace_back(name, before == nullptr ? std::nullopt : std::optional<std::string>(before));
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (auto variable = before_.rbegin(); variable != before_.rend(); ++variable) {
      if (variable->second)
        setenv(variable->first.c_str(), variable->second->c_str(), 1);
      else
        unsetenv(variable->first.c_str());
    }
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

/// An array, all zero at first, that the test and the PEs of its runs share.
template <class T>
class Shared {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit Shared(std::size_t size = 1) : size_(size) {
    const int file = launches() ? shared_file(size * sizeof(T)) : -1;
    void* memory = mmap(nullptr, size * sizeof(T), PROT_READ | PROT_WRITE,
                        file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    values_ = static_cast<T*>(memory);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { munmap(values_, size_ * sizeof(T)); }

  T& operator[](std::size_t i) const { return values_[i]; }
  T& operator*() const { return *values_; }
  T* operator->() const { return values_; }
  T* begin() const { return values_; }
  T* end() const { return values_ + size_; }

 private:
  T* values_;
  std::size_t size_;
};

/// Runs `body` (taking a Pe&, returning nothing or a status) on `pes` PEs, `pes_per_process` of them in each process.
/// Returns the run's exit status; 1 if the body returned 0 everywhere but an EXPECT or ASSERT failed in it.
template <class Body>
int run_pes(std::size_t pes, std::size_t pes_per_process, Body body, const Settings& more = {}) {
  Settings settings{{"HEADWAY_PES", std::to_string(pes)},
                    {"HEADWAY_PES_PER_PROCESS", std::to_string(pes_per_process)},
                    {"HEADWAY_BIND", "none"},
                    {"HEADWAY_STALL", "20s"}};
  settings.insert(settings.end(), more.begin(), more.end());
  const Environment environment(settings);
  const bool failed_before = ::testing::Test::HasFailure();
  const auto run_here = [&body, failed_before] {
    return run(0, nullptr, [&body, failed_before](Pe& pe) -> int {
      int status = 0;
      if constexpr (std::is_void_v<std::invoke_result_t<Body&, Pe&>>)
        body(pe);
      else
        status = body(pe);
      if (status == 0 && !failed_before && ::testing::Test::HasFailure()) status = 1;
      return status;
    });
  };
  if (launches() && std::getenv("HEADWAY_TRANSPORT") == nullptr) {
    return launch_run((pes + pes_per_process - 1) / pes_per_process, run_here);
  }
  return run_here();
}

/// How many PEs, how many of them in each process, and on which transport.
struct Shape {
  std::size_t pes = 1, pes_per_process = 1;
  const char* simulated = nullptr;  // the network's conditions where all PEs are fibers on the sim transport
};

/// Awkward numbers of PEs: as processes, as threads, mixed with a last process that holds fewer, and simulated.
inline constexpr Shape shapes[] = {{1, 1},
                                   {2, 1},
                                   {3, 3},
                                   {5, 2},
                                   {8, 4},
#if !defined(__SANITIZE_THREAD__)  // which sees one thread in each of these processes
                                   {7, 1},
                                   {13, 1},
#if defined(HEADWAY_SIM)
                                   {13, 13, "delay=30us,jitter=3,refuse=0.1,inbox=16,per-process=4,slow=2:20"}
#endif
#endif
};

/// run_pes() of a shape.
template <class Body>
int run_shape(Shape shape, Body body, Settings settings) {
  if (shape.simulated != nullptr) {
    if (launched() != nullptr) return 0;
    settings.insert(settings.end(), {{"HEADWAY_TRANSPORT", "sim"}, {"HEADWAY_SIM", shape.simulated}});
  }
  return run_pes(shape.pes, shape.pes_per_process, std::move(body), settings);
}

/// run_pes() with a body and a run that must succeed.
template <class Body>
void expect_run(Shape shape, Body body, const Settings& more = {}) {
  const int status = run_shape(shape, std::move(body), more);
  EXPECT_EQ(status, 0) << "a run of " << shape.pes << " PEs, "
                       << (shape.simulated != nullptr ? "simulated"
                                                      : std::to_string(shape.pes_per_process) + " in a process");
}

/// The result of a run, and its text on standard error.
struct Outcome {
  int status = 0;
  std::string text;
};

/// run_pes() with standard error caught.
template <class Body>
Outcome catch_run(Shape shape, Body body, const Settings& more = {}) {
  if (launched() != nullptr)
    return {run_shape(shape, std::move(body), more), {}};  // the test gets it from the launcher
  std::FILE* file = std::tmpfile();
  if (file == nullptr) throw std::bad_alloc();
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  Outcome outcome{run_shape(shape, std::move(body), more), {}};
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(file);
  for (int c; (c = std::fgetc(file)) != EOF;) outcome.text.push_back(char(c));
  std::fclose(file);
  return outcome;
}

}  // namespace headway::testing
