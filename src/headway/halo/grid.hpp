// SPDX-License-Identifier: BSD-3-Clause
/// Plans for regular grids of cells that are divided into blocks, one for each PE.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/am/pe.hpp>
#include <headway/halo/plan.hpp>
#include <span>
#include <vector>

namespace headway::halo {

/// Coordinates, or distances, in up to 4 dimensions; the unused ones are 0.
using Cell = std::array<std::int64_t, 4>;

/// The same on all PEs.
struct GridOptions {
  /// Of the whole grid, by dimension: 1 to 4 of them, the last one contiguous in memory.
  std::vector<std::uint64_t> cells;
  /// Blocks by dimension. Their product is the number of PEs. Empty: nearly cubic blocks. The PEs count through the
  /// blocks, the last dimension first.
  std::vector<std::size_t> blocks = {};
  /// The first cell of each block, by dimension, for blocks of different sizes. Empty, or an empty list for one
  /// dimension: sizes differ by one cell at most.
  std::vector<std::vector<std::uint64_t>> first_cells = {};
  /// Whether the last cell of a dimension is the neighbour of the first. Empty: no dimension.
  std::vector<bool> periodic = {};
  /// Layers of ghost cells around a block.
  std::uint64_t width = 1;
  /// The distances of the cells that an update of one cell reads. Empty: all within `width`, corners included.
  std::vector<Cell> neighbours = {};
};

/// The distances of a star: 2 * dimensions neighbours for width 1, so 5 points in the plane and 7 in space.
std::vector<Cell> star(std::size_t dimensions, std::uint64_t width = 1);

/// One PE's block of a grid, with its ghost cells. An array of it has extent(0) * extent(1) * ... elements, where
/// extent(d) is the block's size plus 2 * width.
///
///     const halo::Grid grid(pe, {.cells = {ny, nx}, .neighbours = halo::star(2)});
///     std::vector<double> heights(grid.elements());
///     halo::Exchange exchange(pe, grid.plan(), {halo::field(heights)});
class Grid {
 public:
  /// Needs no communication. SettingError for options out of range, also if a block has no cell.
  Grid(Pe& pe, GridOptions options);

  std::size_t dimensions() const { return options_.cells.size(); }
  std::uint64_t width() const { return options_.width; }
  std::size_t blocks(std::size_t dimension) const { return options_.blocks[dimension]; }
  /// Of this PE's block: its first cell in the grid, its size, and its size with ghost cells.
  std::uint64_t first(std::size_t dimension) const { return first_[dimension]; }
  std::uint64_t size(std::size_t dimension) const { return size_[dimension]; }
  std::uint64_t extent(std::size_t dimension) const { return size_[dimension] + 2 * options_.width; }
  std::uint64_t elements() const;
  /// The array's index of a cell. Cell {0, 0, ...} is the first one of the block; ghost cells have coordinates from
  /// -width to -1, and from the size on.
  std::uint64_t index(const Cell& cell) const { return index(cell, size_); }

  /// Collective. The plan that fills all ghost cells that an update reads, in one step.
  Plan plan() const;

 private:
  using Sizes = std::array<std::uint64_t, 4>;
  struct Block {
    std::array<std::size_t, 4> at{};  // its place among the blocks
    Sizes first{}, size{};
  };

  Block block_of(std::size_t pe) const;
  std::size_t pe_of(const std::array<std::size_t, 4>& at) const;
  std::uint64_t index(const Cell& cell, const Sizes& size) const;
  /// Calls f(cell, owner, owner's cell) for the ghost cells of a block that an update reads, in the order of its array.
  template <class F>
  void each_ghost(const Block& block, F f) const;
  bool is_read(const Cell& cell, const Sizes& size) const;
  std::vector<std::size_t> blocks_near(std::size_t dimension) const;

  Pe* pe_;
  GridOptions options_;
  Block own_;
  Sizes first_{}, size_{};
};

}  // namespace headway::halo
