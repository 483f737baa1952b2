// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdio>
#include <headway/launch/identity.hpp>
#include <headway/launch/lone_run.hpp>
#include <headway/launch/measured_costs.hpp>
#include <headway/report/process_record.hpp>
#include <headway/transport/local/local.hpp>

namespace headway::launch {

LoneRun::LoneRun(const base::Settings& settings, const std::function<int(Pe&)>& body)
    : ProcessPes(body), segment_(1, 1, 1, settings.budget_bytes) {
  fcntl(segment_.descriptor(), F_SETFD, FD_CLOEXEC);
  madvise(&segment_.header(), segment_.bytes(), MADV_DONTFORK);
  segment_.header().spill_bytes = settings.spill_bytes;
  segment_.header().costs_within_host = measured_costs_within_host(false);
  report::ProcessRecord& record = report::process_record_of(segment_, 0);
  record.pid_namespace.store(report::pid_namespace(), std::memory_order_relaxed);
  record.pid.store(pid_, std::memory_order_release);
  enter(segment_, 0, 1);
  signals_.emplace(segment_.header(), record);
  copy_text(board(0).program, program_path());
  board(0).waiting_for.store(report::no_pe, std::memory_order_relaxed);
  board(0).phase.store(report::Phase::computing, std::memory_order_relaxed);
}

LoneRun::~LoneRun() { signals_.reset(); }

int LoneRun::close(int status) {
  close_pe(status);
  return board(0).status;
}

std::unique_ptr<transport::Endpoint> LoneRun::make_endpoint(std::size_t pe) {
  return local::make_endpoint(segment_, pe, &shared_);
}

void LoneRun::end_failed(std::size_t pe) {
  std::fflush(stdout);
  fmt::print(stderr, "headway: PE {} (pid {}): {}\n", pe, pid_, board(pe).failure_text);
  end_process(int(board(pe).failure.load(std::memory_order_relaxed)));
}

}  // namespace headway::launch
