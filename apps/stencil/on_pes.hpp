// SPDX-License-Identifier: BSD-3-Clause
/// A block on each PE, which sends to PEs.
#pragma once

#include <headway/headway.hpp>
#include <vector>

#include "grid.hpp"

namespace headway::stencil {

/// A message: a cell for the ring around a neighbour's block.
struct Cell {
  std::uint32_t place;
  std::uint32_t half;  // that of its step
  double value;
};

/// One PE's block. A step reads one half and writes the other. A neighbour may be one step ahead, never two, since it
/// waits for ours: its cells come to the other half's ring, which is not read before the next step.
class PeBlock {
 public:
  /// Collective.
  PeBlock(Pe& pe, const Blocks& blocks, const AggregatorOptions& options)
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

}  // namespace headway::stencil
