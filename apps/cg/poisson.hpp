// SPDX-License-Identifier: BSD-3-Clause
/// Poisson's equation on a square grid, of which each PE has a block: where the blocks lie, vectors of a block, and the
/// product with the matrix. Knows nothing of messages.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <numbers>
#include <vector>

namespace headway::cg {

/// A rectangle of cells; `row` and `column` are those of its first cell.
struct Area {
  std::ptrdiff_t row, column, rows, columns;
};

enum Side : std::uint32_t { above, below, before, behind };
inline constexpr std::size_t sides = 4;
constexpr Side opposite(Side side) { return Side(side ^ 1); }

/// Where a block ends and another PE's begins.
struct Edge {
  Side side;
  std::size_t neighbour;
};

/// A grid of n x n cells in as many blocks as there are PEs, rows and columns of blocks as equal as can be; block b is
/// that of PE b, row by row. Blocks of one row differ by one cell in width at most, and so do those of a column in
/// height.
class Blocks {
 public:
  Blocks(std::size_t pes, std::size_t n) : n_(std::ptrdiff_t(n)) {
    const auto blocks = std::ptrdiff_t(pes);
    while ((rows_ + 1) * (rows_ + 1) <= blocks) ++rows_;
    while (blocks % rows_ != 0) --rows_;
    columns_ = blocks / rows_;
  }

  std::ptrdiff_t n() const { return n_; }
  std::ptrdiff_t rows() const { return rows_; }        // of blocks
  std::ptrdiff_t columns() const { return columns_; }  // of blocks; not less than rows

  Area block(std::size_t pe) const {
    const std::ptrdiff_t i = std::ptrdiff_t(pe) / columns_, j = std::ptrdiff_t(pe) % columns_;
    const std::ptrdiff_t row = i * n_ / rows_, column = j * n_ / columns_;
    return {row, column, (i + 1) * n_ / rows_ - row, (j + 1) * n_ / columns_ - column};
  }

  std::vector<Edge> edges(std::size_t pe) const {
    const std::ptrdiff_t i = std::ptrdiff_t(pe) / columns_, j = std::ptrdiff_t(pe) % columns_;
    std::vector<Edge> edges;
    if (i > 0) edges.push_back({above, pe - std::size_t(columns_)});
    if (i + 1 < rows_) edges.push_back({below, pe + std::size_t(columns_)});
    if (j > 0) edges.push_back({before, pe - 1});
    if (j + 1 < columns_) edges.push_back({behind, pe + 1});
    return edges;
  }

 private:
  std::ptrdiff_t n_;
  std::ptrdiff_t rows_ = 1, columns_ = 1;
};

/// A block's part of a vector, and a ring of cells around it, which are the neighbours' or, outside the grid, 0.
class Vector {
 public:
  /// `skip` cells of memory come before: vectors that are read together should not all begin at the same place of a
  /// page, or they are in each other's way in the cache.
  explicit Vector(const Area& area, std::ptrdiff_t skip = 0)
      : rows_(area.rows), columns_(area.columns), skip_(skip), cells_(std::size_t(skip + count()), 0.0) {}

  /// The cells of another of the same area, ring included.
  void assign(const Vector& other) {
    const double* const from = other.cells_.data() + other.skip_;
    std::copy(from, from + count(), cells_.data() + skip_);
  }
  void clear() { std::ranges::fill(cells_, 0.0); }

  std::ptrdiff_t rows() const { return rows_; }
  std::ptrdiff_t columns() const { return columns_; }
  /// From a cell to the one below it.
  std::ptrdiff_t stride() const { return columns_ + 2; }
  /// A row of the block; its first cell is [0]. Row -1, row rows(), [-1] and [columns()] belong to the ring.
  double* row(std::ptrdiff_t row) { return cells_.data() + skip_ + (row + 1) * stride() + 1; }
  const double* row(std::ptrdiff_t row) const { return cells_.data() + skip_ + (row + 1) * stride() + 1; }

  /// The block's outermost cells on a side, or, for `ring`, those just outside of it: the first, how many, and from
  /// each to the next.
  struct Line {
    double* first;
    std::ptrdiff_t cells, step;
  };
  Line line(Side side, bool ring) {
    const std::ptrdiff_t out = ring ? 1 : 0;
    switch (side) {
      case above: return {row(-out), columns_, 1};
      case below: return {row(rows_ - 1 + out), columns_, 1};
      case before: return {row(0) - out, rows_, stride()};
      default: return {row(0) + columns_ - 1 + out, rows_, stride()};
    }
  }

 private:
  std::ptrdiff_t count() const { return (rows_ + 2) * (columns_ + 2); }

  std::ptrdiff_t rows_, columns_, skip_;
  std::vector<double> cells_;
};

/// Of `count` cells. Four sums at a time, always the same ones, so that no addition waits for the one before.
inline double dot(const double* a, const double* b, std::ptrdiff_t count) {
  std::array<double, 4> sums = {};
  std::ptrdiff_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) sums[k] += a[i + std::ptrdiff_t(k)] * b[i + std::ptrdiff_t(k)];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// out = A in, of the cells [begin, end) of a row: four times a cell less its four neighbours.
inline void multiply(const Vector& in, Vector& out, std::ptrdiff_t row, std::ptrdiff_t begin, std::ptrdiff_t end) {
  const double* const from = in.row(row);
  double* const to = out.row(row);
  const std::ptrdiff_t stride = in.stride();
  for (std::ptrdiff_t i = begin; i < end; ++i) {
    to[i] = 4 * from[i] - ((from[i - stride] + from[i + stride]) + (from[i - 1] + from[i + 1]));
  }
}

// The product of a block in two parts, each of which returns its part of (in, out): of the cells in rows [begin, end)
// that have all their neighbours in the block, and of all others.
inline double multiply_inner(const Vector& in, Vector& out, std::ptrdiff_t begin, std::ptrdiff_t end) {
  double sum = 0;
  const std::ptrdiff_t columns = in.columns();
  for (std::ptrdiff_t row = std::max<std::ptrdiff_t>(begin, 1); row < std::min(end, in.rows() - 1); ++row) {
    multiply(in, out, row, 1, columns - 1);
    sum += dot(in.row(row) + 1, out.row(row) + 1, columns - 2);
  }
  return sum;
}
inline double multiply_rim(const Vector& in, Vector& out) {
  double sum = 0;
  const std::ptrdiff_t rows = in.rows(), columns = in.columns();
  const auto part = [&](std::ptrdiff_t row, std::ptrdiff_t begin, std::ptrdiff_t end) {
    multiply(in, out, row, begin, end);
    sum += dot(in.row(row) + begin, out.row(row) + begin, end - begin);
  };
  for (std::ptrdiff_t row = 0; row < rows; ++row) {
    if (row == 0 || row + 1 == rows) {
      part(row, 0, columns);
    } else {
      part(row, 0, 1);
      if (columns > 1) part(row, columns - 1, columns);
    }
  }
  return sum;
}

/// The solution that is to be found: cells of [0, 1) without any order, so that all frequencies are in it; 0 outside.
inline double solution(std::ptrdiff_t n, std::ptrdiff_t row, std::ptrdiff_t column) {
  if (row < 0 || column < 0 || row >= n || column >= n) return 0;
  return Random(std::uint64_t(row) << 32 ^ std::uint64_t(column)).fraction();
}

/// The right-hand side to which it is the solution.
inline Vector right_hand_side(std::ptrdiff_t n, const Area& area) {
  Vector exact(area), b(area);
  for (std::ptrdiff_t row = -1; row <= area.rows; ++row) {
    for (std::ptrdiff_t i = -1; i <= area.columns; ++i) {
      exact.row(row)[i] = solution(n, area.row + row, area.column + i);
    }
  }
  for (std::ptrdiff_t row = 0; row < area.rows; ++row) multiply(exact, b, row, 0, area.columns);
  return b;
}

/// The matrix's smallest eigenvalue: |x - solution| <= |b - A x| / smallest_eigenvalue(n).
inline double smallest_eigenvalue(std::ptrdiff_t n) {
  const double s = std::sin(std::numbers::pi / (2 * (double(n) + 1)));
  return 8 * s * s;
}

}  // namespace headway::cg
