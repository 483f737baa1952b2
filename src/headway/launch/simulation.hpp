/// PEs on the simulated transport: in this process, on fibers, by a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/report/board.hpp>
#include <headway/am/pe.hpp>
#include <headway/report/stall_page.hpp>
#include <headway/base/size_constants.hpp>
#include <headway/transport/sim/world.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headway::launch {

/// A world whose PEs show what they do on their boards, so that a stall is noticed, in simulated time.
class Simulation {
 public:
  /// Nothing moved for `stall_ns` of simulated time: the run ends; 0: never.
  Simulation(sim::WorldOptions options, std::int64_t stall_ns);

  /// Runs body(endpoint) on every PE. Returns true when all have returned; false after stop(), or a stall, whose page
  /// stall() then is.
  bool run(const std::function<void(Endpoint&)>& body);

  /// From a body: ends the run.
  void stop() { world_.stop(); }

  /// Where the PE's engine is to put how it reports (EngineOptions::reporter).
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

/// For tests and experiments: runs of PEs that need no supervisor.
struct SimulateOptions {
  std::size_t pes = 1;
  std::uint64_t seed = 1;
  sim::Conditions conditions = {};
  std::size_t budget_bytes = std::size_t(1) << 20;
  std::size_t spill_bytes = std::size_t(1) << 30;
  std::int64_t stall_ns = 1'000'000'000;
  std::size_t stack_bytes = Fiber::stack_bytes_default;
  SizeConstants sizes = normal_sizes;
};

struct SimulateResult {
  int status = 0;    // as of run()
  std::string text;  // why it failed
  std::int64_t simulated_ns = 0;
  std::uint64_t frames = 0;
  std::size_t claimed_bytes_peak = 0;  // of frame memory, the most that one PE held at once
};

/// Runs body(Pe&) on every PE as run() does, but in this process and thread: bodies share all memory. Frames that
/// nobody gave back by the end of a good run are a failure. The stacks of a run that fails are abandoned, not unwound.
SimulateResult simulate(const SimulateOptions& options, const std::function<int(Pe&)>& body);

}  // namespace headway::launch
