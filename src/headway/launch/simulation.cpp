// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/am/engine.hpp>
#include <headway/base/error.hpp>
#include <headway/launch/simulation.hpp>
#include <utility>

namespace headway::launch {
namespace {

constexpr unsigned checks_per_stall = 4;

}  // namespace

Simulation::Simulation(sim::WorldOptions options, std::int64_t stall_ns)
    : world_(std::move(options)), stall_ns_(stall_ns), reporters_(world_.size()) {
  for (std::size_t pe = 0; pe < world_.size(); ++pe) {
    board(pe).waiting_for.store(report::no_pe, std::memory_order_relaxed);
    board(pe).phase.store(report::Phase::computing, std::memory_order_relaxed);
  }
}

bool Simulation::run(const std::function<void(transport::Endpoint&)>& body) {
  const std::int64_t check_interval_ns =
      stall_ns_ == 0 ? sim::forever / 2 : std::max<std::int64_t>(stall_ns_ / checks_per_stall, 1);
  const sim::World::End end = world_.run([&](std::size_t pe) { body(world_.endpoint(pe)); }, check_interval_ns,
                                         [this] {
                                           still_checks_ = moves() ? 0 : still_checks_ + 1;
                                           if (stall_ns_ == 0 || still_checks_ < checks_per_stall) return true;
                                           stall_ = page();
                                           return false;
                                         });
  if (end == sim::World::End::stuck) stall_ = page();
  return end == sim::World::End::finished;
}

/// As StallWatch: the run moves if a PE works, or the activity of any PE has changed.
bool Simulation::moves() {
  std::uint64_t activity = 0;
  bool any_waits = false, any_works = false;
  for (std::size_t pe = 0; pe < world_.size(); ++pe) {
    const report::Phase phase = board(pe).phase.load(std::memory_order_relaxed);
    activity += board(pe).activity.load(std::memory_order_relaxed);
    any_waits |= waits(phase);
    any_works |= !waits(phase) && phase != report::Phase::finished && !world_.is_stopped(pe);
    any_works |= world_.is_computing(pe);  // a handler may be charged while its PE waits
  }
  if (activity == activity_ && any_waits && !any_works) return false;
  activity_ = activity;
  return true;
}

std::string Simulation::page() {
  std::vector<report::PeView> pes;
  for (std::size_t pe = 0; pe < world_.size(); ++pe) {
    std::optional<report::PeReport> report;
    if (reporters_[pe]) report = reporters_[pe]();
    report::PeView& view = pes.emplace_back(report::view_of(board(pe)));
    view.answered = report.has_value();
    if (report) view.report = std::move(*report);
    if (world_.is_stopped(pe)) view.state = "is stopped";
  }
  return stall_page(fmt::format("nothing has moved for {:.3g} ms of simulated time though work is pending:",
                                double(stall_ns_) * 1e-6),
                    pes);
}

SimulateResult simulate(const SimulateOptions& options, const std::function<int(Pe&)>& body) {
  Simulation simulation({.pes = options.pes,
                         .seed = options.seed,
                         .conditions = options.conditions,
                         .frame_memory_bytes = options.budget_bytes,
                         .stack_bytes = options.stack_bytes,
                         .board_bytes = sizeof(report::PeBoard)},
                        options.stall_ns);
  SimulateResult result;
  auto failed = [&](std::size_t pe, report::FailureKind kind, const std::string& text) {
    if (result.status == 0) {
      result.status = int(kind);
      result.text = fmt::format("PE {}: {}", pe, text);
    }
    simulation.stop();
  };
  const bool finished = simulation.run([&](transport::Endpoint& endpoint) {
    try {
      am::Engine engine(endpoint, {.budget_bytes = options.budget_bytes,
                                   .spill_bytes = options.spill_bytes,
                                   .idle = am::Idle::sleep,
                                   .sizes = options.sizes,
                                   .reporter = &simulation.reporter(endpoint.id())});
      const int status = body(engine.pe());
      if (status != 0) return failed(endpoint.id(), report::FailureKind(status), "the program returned this status");
      engine.finish();
      report::board_of(endpoint, endpoint.id()).phase.store(report::Phase::finished, std::memory_order_relaxed);
    } catch (const am::RunFailed& error) {
      failed(endpoint.id(), error.kind, error.what());
    } catch (const std::exception& error) {
      failed(endpoint.id(), report::FailureKind::failed, error.what());
    } catch (...) {
      failed(endpoint.id(), report::FailureKind::failed, "the program threw something that is no std::exception");
    }
  });
  const sim::World& world = simulation.world();
  if (!finished && result.status == 0) {
    result.status = int(report::FailureKind::stalled);
    result.text = simulation.stall();
  }
  if (const std::string missing = world.missing(); result.status == 0 && !missing.empty()) {
    result.status = int(report::FailureKind::failed);
    result.text = "frame memory that was not released: " + missing;
  }
  result.simulated_ns = world.now();
  result.frames = world.frames();
  for (std::size_t pe = 0; pe < world.size(); ++pe) {
    result.claimed_bytes_peak = std::max(result.claimed_bytes_peak, world.claimed_bytes_peak(pe));
  }
  return result;
}

}  // namespace headway::launch
