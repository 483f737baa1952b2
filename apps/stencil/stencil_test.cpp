// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <tuple>
#include <utility>
#include <vector>

#include "grid.hpp"

namespace headway::stencil {
namespace {

/// Copies each edge of each block to the ring where it belongs.
void copy_edges(const Blocks& blocks, std::vector<Field>& fields) {
  for (std::size_t pe = 0; pe < fields.size(); ++pe) {
    for (const Edge& edge : blocks.edges(pe)) {
      for (std::ptrdiff_t i = 0; i < edge.cells; ++i) {
        const double value = fields[pe].cells()[edge.here + i * edge.stride];
        fields[edge.neighbour].cells()[edge.there + i * edge.stride] = value;
      }
    }
  }
}

/// All blocks after `steps`.
std::vector<Field> run_blocks(const Blocks& blocks, std::size_t pes, std::size_t steps) {
  std::vector<Field> now, next;
  for (std::size_t pe = 0; pe < pes; ++pe) now.emplace_back(blocks.block(pe));
  next = now;
  for (std::size_t step = 0; step < steps; ++step, std::swap(now, next)) {
    copy_edges(blocks, now);
    for (std::size_t pe = 0; pe < pes; ++pe) relax(now[pe], next[pe]);
  }
  return now;
}

TEST(Blocks, are_as_square_as_the_number_of_pes_allows) {
  for (const auto& [pes, rows, columns] :
       {std::tuple{1, 1, 1}, {2, 1, 2}, {7, 1, 7}, {8, 2, 4}, {12, 3, 4}, {16, 4, 4}}) {
    const Area whole = Blocks(std::size_t(pes), 5).whole();
    EXPECT_EQ(whole.rows, rows * 5) << pes;
    EXPECT_EQ(whole.columns, columns * 5) << pes;
  }
}

TEST(Blocks, every_cell_lies_in_one_block) {
  for (const std::size_t pes : {1, 2, 3, 6, 13, 16}) {
    const Blocks blocks(pes, 3);
    const Area whole = blocks.whole();
    std::vector<int> blocks_of(std::size_t(whole.rows * whole.columns), 0);
    for (std::size_t pe = 0; pe < pes; ++pe) {
      const Area area = blocks.block(pe);
      for (std::ptrdiff_t row = area.row; row < area.row + area.rows; ++row) {
        for (std::ptrdiff_t column = area.column; column < area.column + area.columns; ++column) {
          ++blocks_of.at(std::size_t(row * whole.columns + column));
        }
      }
    }
    EXPECT_EQ(blocks_of, std::vector<int>(blocks_of.size(), 1)) << pes << " PEs";
  }
}

TEST(Field, a_step_takes_the_mean_of_four_neighbours) {
  const Field from({0, 0, 2, 3});
  Field to({0, 0, 2, 3});
  relax(from, to);
  const double mean = 0.25 * (initial(0, 2) + initial(1, 1) + initial(1, 3) + initial(2, 2));
  EXPECT_EQ(to.cells()[to.place(1, 2)], mean);
  EXPECT_EQ(to.cells()[to.place(2, 2)], initial(2, 2));  // the ring stays
}

TEST(Blocks, with_their_edges_copied_are_the_grid_computed_as_a_whole) {
  for (const std::size_t pes : {1, 2, 3, 4, 6, 8, 9, 13, 16}) {
    for (const std::size_t side : {1, 2, 5, 8}) {
      for (const std::size_t steps : {1, 2, 7}) {
        const Blocks blocks(pes, side);
        Field whole(blocks.whole()), next = whole;
        for (std::size_t step = 0; step < steps; ++step, std::swap(whole, next)) relax(whole, next);
        for (const Field& block : run_blocks(blocks, pes, steps)) {
          const Area& area = block.area();
          for (std::ptrdiff_t row = area.row; row < area.row + area.rows; ++row) {
            for (std::ptrdiff_t column = area.column; column < area.column + area.columns; ++column) {
              ASSERT_EQ(block.cells()[block.place(row, column)], whole.cells()[whole.place(row, column)]);
            }
          }
          ASSERT_EQ(count_errors(block, blocks.whole(), std::ptrdiff_t(steps)), 0u)
              << pes << " PEs, side " << side << ", " << steps << " steps";
        }
      }
    }
  }
}

TEST(Check, finds_a_cell_that_came_wrong_and_one_that_came_late) {
  const Blocks blocks(4, 6);
  std::vector<Field> fields = run_blocks(blocks, 4, 2);
  copy_edges(blocks, fields);
  Field& before = fields[2];
  Field after = before;
  relax(before, after);
  EXPECT_EQ(count_errors(after, blocks.whole(), 3), 0u);

  const std::ptrdiff_t row = before.area().row - 1, column = before.area().column + 2;
  double& came = before.cells()[before.place(row, column)];
  for (const double wrong : {came + 0x1p-50, initial(row, column)}) {
    came = wrong;
    relax(before, after);
    EXPECT_EQ(count_errors(after, blocks.whole(), 3), 1u);
  }
}

}  // namespace
}  // namespace headway::stencil
