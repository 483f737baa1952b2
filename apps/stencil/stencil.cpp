/// The 5-point stencil: Jacobi's iteration for Laplace's equation on a grid of cells, a block of which each PE has. In
/// each step a PE sends the cells at the edges of its block to its neighbours, each cell a message, and goes on as soon
/// as as many have come: neighbours wait for each other, nobody waits for all.
#include <fmt/format.h>

#include <headway/headway.hpp>
#include <options.hpp>

#include "grid.hpp"

namespace headway::stencil {
namespace {

struct Arguments {
  std::size_t side = 32, steps = 10;
  AggregatorOptions aggregator;
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CLI::App app("The 5-point stencil on Headway, a message for each cell at an edge; verified.", "headway-stencil");
  bench::add_value(
      app, "--side", [&](const std::string& text) { arguments.side = bench::parse_count("--side", text, 1, 4096); },
      "N", "a PE's block has N x N cells [32]");
  bench::add_value(
      app, "--steps",
      [&](const std::string& text) { arguments.steps = bench::parse_count("--steps", text, 1, 1'000'000); }, "N",
      "steps of all cells [10]");
  bench::add_aggregator_options(app, arguments.aggregator);
  bench::add_value(
      app, "--json", [&](const std::string& text) { arguments.json = text; }, "FILE",
      "write the record to FILE, or - for standard output");
  return bench::parse_command_line(app, argc, argv);
}

/// A message: a cell for the ring around a neighbour's block.
struct Cell {
  std::uint32_t place;
  std::uint32_t half;  // that of its step
  double value;
};

/// One PE's block. A step reads one half and writes the other. A neighbour may be one step ahead, never two, since it
/// waits for ours: its cells come to the other half's ring, which is not read before the next step.
class Block {
 public:
  /// Collective.
  Block(Pe& pe, const Blocks& blocks, const AggregatorOptions& options)
      : pe_(pe), edges_(blocks.edges(pe.id())), area_(blocks.block(pe.id())), halo_(pe, options) {
    for (const Edge& edge : edges_) awaited_ += edge.cells;
    halo_.on([this](const Cell& cell) {
      halves_[cell.half].cells()[cell.place] = cell.value;
      ++arrived_[cell.half];
    });
  }

  /// Back to step 0. All PEs must have come back to it before one goes on.
  void reset() { halves_[0] = halves_[1] = Field(area_); }

  /// Returns the field after so many steps from step 0 on.
  const Field& run(std::size_t steps) {
    for (std::size_t step = 0; step < steps; ++step) {
      const std::uint32_t half = step % 2;
      send_edges(half);
      wait_until(pe_, [&] { return arrived_[half] == awaited_; });
      arrived_[half] = 0;
      relax(halves_[half], halves_[1 - half]);
    }
    return halves_[steps % 2];
  }

  /// Messages that come in each step.
  std::uint64_t awaited() const { return awaited_; }
  const Aggregator<Cell>& halo() const { return halo_; }

 private:
  void send_edges(std::uint32_t half) {
    const double* const cells = halves_[half].cells();
    for (const Edge& edge : edges_) {
      for (std::ptrdiff_t i = 0; i < edge.cells; ++i) {
        const auto there = std::uint32_t(edge.there + i * edge.stride);
        halo_.send(edge.neighbour, {there, half, cells[edge.here + i * edge.stride]});
      }
    }
    halo_.flush();  // nothing else would fill these buffers before the next step
  }

  Pe& pe_;
  std::vector<Edge> edges_;
  Area area_;
  Field halves_[2] = {Field(area_), Field(area_)};
  std::uint64_t awaited_ = 0, arrived_[2] = {0, 0};
  Aggregator<Cell> halo_;
};

int measure(Pe& pe, const Arguments& arguments) {
  const Blocks blocks(pe.size(), arguments.side);
  Block block(pe, blocks, arguments.aggregator);
  block.run(arguments.steps);  // warms caches and frames
  block.reset();
  pe.quiesce();
  const AggregatorStatistics before = block.halo().statistics();
  const std::int64_t begin = pe.engine().now();
  const Field& result = block.run(arguments.steps);
  const double seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const AggregatorStatistics after = block.halo().statistics();

  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));
  const std::uint64_t handled = bench::sum_over_pes(pe, after.handled - before.handled);
  const std::uint64_t expected = bench::sum_over_pes(pe, block.awaited() * arguments.steps);
  const std::uint64_t errors =
      bench::sum_over_pes(pe, count_errors(result, blocks.whole(), std::ptrdiff_t(arguments.steps)));
  const bool verified = errors == 0 && handled == expected;
  if (pe.id() == 0) {
    const AggregatorOptions& effective = block.halo().options();
    bench::Json record =
        bench::make_record(bench::make_case(pe, "stencil", effective, sizeof(Cell), expected), seconds, verified);
    bench::add_frames(record, frames);
    record["side"] = arguments.side;
    record["steps"] = arguments.steps;
    record["errors"] = errors;
    record["options"] = bench::options_record(effective);
    bench::report(record, arguments.json);
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
