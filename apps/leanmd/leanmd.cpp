/// Lennard-Jones molecular dynamics on elements: cells have particles, computes have pairs of cells that lie near one
/// another. In each step a cell sends its positions to its computes; one that has those of both cells sends each the
/// forces; a cell that has all forces moves its particles. Nobody waits for all, and elements move where there is time.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <support/application.hpp>
#include <utility>
#include <vector>

#include "elements.hpp"

namespace headway::leanmd {
namespace {

/// Alone, one PE computes so many pairs in seconds: what is larger is not computed again unless told so.
inline constexpr double pairs_alone_max = 3e8;
/// Of energy, a particle. Rounding of the time step gives 0.0007 in the first steps, and no more later.
inline constexpr double drift_max = 0.005;
inline constexpr std::uint32_t cells_max = 1u << 24;

struct Arguments {
  apps::Common common;
  std::optional<Coordinates> cells;
  std::uint64_t cells_per_pe = 16;
  std::uint32_t particles = 27, steps = 100, exchange_every = 5;
  std::optional<std::uint32_t> elsewhere;
  std::uint32_t wander = 0;
  std::int32_t away = 1;
  std::string verify = "auto";
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CLI::App app("Lennard-Jones molecular dynamics on cells and pairs of cells that can migrate; verified.",
               "headway-leanmd");
  const auto number = [](const char* name, std::uint64_t min, std::uint64_t max, auto& into) {
    return [=, &into](const std::string& text) {
      into = static_cast<std::uint32_t>(bench::parse_count(name, text, min, max));
    };
  };
  bench::add_value(
      app, "--cells",
      [&](const std::string& text) {
        const std::vector<std::string> parts = bench::parse_list("--cells", text);
        if (parts.size() != 3) {
          throw SettingError(
              fmt::format("--cells: '{}' is not allowed; allowed are three numbers, such as 4,4,2", text));
        }
        Coordinates cells;
        for (unsigned d = 0; d < 3; ++d) cells[d] = std::int32_t(bench::parse_count("--cells", parts[d], 2, 4096));
        arguments.cells = cells;
      },
      "X,Y,Z", "cells in each dimension, at least 2 for each that --away counts [as --cells-per-pe says]");
  bench::add_value(
      app, "--cells-per-pe",
      [&](const std::string& text) { arguments.cells_per_pe = bench::parse_count("--cells-per-pe", text, 1, 1 << 20); },
      "N", "at least N cells for each PE, and no more than a box near to a cube needs [16]");
  bench::add_value(app, "--particles", number("--particles", 1, 4096, arguments.particles), "N",
                   "particles in a cell at first [27]");
  bench::add_value(app, "--corner", number("--corner", 0, 4096, arguments.elsewhere), "N",
                   "only the corner, an eighth of the box, has so many in a cell, the rest N [all --particles]");
  bench::add_value(
      app, "--away",
      [&](const std::string& text) { arguments.away = std::int32_t(bench::parse_count("--away", text, 1, 2)); }, "N",
      "particles act on those in cells up to N away, 1 or 2: these are shorter [1]");
  bench::add_value(app, "--steps", number("--steps", 1, 1'000'000, arguments.steps), "N", "steps of 0.005 [100]");
  bench::add_value(app, "--migrate-every", number("--migrate-every", 1, 100, arguments.exchange_every), "N",
                   "steps from which to which particles go over to other cells [5]");
  bench::add_value(app, "--wander", number("--wander", 1, 1'000'000, arguments.wander), "N",
                   "to test: cells and computes go on to the next PE by themselves in every N-th step [never]");
  static const std::array<std::string, 3> ways = {"auto", "serial", "invariants"};
  bench::add_value(
      app, "--verify", [&](const std::string& text) { arguments.verify = bench::parse_choice("--verify", text, ways); },
      "WAY",
      "serial: one PE computes all once more alone, and finds the same bits; invariants: energy, momentum and "
      "particles are conserved; auto: both, the first if it is cheap [auto]");
  apps::add_common_options(app, arguments.common);
  return bench::parse_command_line(app, argc, argv);
}

/// Why this run cannot be, or empty. The same on every PE.
std::string refusal(const Arguments& arguments, const Box& box) {
  const std::int32_t least = 2 * box.away;
  if (box.elsewhere > box.particles) {
    return fmt::format("--corner: '{}' is not allowed; allowed is at most --particles, {}", box.elsewhere,
                       box.particles);
  }
  if (arguments.cells && std::ranges::min(box.cells) < least) {
    return fmt::format("--cells: '{}' is not allowed; allowed with --away {} is {} or more in each dimension",
                       fmt::join(box.cells, ","), box.away, least);
  }
  if (double(box.cells[0]) * box.cells[1] * box.cells[2] > cells_max) {
    return fmt::format("{} cells are not allowed; allowed are {}", fmt::join(box.cells, " x "), cells_max);
  }
  return {};
}

Box make_box(const Arguments& arguments, std::size_t pes) {
  Box box;
  box.away = arguments.away;
  box.particles = arguments.particles;
  box.elsewhere = arguments.elsewhere.value_or(arguments.particles);
  box.cells = arguments.cells ? *arguments.cells : shape_of(arguments.cells_per_pe * pes, 2 * box.away);
  return box;
}

/// What balancing did, over all phases.
struct Balanced {
  std::uint64_t times = 0, moved = 0, moved_bytes = 0;
  double seconds = 0;
  double imbalance_before = 1, imbalance_after = 1;  // largest load over the mean, of computes: first and last measured
  std::string table;                                 // of the first time

  void add(const BalanceTable& computes, const BalanceTable& cells) {
    const double imbalance = computes.mean_s > 0 ? computes.max_before_s / computes.mean_s : 1;
    if (times++ == 0) {
      imbalance_before = imbalance;
      table = to_string(computes);
    }
    imbalance_after = imbalance;
    moved += computes.moved + cells.moved;
    moved_bytes += computes.moved_bytes + cells.moved_bytes;
    seconds += computes.seconds + cells.seconds;
  }
};

/// Shows how far PE 0 has come in a phase, where somebody looks on.
void watch(Pe& pe, Array<Cell>& cells, const Arguments& arguments, apps::Progress& progress, std::uint32_t end) {
  if (!progress.shown() || arguments.wander != 0) return;  // elements that wander may leave
  const Cell* one = nullptr;
  cells.for_each_local([&](Cell& cell) { one = &cell; });
  if (one == nullptr) return;
  wait_until(pe, [&] {
    progress.at(one->step());
    return one->step() >= end;
  });
}

/// What is wrong with the result; nothing is.
std::string fault_of(const Summary& found, const Box& box, const Arguments& arguments, bool computes_alone) {
  std::uint64_t particles = 0;
  for (std::uint32_t cell = 0; cell < box.size(); ++cell) particles += box.particles_of(cell);
  const double count = double(particles);
  if (found.particles != particles) return fmt::format("{} particles instead of {}", found.particles, particles);
  for (const double sum : {found.momentum.x, found.momentum.y, found.momentum.z}) {
    if (!(std::abs(sum) <= 1e-9 * count)) return fmt::format("a momentum of {} in all, instead of 0", sum);
  }
  if (!(std::abs(found.energy_last - found.energy_first) <= drift_max * count)) {
    return fmt::format("the energy was {} and is {}", found.energy_first, found.energy_last);
  }
  if (!computes_alone) return {};
  const Summary alone = run_alone(box, arguments.steps, arguments.exchange_every);
  if (alone.checksum == found.checksum) return {};
  return fmt::format("the checksum is {:016x}, of one who computes alone {:016x}", found.checksum, alone.checksum);
}

/// Pairs of particles that are looked at in all steps, as they are at first.
double pairs_of(const Box& box, std::uint32_t evaluations) {
  const std::vector<Coordinates> ways = box.ways();
  double pairs = 0;
  for (std::uint32_t cell = 0; cell < box.size(); ++cell) {
    for (const Coordinates& way : ways) {
      const std::uint32_t other = box.number(box.sum(box.coordinates(cell), way));
      pairs += double(box.particles_of(cell)) * box.particles_of(other);
    }
  }
  return pairs * evaluations;
}

/// Collective. Returns the status to end with.
int report(Pe& pe, const Arguments& arguments, const Box& box, Array<Cell>& cells, const AggregatorOptions& effective,
           const std::array<bench::FrameCounts, 3>& counted, std::uint64_t messages, std::uint64_t payload_bytes,
           const Balanced& balanced, double seconds) {
  bench::FrameCounts frames = counted[0];
  for (std::size_t i = 1; i < counted.size(); ++i) frames = bench::joined(frames, counted[i]);
  frames = bench::sum_over_pes(pe, frames);
  messages = bench::sum_over_pes(pe, messages);
  payload_bytes = bench::sum_over_pes(pe, payload_bytes);
  std::uint64_t wrong = 0;
  if (pe.id() == 0) {
    const Summary summary = cells.reduce<&Cell::summary>(std::plus<>()).get();
    const bool is_cheap = pairs_of(box, arguments.steps + 1) <= pairs_alone_max;
    const bool computes_alone = arguments.verify == "serial" || (arguments.verify == "auto" && is_cheap);
    const std::string fault = fault_of(summary, box, arguments, computes_alone);
    wrong = fault.empty() ? 0 : 1;
    const std::uint64_t bytes = messages > 0 ? payload_bytes / messages : 0;
    bench::Json record =
        bench::make_record(bench::make_case(pe, "leanmd", effective, bytes, messages), seconds, wrong == 0);
    bench::add_frames(record, frames);
    record["cells"] = box.cells;
    record["away"] = box.away;
    record["particles"] = summary.particles;
    record["steps"] = arguments.steps;
    record["migrate_every"] = arguments.exchange_every;
    record["verified_by"] = computes_alone ? "serial" : "invariants";
    record["checksum"] = fmt::format("{:016x}", summary.checksum);
    record["energy_drift"] = (summary.energy_last - summary.energy_first) / std::max(double(summary.particles), 1.0);
    if (balanced.times > 0) {
      record["balance"] = {{"strategy", arguments.common.balance},
                           {"times", balanced.times},
                           {"moved", balanced.moved},
                           {"moved_bytes", balanced.moved_bytes},
                           {"seconds", balanced.seconds},
                           {"imbalance_before", balanced.imbalance_before},
                           {"imbalance_after", balanced.imbalance_after}};
    }
    record["options"] = bench::options_record(effective);
    bench::report(record, arguments.common.json);
    if (!fault.empty()) fmt::print(stderr, "leanmd: {}\n", fault);
    if (balanced.times > 0 && arguments.common.json.empty()) {
      fmt::print("Computes, the first of {} times:\n{}Their max/mean was {:.3f}, and before the last time {:.3f}.\n",
                 balanced.times, balanced.table, balanced.imbalance_before, balanced.imbalance_after);
      std::fflush(stdout);
    }
  }
  wrong = bench::sum_over_pes(pe, wrong);
  pe.quiesce();
  return wrong == 0 ? 0 : 1;
}

int measure(Pe& pe, const Arguments& arguments) {
  Box box = make_box(arguments, pe.size());
  if (const std::string why = refusal(arguments, box); !why.empty()) {
    if (pe.id() == 0) fmt::print(stderr, "headway-leanmd: {}\n", why);
    return exit_status::unusable_arguments;
  }
  box.fit(arguments.exchange_every);
  const Plan plan{box, arguments.steps, arguments.exchange_every, arguments.wander};
  const std::uint32_t evaluations = arguments.steps + 1;
  const bool balances = arguments.common.balance != "none";
  CollectionOptions options{.measure_load = balances && arguments.common.balance != "rotate", .name = "leanmd"};
  if (arguments.common.is_told()) options.override_all = arguments.common.aggregation;
  Array<Cell> cells(pe, {box.cells[0], box.cells[1], box.cells[2]}, options, plan);
  Array<Compute> computes(pe, {box.size(), box.ways().size()}, options, plan, cells.proxy());
  if (pe.id() == 0) cells.broadcast<&Cell::meet>(computes.proxy());
  const auto counts = [&] {
    return std::array{computes.statistics<&Compute::positions>(), cells.statistics<&Cell::forces>(),
                      cells.statistics<&Cell::movers>()};
  };
  pe.quiesce();

  Balanced balanced;
  const auto before = counts();
  const std::int64_t begin = pe.engine().now();
  {
    apps::Progress progress(pe, arguments.common, "leanmd: step", arguments.steps);
    const std::uint32_t phase = balances ? std::uint32_t(arguments.common.balance_every) : evaluations;
    for (std::uint32_t end = 0; end < evaluations;) {
      end += std::min(phase, evaluations - end);
      if (pe.id() == 0) cells.broadcast<&Cell::run_until>(end);
      watch(pe, cells, arguments, progress, end);
      pe.quiesce();
      progress.at(end - 1);
      if (!balances || end == evaluations) continue;
      const BalanceTable of_computes = balance(computes, parse_balance(arguments.common.balance));
      balanced.add(of_computes, balance(cells, parse_balance(arguments.common.balance)));
    }
  }
  const double seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const auto after = counts();
  std::array<bench::FrameCounts, 3> frames;
  std::uint64_t messages = 0, payload_bytes = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    frames[i] = bench::growth(before[i], after[i]);
    messages += after[i].messages - before[i].messages;
    payload_bytes += after[i].payload_bytes - before[i].payload_bytes;
  }
  return report(pe, arguments, box, cells, computes.options<&Compute::positions>(), frames, messages, payload_bytes,
                balanced, seconds);
}

}  // namespace
}  // namespace headway::leanmd

int main(int argc, char** argv) {
  using namespace headway::leanmd;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
