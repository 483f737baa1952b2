// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/transport/sim/endpoint.hpp>
#include <headway/transport/sim/world.hpp>
#include <utility>

namespace headway::sim {

World::World(WorldOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      processes_(options_.pes),
      host_firsts_(options_.conditions.host_firsts(options_.pes)) {
  if (!options_.board) boards_.resize(options_.pes * options_.board_bytes);
  for (std::size_t pe = 0; pe < options_.pes; ++pe) pes_.push_back(std::make_unique<SimPe>(*this, pe));
  for (const Conditions::Slow& slow : options_.conditions.slow) pes_[slow.pe]->factor *= slow.factor;
  for (const Conditions::Stop& stop : options_.conditions.stops) pes_[stop.pe]->stops.push_back(stop);
  for (auto& pe : pes_) std::ranges::sort(pe->stops, std::greater<>(), &Conditions::Stop::at_ns);
  if (options_.conditions.compute == 0) return;
  read_clock_ns_ = forever;
  for (int look = 0; look < 1'000; ++look) {
    const std::int64_t begin = base::thread_cpu_ns();
    read_clock_ns_ = std::min(read_clock_ns_, base::thread_cpu_ns() - begin);
  }
}

World::~World() = default;

transport::Endpoint& World::endpoint(std::size_t pe) { return pes_[pe]->endpoint; }

void World::schedule(SimPe& pe, std::int64_t at) {
  turns_.push({at, std::uint32_t(random_.next()), std::uint32_t(pe.id), ++pe.version});
}

/// An event at that time wakes the PE if it sleeps longer.
void World::wake(SimPe& pe, std::int64_t at) {
  if (pe.state != State::sleeping || at >= pe.wakes_at) return;
  pe.wakes_at = at;
  schedule(pe, at);
  horizon_ = std::min(horizon_, at);
}

void World::suspend(SimPe& pe) {
  schedule(pe, pe.clock);
  base::Fiber::suspend();
}

void World::pass_time(std::size_t pe, std::int64_t ns) { pes_[pe]->endpoint.pass_time(ns); }

/// The running PE computes for this time, if it is not slow.
void World::compute(SimPe& pe, double ns) {
  pe.computing = true;
  const std::int64_t left = std::max<std::int64_t>(forever / 4 - pe.clock, 0);  // the clock stays below its end
  const auto computed = std::int64_t(std::min(ns * pe.factor, double(left)));
  pe.computed += computed;
  advance_clock(pe, computed);
  pe.computing = false;
}

/// The running PE makes a call that takes this time on a PE without faults.
void World::advance(SimPe& pe, std::int64_t ns) {
  double cost = double(ns) * pe.factor;
  if (options_.conditions.jitter != 0) cost *= 1 + options_.conditions.jitter * random_.fraction();
  advance_clock(pe, std::int64_t(cost));
}

/// Advances the running PE's clock, and lets PEs with an earlier clock run.
void World::advance_clock(SimPe& pe, std::int64_t ns) {
  pe.clock += ns;
  while (!pe.stops.empty() && pe.clock >= pe.stops.back().at_ns) {
    const Conditions::Stop stop = pe.stops.back();
    pe.stops.pop_back();
    if (stop.for_ns == forever) {
      pe.state = State::stopped;
      base::Fiber::suspend();  // does not return
    }
    pe.clock += stop.for_ns;
  }
  if (pe.clock > horizon_) suspend(pe);
}

void World::drop_void_turns() {
  while (!turns_.empty() && turns_.top().version != pes_[turns_.top().pe]->version) turns_.pop();
}

std::int64_t World::next_turn() {
  drop_void_turns();
  return turns_.empty() ? forever : turns_.top().at;
}

World::End World::run(const std::function<void(std::size_t)>& body, std::int64_t watch_ns,
                      const std::function<bool()>& watch) {
  for (auto& pe : pes_) {
    pe->fiber = std::make_unique<base::Fiber>(
        [&body, &pe] {
          pe->endpoint.resume_computing();
          body(pe->id);
        },
        options_.stack_bytes);
    schedule(*pe, 0);
  }
  running_ = pes_.size();
  std::int64_t watch_at = watch_ns;
  while (running_ != 0) {
    if (next_turn() == forever) return End::stuck;
    const Turn turn = turns_.top();
    turns_.pop();
    if (turn.at >= watch_at) {
      if (!watch()) return End::given_up;
      watch_at = turn.at + watch_ns;
    }
    SimPe& pe = *pes_[turn.pe];
    pe.state = State::ready;
    pe.clock = std::max(pe.clock, turn.at);
    horizon_ = next_turn();
    ++switches_;
    pe.fiber->resume();
    now_ = std::max(now_, pe.clock);
    if (stopped_) return End::given_up;
    if (pe.fiber->done()) {
      pe.state = State::done;
      --running_;
    }
  }
  return End::finished;
}

bool World::is_computing(std::size_t pe) const { return pes_[pe]->computing; }

bool World::is_stopped(std::size_t pe) const { return pes_[pe]->state == State::stopped; }

std::size_t World::claimed_bytes_peak(std::size_t pe) const { return pes_[pe]->endpoint.memory().bytes_peak(); }

std::string World::missing() const {
  std::string text;
  for (const auto& pe : pes_) {
    const std::string missing = pe->endpoint.memory().missing();
    if (!missing.empty()) text += (text.empty() ? "" : "; ") + missing;
  }
  return text;
}

}  // namespace headway::sim
