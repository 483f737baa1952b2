// SPDX-License-Identifier: BSD-3-Clause
/// The simulated transport: all PEs are fibers of one process, on a virtual clock, scheduled by a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/base/fiber.hpp>
#include <headway/base/random.hpp>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/sim/conditions.hpp>
#include <headway/transport/sim/memory.hpp>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <vector>

namespace headway::sim {

struct WorldOptions {
  std::size_t pes = 1;
  std::uint64_t seed = 1;
  Conditions conditions = {};
  std::size_t frame_memory_bytes = std::size_t(1) << 24;  // of one PE
  std::size_t stack_bytes = base::Fiber::stack_bytes_default;
  std::size_t board_bytes = 8192;
  /// Memory of the boards; empty: the world makes them.
  std::function<std::span<std::byte>(std::size_t pe)> board = {};
};

/// A discrete-event simulation. Each PE has its own clock, which its calls of the transport advance. The PE with the
/// earliest clock runs until its clock passes that of the next PE. Computation between calls takes no time, unless the
/// PE charges it (transport::SimulatedClock) or Conditions::compute is above 0. All random choices come from the seed:
/// the same seed gives the same run if computation is not measured and the program does not depend on addresses or real
/// time.
class World {
 public:
  explicit World(WorldOptions options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  std::size_t size() const { return pes_.size(); }
  transport::Endpoint& endpoint(std::size_t pe);

  enum class End {
    finished,  // all bodies have returned
    given_up,  // watch() has returned false, or stop() was called
    stuck,     // no PE will ever run again
  };

  /// Runs body(pe) on a fiber for every PE. `watch` is called about every `watch_ns` of simulated time, between
  /// the PEs' turns; false ends the run. Fibers that are not done then are abandoned. Once.
  End run(const std::function<void(std::size_t pe)>& body, std::int64_t watch_ns, const std::function<bool()>& watch);

  /// From a body: ends the run at the end of its PE's turn.
  void stop() { stopped_ = true; }

  /// From a body: the PE computes for this time, whatever its factor is.
  void pass_time(std::size_t pe, std::int64_t ns);

  /// The latest of the PEs' clocks.
  std::int64_t now() const { return now_; }
  /// True while that PE is charged for computation.
  bool is_computing(std::size_t pe) const;
  /// True if that PE has stopped for ever.
  bool is_stopped(std::size_t pe) const;
  std::uint64_t frames() const { return frames_; }
  std::uint64_t switches() const { return switches_; }
  /// Peak of that PE's claimed frame memory, in bytes.
  std::size_t claimed_bytes_peak(std::size_t pe) const;
  /// Text about frames that were not released; empty after the end of a correct run.
  std::string missing() const;

 private:
  friend class SimEndpoint;
  struct SimPe;
  enum class State { ready, sleeping, stopped, done };

  struct Turn {
    std::int64_t at;
    std::uint32_t tie;  // by the seed
    std::uint32_t pe;
    std::uint64_t version;  // of the PE's schedule; an older one is void
    bool operator>(const Turn& other) const { return at != other.at ? at > other.at : tie > other.tie; }
  };

  void schedule(SimPe& pe, std::int64_t at);
  void wake(SimPe& pe, std::int64_t at);
  void advance(SimPe& pe, std::int64_t ns);
  void advance_clock(SimPe& pe, std::int64_t ns);
  void compute(SimPe& pe, double ns);
  void suspend(SimPe& pe);
  void drop_void_turns();
  std::int64_t next_turn();

  WorldOptions options_;
  Random random_;
  std::vector<transport::SharedByProcess> processes_;  // as many as PEs
  std::vector<std::size_t> host_firsts_;
  std::vector<std::unique_ptr<SimPe>> pes_;
  std::vector<std::byte> boards_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::int64_t read_clock_ns_ = 0;  // what two reads of the thread's clock have between them
  std::int64_t horizon_ = 0;        // the running PE's turn ends beyond it
  std::int64_t now_ = 0;
  std::size_t running_ = 0;  // bodies that have not returned
  std::uint64_t sequence_ = 0, frames_ = 0, switches_ = 0;
  bool stopped_ = false;
};

}  // namespace headway::sim
