// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <headway/am/engine.hpp>
#include <headway/base/error.hpp>
#include <headway/base/fiber.hpp>
#include <headway/launch/attach.hpp>
#include <headway/launch/start.hpp>
#include <iostream>

namespace headway {
namespace {

/// The run of this process, and its PE. Never destroyed by exit(): end_at_exit() needs it.
struct Attached {
  std::unique_ptr<launch::ProcessPes> run;
  Pe* pe = nullptr;
  pid_t pid = 0;  // a child that the program forks is no PE
};

Attached& state() {
  static Attached& one = *new Attached;
  return one;
}

/// Handles exit() in the middle of a run: the other processes would wait forever.
void end_at_exit(int status, void*) {
  if (attached() == nullptr || getpid() != state().pid) return;
  state().run->end_program(
      fmt::format("the program exited with status {} before detach(): call headway::detach() at its end", status)
          .c_str());
}

}  // namespace

Pe& attach() {
  if (attached() != nullptr) throw UsageError("attach() twice: this process is a PE already; call detach() before");
  if (launch::ProcessPes::inside()) {
    throw UsageError("attach() inside run(): this process has PEs already; use the Pe that run() gives to its body");
  }
  Attached& mine = state();
  mine.run = launch::join_run();
  static const bool watches = (::on_exit(&end_at_exit, nullptr), true);
  static_cast<void>(watches);
  mine.pid = getpid();
  mine.pe = &mine.run->open();
  return *mine.pe;
}

int detach(int status) {
  Attached& mine = state();
  if (mine.pe == nullptr) throw UsageError("detach() without attach(): call attach() before");
  if (base::fiber_local != &mine.pe->engine())
    throw UsageError("detach() on another thread than attach(): the thread that calls attach() calls detach()");
  if (launch::mpi_flag("MPI_Finalized")) throw UsageError("detach() after MPI_Finalize: call detach() before");
  const int status_of_all = mine.run->close(status);
  mine.pe = nullptr;
  mine.run.reset();
  std::cout.flush();
  std::fflush(nullptr);
  return status_of_all;
}

void abandon(const std::string& reason) {
  Attached& mine = state();
  if (mine.pe == nullptr) throw UsageError("abandon() without attach(): call attach() before");
  if (base::fiber_local != &mine.pe->engine())
    throw UsageError("abandon() on another thread than attach(): the thread that calls attach() calls abandon()");
  std::cout.flush();
  std::fflush(nullptr);
  mine.run->end_program(reason.c_str());
}

Pe* attached() { return state().pe; }

void settle(Pe& pe) {
  am::Engine& engine = pe.engine();
  // Aggregators keep open buffers that an idle PE would post: this PE makes no progress now.
  const auto is_empty = [&] { return !engine.flush_all(am::FlushReason::requested) && !engine.store().queued(); };
  if (!is_empty()) engine.wait_until(is_empty, report::Phase::sending);
}

}  // namespace headway
