// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/halo/grid.hpp>
#include <map>
#include <numeric>
#include <ranges>
#include <utility>

namespace headway::halo {
namespace {

constexpr std::size_t dimensions_most = 4;

/// Divides `pes` blocks among the dimensions: each prime factor, the largest first, goes to the dimension whose blocks
/// have most cells.
std::vector<std::size_t> nearly_cubic(std::size_t pes, const std::vector<std::uint64_t>& cells) {
  std::vector<std::size_t> factors, blocks(cells.size(), 1);
  for (std::size_t factor = 2; pes > 1; ++factor) {
    if (factor * factor > pes) factor = pes;
    for (; pes % factor == 0; pes /= factor) factors.push_back(factor);
  }
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    std::size_t widest = 0;
    for (std::size_t d = 1; d != cells.size(); ++d) {
      if (cells[d] * blocks[widest] > cells[widest] * blocks[d]) widest = d;
    }
    blocks[widest] *= *factor;
  }
  return blocks;
}

void require_length(const char* what, std::size_t length, std::size_t dimensions) {
  if (length == dimensions) return;
  throw SettingError(fmt::format("{} of a grid has {}; expected one for each of {}", what,
                                 base::counted(length, "value"), base::counted(dimensions, "dimension")));
}

/// The block of a cell: the last that begins at or before it.
std::size_t block_at(const std::vector<std::uint64_t>& first_cells, std::uint64_t cell) {
  return std::size_t(std::ranges::upper_bound(first_cells, cell) - first_cells.begin()) - 1;
}

}  // namespace

std::vector<Cell> star(std::size_t dimensions, std::uint64_t width) {
  std::vector<Cell> neighbours;
  for (std::size_t d = 0; d != dimensions; ++d) {
    for (std::int64_t step = 1; step <= std::int64_t(width); ++step) {
      Cell cell{};
      cell[d] = step;
      neighbours.push_back(cell);
      cell[d] = -step;
      neighbours.push_back(cell);
    }
  }
  return neighbours;
}

Grid::Grid(Pe& pe, GridOptions options) : pe_(&pe), options_(std::move(options)) {
  GridOptions& o = options_;
  const std::size_t n = o.cells.size();
  if (n < 1 || n > dimensions_most)
    throw SettingError(
        fmt::format("a grid has {}; allowed are 1 to {}", base::counted(n, "dimension"), dimensions_most));
  if (o.blocks.empty()) o.blocks = nearly_cubic(pe.size(), o.cells);
  require_length("`blocks`", o.blocks.size(), n);
  const std::size_t product = std::accumulate(o.blocks.begin(), o.blocks.end(), std::size_t(1), std::multiplies<>());
  if (product != pe.size()) {
    throw SettingError(
        fmt::format("a grid has {} blocks; expected as many as PEs: {}", fmt::join(o.blocks, " x "), pe.size()));
  }
  if (o.periodic.empty()) o.periodic.assign(n, false);
  require_length("`periodic`", o.periodic.size(), n);
  o.first_cells.resize(std::max(n, o.first_cells.size()));
  require_length("`first_cells`", o.first_cells.size(), n);
  for (std::size_t d = 0; d != n; ++d) {
    std::vector<std::uint64_t>& first = o.first_cells[d];
    if (first.empty()) {
      for (std::size_t b = 0; b != o.blocks[d]; ++b)
        first.push_back(b * (o.cells[d] / o.blocks[d]) + std::min<std::uint64_t>(b, o.cells[d] % o.blocks[d]));
    }
    const bool rises = std::ranges::adjacent_find(first, std::greater_equal<>()) == first.end();
    if (first.size() != o.blocks[d] || first[0] != 0 || !rises || first.back() >= o.cells[d]) {
      throw SettingError(fmt::format(
          "dimension {} of a grid has {} in {}, with first cells {}; expected rising ones, "
          "from 0 on, for each block",
          d, base::counted(o.cells[d], "cell"), base::counted(o.blocks[d], "block"), fmt::join(first, ", ")));
    }
  }
  for (const Cell& one : o.neighbours) {
    for (std::size_t d = 0; d != dimensions_most; ++d) {
      const std::uint64_t distance = std::uint64_t(one[d] < 0 ? -one[d] : one[d]);
      if (distance <= (d < n ? o.width : 0)) continue;
      throw SettingError(fmt::format("a neighbour in a grid is at distance {} in dimension {}; allowed is {}", one[d],
                                     d, d < n ? o.width : 0));
    }
  }
  own_ = block_of(pe.id());
  first_ = own_.first;
  size_ = own_.size;
}

std::uint64_t Grid::elements() const {
  std::uint64_t all = 1;
  for (std::size_t d = 0; d != dimensions(); ++d) all *= extent(d);
  return all;
}

Grid::Block Grid::block_of(std::size_t pe) const {
  Block block;
  for (std::size_t d = dimensions(); d-- > 0; pe /= options_.blocks[d]) {
    const std::size_t at = pe % options_.blocks[d];
    const std::vector<std::uint64_t>& first = options_.first_cells[d];
    block.at[d] = at;
    block.first[d] = first[at];
    block.size[d] = (at + 1 == first.size() ? options_.cells[d] : first[at + 1]) - first[at];
  }
  return block;
}

std::size_t Grid::pe_of(const std::array<std::size_t, 4>& at) const {
  std::size_t pe = 0;
  for (std::size_t d = 0; d != dimensions(); ++d) pe = pe * options_.blocks[d] + at[d];
  return pe;
}

std::uint64_t Grid::index(const Cell& cell, const Sizes& size) const {
  std::uint64_t index = 0;
  for (std::size_t d = 0; d != dimensions(); ++d)
    index = index * (size[d] + 2 * options_.width) + std::uint64_t(cell[d] + std::int64_t(options_.width));
  return index;
}

/// Whether an update of a cell of a block of that size reads the cell.
bool Grid::is_read(const Cell& cell, const Sizes& size) const {
  if (options_.neighbours.empty()) return true;
  return std::ranges::any_of(options_.neighbours, [&](const Cell& distance) {
    for (std::size_t d = 0; d != dimensions(); ++d) {
      const std::int64_t at = cell[d] - distance[d];
      if (at < 0 || at >= std::int64_t(size[d])) return false;
    }
    return true;
  });
}

template <class F>
void Grid::each_ghost(const Block& block, F f) const {
  const std::size_t n = dimensions();
  const auto width = std::int64_t(options_.width);
  if (width == 0) return;
  Cell cell{};
  for (std::size_t d = 0; d != n; ++d) cell[d] = -width;
  for (;;) {
    const bool inside = std::ranges::all_of(std::views::iota(std::size_t(0), n), [&](std::size_t d) {
      return cell[d] >= 0 && cell[d] < std::int64_t(block.size[d]);
    });
    if (inside) {
      cell[n - 1] = std::int64_t(block.size[n - 1]);  // behind the row's cells of the block
    }
    std::array<std::size_t, 4> at{};
    Cell of_owner{};
    bool exists = is_read(cell, block.size);
    for (std::size_t d = 0; d != n && exists; ++d) {
      const auto cells = std::int64_t(options_.cells[d]);
      std::int64_t global = std::int64_t(block.first[d]) + cell[d];
      if (global < 0 || global >= cells) {
        exists = options_.periodic[d];
        global = (global % cells + cells) % cells;
      }
      at[d] = block_at(options_.first_cells[d], std::uint64_t(global));
      of_owner[d] = global - std::int64_t(options_.first_cells[d][at[d]]);
    }
    if (exists) f(cell, at, of_owner);
    std::size_t d = n;
    while (d-- > 0) {
      if (++cell[d] < std::int64_t(block.size[d]) + width) break;
      if (d == 0) return;
      cell[d] = -width;
    }
  }
}

/// The blocks of a dimension with a ghost cell that may lie in this PE's block: those with a cell within `width`.
std::vector<std::size_t> Grid::blocks_near(std::size_t dimension) const {
  const std::vector<std::uint64_t>& first = options_.first_cells[dimension];
  const auto cells = std::int64_t(options_.cells[dimension]), width = std::int64_t(options_.width);
  const auto begin = std::int64_t(own_.first[dimension]), end = begin + std::int64_t(own_.size[dimension]);
  std::vector<std::size_t> near;
  for (std::size_t b = 0; b != first.size(); ++b) {
    const auto from = std::int64_t(first[b]);
    const std::int64_t to = b + 1 == first.size() ? cells : std::int64_t(first[b + 1]);
    bool meets = false;
    // A wide halo may go around a small periodic grid several times.
    const std::int64_t turns = options_.periodic[dimension] ? width / cells + 1 : 0;
    for (std::int64_t turn = -turns; turn <= turns; ++turn)
      meets |= from - width < end + turn * cells && to + width > begin + turn * cells;
    if (meets) near.push_back(b);
  }
  return near;
}

Plan Grid::plan() const {
  std::map<std::size_t, std::vector<std::uint64_t>> receives, sends;
  each_ghost(own_, [&](const Cell& cell, const std::array<std::size_t, 4>& owner, const Cell&) {
    receives[pe_of(owner)].push_back(index(cell, own_.size));
  });
  // The ghost cells of other blocks, in their order.
  std::array<std::vector<std::size_t>, 4> near;
  for (std::size_t d = 0; d != 4; ++d) near[d] = d < dimensions() ? blocks_near(d) : std::vector<std::size_t>{0};
  for (const std::size_t a : near[0]) {
    for (const std::size_t b : near[1]) {
      for (const std::size_t c : near[2]) {
        for (const std::size_t d : near[3]) {
          const std::size_t pe = pe_of({a, b, c, d});
          each_ghost(block_of(pe), [&](const Cell&, const std::array<std::size_t, 4>& owner, const Cell& of_owner) {
            if (owner == own_.at) sends[pe].push_back(index(of_owner, own_.size));
          });
        }
      }
    }
  }
  const auto lists = [](std::map<std::size_t, std::vector<std::uint64_t>>& by_pe) {
    std::vector<PartnerIndices> all;
    for (auto& [pe, indices] : by_pe) all.push_back({pe, std::move(indices)});
    return all;
  };
  return Plan::both(*pe_, lists(sends), lists(receives));
}

}  // namespace headway::halo
