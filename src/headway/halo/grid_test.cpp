// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <headway/base/random.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/halo/grid.hpp>
#include <headway/launch/simulation.hpp>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace headway {
namespace {

using halo::Cell;

constexpr std::uint64_t untouched = 0;

std::uint64_t value_of(const Cell& global) {
  std::uint64_t value = 17;
  for (const std::int64_t at : global) value = value * 1009 + std::uint64_t(at) + 1;
  return value;
}

/// Calls f(cell) for all cells of a PE's array.
template <class F>
void each_cell(const halo::Grid& grid, F f) {
  const auto width = std::int64_t(grid.width());
  for (std::uint64_t i = 0; i != grid.elements(); ++i) {
    Cell cell{};
    std::uint64_t rest = i;
    for (std::size_t d = grid.dimensions(); d-- > 0; rest /= grid.extent(d))
      cell[d] = std::int64_t(rest % grid.extent(d)) - width;
    f(cell, i);
  }
}

/// Fills the own cells, exchanges, and compares every cell of the array with its value in the whole grid.
void require_right(Pe& pe, const halo::GridOptions& options) {
  const halo::Grid grid(pe, options);
  const std::size_t n = grid.dimensions();
  std::vector<std::uint64_t> array(grid.elements(), untouched);
  const auto is_inside = [&](const Cell& cell) {
    for (std::size_t d = 0; d != n; ++d) {
      if (cell[d] < 0 || cell[d] >= std::int64_t(grid.size(d))) return false;
    }
    return true;
  };
  const auto global_of = [&](const Cell& cell) -> std::optional<Cell> {
    Cell global{};
    for (std::size_t d = 0; d != n; ++d) {
      const auto cells = std::int64_t(options.cells[d]);
      global[d] = std::int64_t(grid.first(d)) + cell[d];
      if (global[d] >= 0 && global[d] < cells) continue;
      if (options.periodic.empty() || !options.periodic[d]) return std::nullopt;
      global[d] = (global[d] % cells + cells) % cells;
    }
    return global;
  };
  each_cell(grid, [&](const Cell& cell, std::uint64_t i) {
    if (grid.index(cell) != i) throw std::logic_error("index() names another element");
    if (is_inside(cell)) array[i] = value_of(*global_of(cell));
  });
  halo::Exchange exchange(pe, grid.plan(), {halo::field(array)});
  exchange();
  each_cell(grid, [&](const Cell& cell, std::uint64_t i) {
    bool is_read = is_inside(cell) || options.neighbours.empty();
    for (const Cell& distance : options.neighbours) {
      Cell reader{};
      for (std::size_t d = 0; d != 4; ++d) reader[d] = cell[d] - distance[d];
      is_read |= is_inside(reader);
    }
    const std::optional<Cell> global = global_of(cell);
    const std::uint64_t expected = is_read && global ? value_of(*global) : untouched;
    if (array[i] == expected) return;
    throw std::logic_error(
        fmt::format("cell {} {} {} {} is {}, not {}", cell[0], cell[1], cell[2], cell[3], array[i], expected));
  });
}

TEST(Grid, random_grids_get_the_cells_that_the_whole_grid_has) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const std::size_t n = random.between(1, 4);
    halo::GridOptions options;
    std::size_t pes = 1;
    std::vector<std::size_t> blocks;
    for (std::size_t d = 0; d != n; ++d) {
      blocks.push_back(random.between(1, pes > 4 ? 2 : 4));
      pes *= blocks.back();
      const std::uint64_t cells = blocks.back() + random.below(n > 2 ? 4 : 9);
      options.cells.push_back(cells);
      options.periodic.push_back(random.one_in(2));
      options.first_cells.emplace_back();
      if (random.one_in(2)) continue;
      std::vector<std::uint64_t> first(cells - 1);  // different sizes
      std::iota(first.begin(), first.end(), std::uint64_t(1));
      while (first.size() > blocks.back() - 1) first.erase(first.begin() + std::ptrdiff_t(random.below(first.size())));
      first.insert(first.begin(), 0);
      options.first_cells.back() = first;
    }
    options.width = random.below(4);
    if (random.one_in(2)) {
      options.blocks = blocks;
    } else {
      options.first_cells = {};
    }
    if (random.one_in(3)) options.neighbours = halo::star(n, options.width);
    for (int i = random.one_in(3) ? 3 : 0; i > 0 && options.width > 0; --i) {
      Cell distance{};
      for (std::size_t d = 0; d != n; ++d)
        distance[d] = std::int64_t(random.below(2 * options.width + 1)) - std::int64_t(options.width);
      options.neighbours.push_back(distance);
    }
    const launch::SimulateResult result = launch::simulate({.pes = pes, .seed = seed}, [&](Pe& pe) {
      try {
        require_right(pe, options);
      } catch (const SettingError&) {  // nearly cubic blocks may have no cell in a dimension
        if (!options.blocks.empty()) throw;
      }
      return 0;
    });
    ASSERT_EQ(result.status, 0) << "seed " << seed << ", width " << options.width << ", neighbours "
                                << options.neighbours.size() << ", dimensions " << n << ": " << result.text;
  }
}

}  // namespace
}  // namespace headway
