// SPDX-License-Identifier: BSD-3-Clause
/// Runs PEs on the simulated transport: as fibers in this process, in an order that a seed decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/am/pe.hpp>
#include <headway/base/size_constants.hpp>
#include <headway/report/board.hpp>
#include <headway/report/stall_page.hpp>
#include <headway/transport/sim/world.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headway::launch {

/// A simulated world with boards for its PEs, which detects stalls in simulated time.
class Simulation {
 public:
  /// The run ends when nothing has moved for `stall_ns` of simulated time. 0: never.
  Simulation(sim::WorldOptions options, std::int64_t stall_ns);

  /// Runs body(endpoint) on every PE. Returns true when all have returned, false after stop() or a stall. stall()
  /// then gives the page.
  bool run(const std::function<void(transport::Endpoint&)>& body);

  /// Called by a body: ends the run.
  void stop() { world_.stop(); }

  /// The place for the PE's report function (EngineOptions::reporter).
  std::function<report::PeReport()>& reporter(std::size_t pe) { return reporters_[pe]; }

  sim::World& world() { return world_; }
  const std::string& stall() const { return stall_; }

 private:
  report::PeBoard& board(std::size_t pe) { return report::board_of(world_.endpoint(0), pe); }
  bool moves();
  std::string page();

  sim::World world_;
  std::int64_t stall_ns_;
  std::vector<std::function<report::PeReport()>> reporters_;
  std::uint64_t activity_ = 0;
  unsigned still_checks_ = 0;
  std::string stall_;
};

/// Options of simulate(), for tests and experiments.
struct SimulateOptions {
  std::size_t pes = 1;
  std::uint64_t seed = 1;
  sim::Conditions conditions = {};
  std::size_t budget_bytes = std::size_t(1) << 20;
  std::size_t spill_bytes = std::size_t(1) << 30;
  std::int64_t stall_ns = 1'000'000'000;
  std::size_t stack_bytes = base::Fiber::stack_bytes_default;
  base::SizeConstants sizes = base::normal_sizes;
};

struct SimulateResult {
  int status = 0;    // as run() returns it
  std::string text;  // cause of the failure
  std::int64_t simulated_ns = 0;
  std::uint64_t frames = 0;
  std::size_t claimed_bytes_peak = 0;  // largest frame memory that one PE held at a time
};

/// Runs body(Pe&) on every PE as run() does, but in this process and thread: bodies share all memory. Frames that are
/// not released at the end of a successful run are a failure. If a run fails, its stacks are not unwound.
SimulateResult simulate(const SimulateOptions& options, const std::function<int(Pe&)>& body);

}  // namespace headway::launch
