// SPDX-License-Identifier: BSD-3-Clause
/// Lennard-Jones molecular dynamics on two arrays of elements: cells, which have particles, and pairs of cells, which
/// compute forces. No PE waits for all within a phase: a pair computes when both cells' positions have come, a cell
/// makes its step when the forces of all its pairs have.
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/counted.hpp>
#include <headway/headway.hpp>
#include <numeric>
#include <span>
#include <string>
#include <support/application.hpp>
#include <vector>

#include "molecules.hpp"

namespace headway::leanmd {
namespace {

struct Arguments {
  Options simulation;
  bool has_cells = false;
  bool alone = true;  // verify beside one processor
  apps::Common common;
};

Place parse_cells(const std::string& text) {
  Place cells;
  std::size_t at = 0;
  for (unsigned k = 0; k < 3; ++k) {
    const std::size_t end = k < 2 ? text.find(',', at) : text.size();
    if (end == std::string::npos)
      throw SettingError(fmt::format("--cells: '{}' is not allowed; allowed is X,Y,Z", text));
    cells[k] = std::int32_t(bench::parse_count("--cells", text.substr(at, end - at), 2, 1000));
    at = end + 1;
  }
  return cells;
}

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("Lennard-Jones molecular dynamics on Headway's objects; verified.", "headway-leanmd");
  Options& simulation = arguments.simulation;
  app.add_value("--cells", "X,Y,Z",
                "cells in all, each extent at least twice --away [16 for each PE, or somewhat more]",
                [&](const std::string& text) {
                  simulation.cells = parse_cells(text);
                  arguments.has_cells = true;
                });
  app.add_count("--away", "N", "a cell interacts with those up to so many further: 1 or 2 [1]", simulation.away, 1, 2);
  app.add_count("--particles", "N", "of a cell [27]", simulation.particles, 1, 100'000);
  app.add_flag("--corner", "cells outside of one corner have a sixteenth of the particles", simulation.corner);
  app.add_count("--steps", "N", "of time [100]", simulation.steps, 1, 1 << 30);
  app.add_count("--migrate-every", "N", "steps, particles that have left a cell go to the next [5]",
                simulation.migrate_every, 1, 1'000);
  app.add_number("--time-step", "T", "of the unit of time [0.002]", simulation.time_step, 1e-6, 0.02);
  app.add_flag("--no-serial", "verify particles, momentum and energy alone, not beside one processor",
               [&] { arguments.alone = false; });
  apps::add_common_options(app, arguments.common);
  return app.parse(argc, argv);
}

/// The same on every PE; what all elements are made from.
Options simulation_of(const Arguments& arguments, std::size_t pes) {
  Options options = arguments.simulation;
  const std::int32_t least = 2 * options.away;
  if (!arguments.has_cells) {
    options.cells = {least, least, least};
    while (Geometry(options).size() < 16 * pes) ++*std::ranges::min_element(options.cells);
  }
  for (const std::int32_t extent : options.cells) {
    if (extent < least)
      throw SettingError(
          fmt::format("--cells: {} is not allowed with --away {}; allowed is {} and more, or a particle "
                      "would meet another from two sides at once",
                      extent, options.away, least));
  }
  const Geometry geometry(options);
  if (geometry.cutoff < 0.5)
    throw SettingError(fmt::format(
        "--migrate-every: in {} of {} particles may move {:.3g}, too far for cells "
        "of {:.3g}",
        base::counted(options.migrate_every, "step"), options.time_step, Geometry::margin(options), geometry.side));
  options.seed = base::Settings::from_environment().seed;
  return options;
}

/// What every PE computes once, to make its elements from.
struct World {
  explicit World(const Options& chosen) : options(chosen), geometry(chosen), couples(geometry, chosen.away) {}
  Options options;
  Geometry geometry;
  Couples couples;
};

/// PE 0's, for cells that are there, while it runs.
apps::Progress* progress_of_pe_0 = nullptr;

class Pair;

class Cell : public Element<Cell, Index<3>> {
 public:
  Cell() = default;
  explicit Cell(const World& world)
      : options_(world.options),
        self_(world.geometry.number(index().at)),
        state_(world.options, self_),
        pairs_(world.couples.of_cell[self_]),
        neighbours_(world.geometry.around(self_, 1)) {
    for (const std::uint32_t pair : pairs_) sides_.push_back(world.couples.all[pair].first == self_ ? 0 : 1);
  }

  void run(Proxy<Pair> all_pairs, std::int32_t until) {
    all_pairs_ = all_pairs;
    until_ = until;
    if (step_ < until_) begin_step();
  }

  void take_forces(std::int32_t step, std::uint32_t slot, std::span<const Vector> forces);
  std::size_t pairs(std::int32_t) const { return pairs_.size(); }
  void integrate(std::int32_t step) {
    state_.integrate(forces_, options_.time_step, step);
    if (progress_of_pe_0 != nullptr && pe().id() == 0) progress_of_pe_0->at(std::uint64_t(step));
    if (++step_ < until_) begin_step();
  }

  /// The first argument counts exchanges.
  void take_particles(std::int32_t exchange, std::span<const Particle> particles);
  std::size_t neighbours(std::int32_t) const { return neighbours_.size(); }
  void exchanged(std::int32_t) {
    state_.take(arriving_);
    arriving_.clear();
    state_.order();
    send_positions();
  }

  static constexpr auto aggregation = entries(entry<&Cell::take_forces>{}, entry<&Cell::take_particles>{});
  static constexpr auto triggers =
      headway::triggers(trigger<&Cell::integrate, &Cell::take_forces>(&Cell::pairs),
                        trigger<&Cell::exchanged, &Cell::take_particles>(&Cell::neighbours));

  const CellState& state() const { return state_; }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(options_, self_, state_, pairs_, sides_, neighbours_, all_pairs_, forces_, arriving_, step_, until_);
  }

 private:
  void begin_step() {
    if (exchanges_before(options_, step_))
      send_particles();
    else
      send_positions();
  }
  void send_particles();
  void send_positions();

  Options options_;
  std::uint32_t self_ = 0;
  CellState state_;
  std::vector<std::uint32_t> pairs_, sides_;  // by slot; which of the pair this cell is
  std::vector<std::uint32_t> neighbours_;     // this cell too
  Proxy<Pair> all_pairs_;
  std::vector<std::vector<Vector>> forces_;  // by slot
  std::vector<Particle> arriving_;
  std::int32_t step_ = 0, until_ = 0;
};

/// Two cells that interact, or one with itself.
class Pair : public Element<Pair, Index<1>> {
 public:
  Pair() = default;
  Pair(const World& world, const Proxy<Cell>& cells)
      : options_(world.options), couple_(world.couples.all[std::size_t(index()[0])]), cells_(cells) {}

  void take_positions(std::int32_t, std::uint32_t side, std::span<const Vector> positions) {
    positions_[side].assign(positions.begin(), positions.end());
  }
  std::size_t members(std::int32_t) const { return couple_.first == couple_.second ? 1 : 2; }
  void compute(std::int32_t step) {
    const Geometry geometry(options_);
    const bool same = couple_.first == couple_.second;
    std::vector<Vector> forces[2];
    for (unsigned side = 0; side < 2; ++side) forces[side].resize(positions_[side].size());
    energy_ =
        interact(Potential(geometry.cutoff), geometry.box, same, positions_[0], positions_[1], forces[0], forces[1]);
    if (step == 0) energy_first_ = energy_;
    Collection<Cell>& cells = cells_.collection();
    Index<3> cell;
    cell.at = geometry.place(couple_.first);
    cells[cell].send<&Cell::take_forces>(step, couple_.first_slot, forces[0]);
    if (same) return;
    cell.at = geometry.place(couple_.second);
    cells[cell].send<&Cell::take_forces>(step, couple_.second_slot, forces[1]);
  }

  static constexpr auto aggregation = entries(entry<&Pair::take_positions>{});
  static constexpr auto triggers = headway::triggers(trigger<&Pair::compute, &Pair::take_positions>(&Pair::members));

  double energy_first() const { return energy_first_; }  // in step 0
  double energy() const { return energy_; }              // in the last

  template <class Archive>
  void serialize(Archive& archive) {
    archive(options_, couple_, cells_, positions_, energy_first_, energy_);
  }

 private:
  Options options_;
  Couple couple_{};
  Proxy<Cell> cells_;
  std::array<std::vector<Vector>, 2> positions_;
  double energy_first_ = 0, energy_ = 0;
};

void Cell::take_forces(std::int32_t, std::uint32_t slot, std::span<const Vector> forces) {
  forces_.resize(pairs_.size());
  forces_[slot].assign(forces.begin(), forces.end());
}

void Cell::take_particles(std::int32_t, std::span<const Particle> particles) {
  arriving_.insert(arriving_.end(), particles.begin(), particles.end());
}

void Cell::send_particles() {
  const Geometry geometry(options_);
  std::vector<std::vector<Particle>> leaving;
  state_.part(geometry, Geometry::margin(options_), self_, neighbours_, leaving);
  const std::int32_t exchange = step_ / options_.migrate_every - 1;
  for (std::size_t n = 0; n < neighbours_.size(); ++n) {
    Index<3> cell;
    cell.at = geometry.place(neighbours_[n]);
    all()[cell].send<&Cell::take_particles>(exchange, leaving[n]);
  }
}

void Cell::send_positions() {
  std::vector<Vector> positions;
  state_.positions(positions);
  Collection<Pair>& all_pairs = all_pairs_.collection();
  for (std::size_t slot = 0; slot < pairs_.size(); ++slot) {
    all_pairs[std::int32_t(pairs_[slot])].send<&Pair::take_positions>(step_, sides_[slot], positions);
  }
}

/// The particles that there are, and their momentum, before the first step.
Outcome beginning(const World& world) {
  Outcome outcome;
  for (std::uint32_t cell = 0; cell < world.geometry.size(); ++cell) outcome.add(CellState(world.options, cell));
  return outcome;
}

/// Messages of crowded cells are worth a frame: that they wait for others to fill a buffer would hold up the next step.
AggregatorOptions aggregation_of(const apps::Common& common, const Options& options) {
  constexpr std::size_t crowded_bytes = 4096;
  AggregatorOptions aggregation = common.aggregation;
  const bool told = aggregation.cutoff != derived_fraction || aggregation.threshold != derived_fraction;
  if (!told && options.particles * sizeof(Vector) >= crowded_bytes) aggregation.cutoff = 0.02;
  return aggregation;
}

int measure(Pe& pe, const Arguments& arguments) {
  const World world(simulation_of(arguments, pe.size()));
  const Options& options = world.options;
  const apps::Common& common = arguments.common;
  const AggregatorOptions aggregation = aggregation_of(common, options);
  const bool balances = common.balance != "none";
  const bool measures = balances && common.balance != "rotate";
  Array<Cell> cells(pe, {options.cells[0], options.cells[1], options.cells[2]},
                    {.override_all = aggregation, .measure_load = measures, .name = "cells"}, world);
  Array<Pair> pairs(pe, {std::int32_t(world.couples.all.size())},
                    {.override_all = aggregation, .measure_load = measures, .name = "pairs"}, world, cells.proxy());
  pe.quiesce();
  const AggregatorStatistics positions_before = pairs.statistics<&Pair::take_positions>();
  const AggregatorStatistics forces_before = cells.statistics<&Cell::take_forces>();
  const AggregatorStatistics particles_before = cells.statistics<&Cell::take_particles>();
  apps::Progress progress(pe, common, "leanmd: step", std::uint64_t(options.steps));
  if (pe.id() == 0 && common.shows_progress) progress_of_pe_0 = &progress;
  std::uint64_t moved = 0;
  double imbalance_first = 0, imbalance = 0;  // before they were first and last balanced: 1 is none
  const auto phase = std::int32_t(balances ? std::min<std::uint64_t>(common.balance_every, std::uint64_t(options.steps))
                                           : std::uint64_t(options.steps));
  const std::int64_t begin = pe.engine().now();
  for (std::int32_t step = 0; step < options.steps;) {
    step = std::min(options.steps, step + phase);
    if (pe.id() == 0) cells.broadcast<&Cell::run>(pairs.proxy(), step);
    pe.quiesce();
    if (balances && step < options.steps) {
      const BalanceTable table = balance(parse_balance(common.balance), cells, pairs);
      moved += table.moved;
      if (table.mean_s > 0) imbalance = table.max_before_s / table.mean_s;
      if (step == phase) imbalance_first = imbalance;
    }
  }
  const double seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  if (pe.id() == 0) progress_of_pe_0 = nullptr;
  const AggregatorStatistics positions_after = pairs.statistics<&Pair::take_positions>();
  const AggregatorStatistics forces_after = cells.statistics<&Cell::take_forces>();
  const AggregatorStatistics particles_after = cells.statistics<&Cell::take_particles>();
  const bench::FrameCounts frames =
      bench::sum_over_pes(pe, bench::joined(bench::joined(bench::growth(positions_before, positions_after),
                                                          bench::growth(forces_before, forces_after)),
                                            bench::growth(particles_before, particles_after)));
  const std::uint64_t messages =
      bench::sum_over_pes(pe, positions_after.handled - positions_before.handled + forces_after.handled -
                                  forces_before.handled + particles_after.handled - particles_before.handled);

  Outcome outcome;
  cells.for_each_local([&](Cell& cell) { outcome.add(cell.state()); });
  pairs.for_each_local([&](Pair& pair) {
    outcome.energy_first += pair.energy_first();
    outcome.energy += pair.energy();
  });
  outcome = allreduce(pe, outcome, [](const Outcome& a, const Outcome& b) { return a + b; });
  const Outcome first = beginning(world);
  std::uint64_t errors = outcome.strayed + (outcome.particles != first.particles);
  const double momentum_error_max = 1e-10 * double(first.particles) * options.steps;
  for (unsigned k = 0; k < 3; ++k) {
    errors += !(std::abs(outcome.momentum[k] - first.momentum[k]) <= momentum_error_max);
  }
  errors += !(outcome.drift() <= drift_max);
  if (arguments.alone && pe.id() == 0) {
    const Outcome expected = simulate(options);
    errors += outcome.checksum != expected.checksum;
    errors += !(std::abs(outcome.drift() - expected.drift()) <= 1e-9);
  }
  errors = broadcast(pe, errors, 0);
  if (pe.id() == 0) {
    const std::size_t bytes = sizeof(Vector) * outcome.particles / world.geometry.size();
    const AggregatorOptions& effective = pairs.options<&Pair::take_positions>();
    bench::Json record =
        bench::make_record(bench::make_case(pe, "leanmd", effective, bytes, messages), seconds, errors == 0);
    bench::add_frames(record, frames);
    record["cells"] = options.cells;
    record["couples"] = world.couples.all.size();
    record["away"] = options.away;
    record["steps"] = options.steps;
    record["particles"] = outcome.particles;
    record["checksum"] = fmt::format("{:016x}", outcome.checksum);
    record["energy_drift"] = outcome.drift();
    record["errors"] = errors;
    record["corner"] = options.corner;
    record["balance"] = common.balance;
    record["moved"] = moved;
    record["imbalance_first"] = imbalance_first;
    record["imbalance_last"] = imbalance;
    record["options"] = bench::options_record(effective);
    record["options"]["beside_one_processor"] = arguments.alone;
    bench::report(record, common.json);
  }
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::leanmd

int main(int argc, char** argv) {
  using namespace headway::leanmd;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
