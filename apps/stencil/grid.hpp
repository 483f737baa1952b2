// SPDX-License-Identifier: BSD-3-Clause
/// Jacobi's iteration for Laplace's equation on a grid of cells, and how the grid is split into blocks. Knows
/// nothing of messages, so that others can do the same work, and check it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <utility>
#include <vector>

namespace headway::stencil {

/// A rectangle of cells; `row` and `column` are those of its first cell.
struct Area {
  std::ptrdiff_t row, column, rows, columns;
};

/// A cell's initial value, in [0, 1). Cells outside the grid have a value too, and keep it.
inline double initial(std::ptrdiff_t row, std::ptrdiff_t column) {
  return Random(std::uint64_t(row) << 32 ^ std::uint64_t(column)).fraction();
}

/// The cells of an area, and a ring of cells around it, which relax() reads.
///
///     0  1  2  3  4     places in memory, for an area of 1 row and 3 columns:
///     5 [6  7  8] 9     the ring is all but 6, 7, 8, and its corners are never read
///    10 11 12 13 14
class Field {
 public:
  Field() = default;
  explicit Field(const Area& area) : area_(area) {
    cells_.reserve((area.rows + 2) * stride());
    for (std::ptrdiff_t row = -1; row <= area.rows; ++row) {
      for (std::ptrdiff_t column = -1; column <= area.columns; ++column) {
        cells_.push_back(initial(area.row + row, area.column + column));
      }
    }
  }

  const Area& area() const { return area_; }
  /// From a cell's place to that of the one below it.
  std::ptrdiff_t stride() const { return area_.columns + 2; }
  /// Where a cell of the area, or of its ring, lies.
  std::ptrdiff_t place(std::ptrdiff_t row, std::ptrdiff_t column) const {
    return (row - area_.row + 1) * stride() + (column - area_.column + 1);
  }
  double* cells() { return cells_.data(); }
  const double* cells() const { return cells_.data(); }
  /// Of the values of all cells of the area and where they are, whatever area they were computed in.
  std::uint64_t checksum() const {
    std::uint64_t sum = 0;
    for (std::ptrdiff_t row = area_.row; row < area_.row + area_.rows; ++row) {
      for (std::ptrdiff_t column = area_.column; column < area_.column + area_.columns; ++column) {
        const auto bits = std::bit_cast<std::uint64_t>(cells_[std::size_t(place(row, column))]);
        sum += Random(bits ^ Random(std::uint64_t(row) << 32 ^ std::uint64_t(column)).next()).next();
      }
    }
    return sum;
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(area_, cells_);
  }

 private:
  Area area_{};
  std::vector<double> cells_;
};

/// One step: each cell of `to` becomes the mean of its four neighbours in `from`, a field of the same area.
inline void relax(const Field& from, Field& to) {
  const Area& area = from.area();
  const std::ptrdiff_t stride = from.stride();
  for (std::ptrdiff_t row = area.row; row < area.row + area.rows; ++row) {
    const double* const in = from.cells() + from.place(row, area.column);
    double* const out = to.cells() + to.place(row, area.column);
    for (std::ptrdiff_t i = 0; i < area.columns; ++i) {
      out[i] = 0.25 * (in[i - stride] + in[i - 1] + in[i + 1] + in[i + stride]);
    }
  }
}

/// An edge of a block. Its cells lie in the ring of a neighbour's block too.
struct Edge {
  std::size_t neighbour;
  std::ptrdiff_t here, there, stride;  // places of its first cell, and from each to the next
  std::ptrdiff_t cells;
};

/// A grid of blocks of side x side cells, numbered row by row.
class Blocks {
 public:
  /// As square as can be.
  Blocks(std::size_t count, std::size_t side) : side_(std::ptrdiff_t(side)) {
    const auto blocks = std::ptrdiff_t(count);
    while ((rows_ + 1) * (rows_ + 1) <= blocks) ++rows_;
    while (blocks % rows_ != 0) --rows_;
    columns_ = blocks / rows_;
  }
  Blocks(std::size_t rows, std::size_t columns, std::size_t side)
      : side_(std::ptrdiff_t(side)), rows_(std::ptrdiff_t(rows)), columns_(std::ptrdiff_t(columns)) {}

  std::ptrdiff_t rows() const { return rows_; }
  std::ptrdiff_t columns() const { return columns_; }
  std::ptrdiff_t side() const { return side_; }
  Area whole() const { return {0, 0, rows_ * side_, columns_ * side_}; }
  Area block(std::size_t number) const {
    return {std::ptrdiff_t(number) / columns_ * side_, std::ptrdiff_t(number) % columns_ * side_, side_, side_};
  }

  /// The edges at which a block has neighbours: 4, or fewer where the grid ends.
  std::vector<Edge> edges(std::size_t number) const {
    const std::ptrdiff_t row = std::ptrdiff_t(number) / columns_, column = std::ptrdiff_t(number) % columns_;
    const std::ptrdiff_t stride = side_ + 2, first = stride + 1, across = side_ - 1;
    std::vector<Edge> edges;
    if (row > 0) edges.push_back({number - columns_, first, first + side_ * stride, 1, side_});
    if (row + 1 < rows_) edges.push_back({number + columns_, first + across * stride, first - stride, 1, side_});
    if (column > 0) edges.push_back({number - 1, first, first + side_, stride, side_});
    if (column + 1 < columns_) edges.push_back({number + 1, first + across, first - 1, stride, side_});
    return edges;
  }

 private:
  std::ptrdiff_t side_ = 1;
  std::ptrdiff_t rows_ = 1, columns_ = 1;  // of blocks
};

/// How many cells of a block, after `steps`, differ in any bit from a serial computation. The serial one takes the
/// block and as many cells around it as there are steps: values farther away cannot have reached the block. Its own rim
/// becomes wrong by one more cell with each step.
inline std::uint64_t count_errors(const Field& block, const Area& whole, std::ptrdiff_t steps) {
  const Area& area = block.area();
  Area around{std::max(area.row - steps, whole.row), std::max(area.column - steps, whole.column), 0, 0};
  around.rows = std::min(area.row + area.rows + steps, whole.row + whole.rows) - around.row;
  around.columns = std::min(area.column + area.columns + steps, whole.column + whole.columns) - around.column;
  Field now(around), next(around);
  for (std::ptrdiff_t step = 0; step < steps; ++step, std::swap(now, next)) relax(now, next);

  std::uint64_t errors = 0;
  for (std::ptrdiff_t row = area.row; row < area.row + area.rows; ++row) {
    for (std::ptrdiff_t column = area.column; column < area.column + area.columns; ++column) {
      const double cell = block.cells()[block.place(row, column)], expected = now.cells()[now.place(row, column)];
      errors += std::bit_cast<std::uint64_t>(cell) != std::bit_cast<std::uint64_t>(expected);
    }
  }
  return errors;
}

}  // namespace headway::stencil
