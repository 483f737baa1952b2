// SPDX-License-Identifier: BSD-3-Clause
/// The 5-point stencil: Jacobi's iteration for Laplace's equation on a grid of cells, split into blocks. In each step a
/// block sends the cells at its edges to its neighbours, each cell a message, and goes on as soon as as many have
/// arrived. Only neighbours wait for each other; there is no barrier. Blocks are elements, several on each PE, or the
/// PEs' own.
#include <fmt/format.h>

#include <array>
#include <headway/headway.hpp>
#include <optional>
#include <options.hpp>
#include <string>
#include <support/application.hpp>
#include <utility>
#include <vector>

#include "grid.hpp"
#include "on_elements.hpp"
#include "on_pes.hpp"

namespace headway::stencil {
namespace {

struct Arguments {
  std::size_t side = 32, steps = 10;
  std::string way = "elements";
  std::size_t blocks_per_pe = 4;
  std::optional<std::pair<std::size_t, std::size_t>> blocks;  // rows, columns
  bool whole_edges = false;
  apps::Common common;
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("The 5-point stencil on Headway, a message for each cell at an edge; verified.",
                         "headway-stencil");
  app.add_count("--side", "N", "a block has N x N cells [32]", arguments.side, 1, 4096);
  app.add_count("--steps", "N", "steps of all cells [10]", arguments.steps, 1, 1'000'000);
  static const std::array<std::string, 2> ways = {"elements", "pes"};
  app.add_choice("--way", "WAY",
                 "elements: several blocks on each PE, which can migrate; pes: one, and messages to PEs [elements]",
                 arguments.way, ways);
  app.add_count("--blocks-per-pe", "N", "blocks, for each PE [4]", arguments.blocks_per_pe, 1, 1 << 16);
  app.add_value("--blocks", "R,C", "blocks in all: R rows of C, on any number of PEs", [&](const std::string& text) {
    const std::vector<std::string> parts = bench::parse_list("--blocks", text);
    if (parts.size() != 2) {
      throw SettingError(fmt::format("--blocks: '{}' is not allowed; allowed are two numbers, such as 4,3", text));
    }
    arguments.blocks = {bench::parse_count("--blocks", parts[0], 1, 1 << 15),
                        bench::parse_count("--blocks", parts[1], 1, 1 << 15)};
  });
  app.add_flag("--whole-edges", "an edge is one message, not one for each of its cells", arguments.whole_edges);
  apps::add_common_options(app, arguments.common);
  return app.parse(argc, argv, [&] {
    for (const char* const name : {"--blocks-per-pe", "--blocks", "--whole-edges", "--balance"}) {
      if (arguments.way != "pes" || !app.given(name)) continue;
      throw SettingError(fmt::format("{} is not allowed with --way pes; allowed is --way elements", name));
    }
  });
}

/// The results of a run; counts are of this PE.
struct Result {
  double seconds = 0;
  bench::FrameCounts frames;
  std::uint64_t handled = 0, expected = 0;  // messages
  std::uint64_t errors = 0;                 // cells that are wrong
  std::uint64_t checksum = 0;
  std::size_t message_bytes = sizeof(Cell);
  std::uint64_t blocks = 1, moved = 0;  // of all PEs: blocks, and how often one was moved
  AggregatorOptions effective;
};

Result run_on_pes(Pe& pe, const Arguments& arguments) {
  const Blocks blocks(pe.size(), arguments.side);
  PeBlock block(pe, blocks, arguments.common.aggregation);
  {
    const auto warming = phase(pe, "warm up");
    block.run(arguments.steps);  // caches and frames
  }
  block.reset();
  pe.quiesce();
  const AggregatorStatistics before = block.halo().statistics();
  const std::int64_t begin = pe.engine().now();
  const Field& field = [&]() -> const Field& {
    const auto stepping = phase(pe, "steps");
    return block.run(arguments.steps);
  }();
  Result result;
  result.seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const AggregatorStatistics after = block.halo().statistics();
  result.frames = bench::growth(before, after);
  result.handled = after.handled - before.handled;
  result.expected = block.awaited() * arguments.steps;
  result.errors = count_errors(field, blocks.whole(), std::ptrdiff_t(arguments.steps));
  result.checksum = field.checksum();
  result.blocks = pe.size();
  result.effective = block.halo().options();
  return result;
}

/// Makes steps up to `end`; between phases blocks move. Returns how many moved.
std::uint64_t run_phases(Pe& pe, Array<Block>& blocks, const Arguments& arguments, std::uint32_t from,
                         std::uint32_t end, bool balances) {
  apps::Progress progress(pe, arguments.common, "stencil: step", end);
  const std::uint32_t phase = balances ? std::uint32_t(arguments.common.balance_every) : end - from;
  std::uint64_t moved = 0;
  for (std::uint32_t at = from; at < end;) {
    at += std::min(phase, end - at);
    if (pe.id() == 0) blocks.broadcast<&Block::run_until>(at);
    const Block* seen = nullptr;
    blocks.for_each_local([&](Block& block) { seen = &block; });
    if (progress.shown() && seen != nullptr) {
      wait_until(pe, [&] {
        progress.at(seen->step());
        return seen->step() >= at;
      });
    }
    pe.quiesce();
    if (balances && at < end) moved += balance(blocks, parse_balance(arguments.common.balance)).moved;
  }
  return moved;
}

Result run_on_elements(Pe& pe, const Arguments& arguments) {
  const Plan plan{arguments.blocks ? Blocks(arguments.blocks->first, arguments.blocks->second, arguments.side)
                                   : Blocks(pe.size() * arguments.blocks_per_pe, arguments.side),
                  arguments.whole_edges};
  const bool balances = arguments.common.balance != "none";
  CollectionOptions options{.measure_load = balances && arguments.common.balance != "rotate", .name = "stencil"};
  if (arguments.common.is_told()) options.override_all = arguments.common.aggregation;
  Array<Block> blocks(pe, {plan.blocks.rows(), plan.blocks.columns()}, options, plan);
  const auto statistics = [&] {
    return plan.whole_edges ? blocks.statistics<&Block::edge>() : blocks.statistics<&Block::cell>();
  };
  const auto steps = std::uint32_t(arguments.steps);
  {
    const auto warming = phase(pe, "warm up");
    run_phases(pe, blocks, arguments, 0, steps, false);  // caches and frames
  }
  blocks.for_each_local([](Block& block) { block.reset(); });
  pe.quiesce();
  Result result;
  const AggregatorStatistics before = statistics();
  const std::int64_t begin = pe.engine().now();
  {
    const auto stepping = phase(pe, "steps");
    result.moved = run_phases(pe, blocks, arguments, steps, 2 * steps, balances);
  }
  result.seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const AggregatorStatistics after = statistics();
  result.frames = bench::growth(before, after);
  result.handled = after.handled - before.handled;
  blocks.for_each_local([&](Block& block) {
    result.expected += block.expected() * steps;
    result.errors += count_errors(block.field(), plan.blocks.whole(), std::ptrdiff_t(steps));
    result.checksum += block.field().checksum();
  });
  result.message_bytes = plan.whole_edges ? arguments.side * sizeof(double) : 24;
  result.blocks = blocks.size();
  result.effective = plan.whole_edges ? blocks.options<&Block::edge>() : blocks.options<&Block::cell>();
  pe.quiesce();
  return result;
}

int measure(Pe& pe, const Arguments& arguments) {
  const bool on_pes = arguments.way == "pes";
  const Result result = on_pes ? run_on_pes(pe, arguments) : run_on_elements(pe, arguments);
  const bench::FrameCounts frames = bench::sum_over_pes(pe, result.frames);
  const std::uint64_t handled = bench::sum_over_pes(pe, result.handled);
  const std::uint64_t expected = bench::sum_over_pes(pe, result.expected);
  const std::uint64_t errors = bench::sum_over_pes(pe, result.errors);
  const std::uint64_t checksum = bench::sum_over_pes(pe, result.checksum);
  const bool verified = errors == 0 && handled == expected;
  if (pe.id() == 0) {
    bench::Json record = bench::make_record(
        bench::make_case(pe, "stencil", result.effective, result.message_bytes, expected), result.seconds, verified);
    bench::add_frames(record, frames);
    record["way"] = arguments.way;
    record["side"] = arguments.side;
    record["blocks"] = result.blocks;
    record["steps"] = arguments.steps;
    record["errors"] = errors;
    record["checksum"] = fmt::format("{:016x}", checksum);
    if (arguments.common.balance != "none") {
      record["balance"] = {{"strategy", arguments.common.balance}, {"moved", result.moved}};
    }
    record["options"] = bench::options_record(result.effective);
    if (!on_pes) record["options"]["whole_edges"] = arguments.whole_edges;
    bench::report(record, arguments.common.json);
  }
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace headway::stencil

int main(int argc, char** argv) {
  using namespace headway::stencil;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
