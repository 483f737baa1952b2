// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <vector>

#include "poisson.hpp"
#include "update.hpp"

namespace headway::cg {
namespace {

constexpr std::size_t pes_tried[] = {1, 2, 3, 4, 6, 7, 8, 12, 16};

/// A cell's value that no other has.
double value_of(std::ptrdiff_t row, std::ptrdiff_t column) { return double(row * 1009 + column + 1); }

/// A block's part of a vector with value_of() in each cell, and the ring as the neighbours would fill it.
Vector part_of(const Blocks& blocks, const Area& area) {
  Vector part(area);
  for (std::ptrdiff_t row = -1; row <= area.rows; ++row) {
    for (std::ptrdiff_t i = -1; i <= area.columns; ++i) {
      const std::ptrdiff_t r = area.row + row, c = area.column + i;
      if (r >= 0 && c >= 0 && r < blocks.n() && c < blocks.n()) part.row(row)[i] = value_of(r, c);
    }
  }
  return part;
}

double multiply_block(const Vector& in, Vector& out) {
  const double inner = multiply_inner(in, out, 0, in.rows());
  return inner + multiply_rim(in, out);
}

TEST(Blocks, every_cell_lies_in_one_block_and_blocks_are_as_equal_as_can_be) {
  for (const std::size_t pes : pes_tried) {
    const std::size_t n = 17;
    const Blocks blocks(pes, n);
    EXPECT_EQ(std::size_t(blocks.rows() * blocks.columns()), pes);
    EXPECT_LE(blocks.rows(), blocks.columns());
    std::vector<int> blocks_of(n * n, 0);
    for (std::size_t pe = 0; pe < pes; ++pe) {
      const Area area = blocks.block(pe);
      EXPECT_NEAR(double(area.rows), double(n) / double(blocks.rows()), 1);
      EXPECT_NEAR(double(area.columns), double(n) / double(blocks.columns()), 1);
      for (std::ptrdiff_t row = area.row; row < area.row + area.rows; ++row) {
        for (std::ptrdiff_t c = area.column; c < area.column + area.columns; ++c) ++blocks_of.at(row * n + c);
      }
    }
    EXPECT_EQ(blocks_of, std::vector<int>(n * n, 1)) << pes << " PEs";
  }
}

TEST(Blocks, what_one_sends_from_an_edge_is_what_the_neighbour_has_outside_of_its_own) {
  for (const std::size_t pes : pes_tried) {
    const Blocks blocks(pes, 17);
    std::size_t edges = 0;
    for (std::size_t pe = 0; pe < pes; ++pe) {
      Vector here = part_of(blocks, blocks.block(pe));
      for (const Edge& edge : blocks.edges(pe)) {
        Vector there = part_of(blocks, blocks.block(edge.neighbour));
        const Vector::Line given = here.line(edge.side, false), taken = there.line(opposite(edge.side), true);
        ASSERT_EQ(given.cells, taken.cells);
        for (std::ptrdiff_t i = 0; i < given.cells; ++i) {
          ASSERT_EQ(given.first[i * given.step], taken.first[i * taken.step]) << pes << " PEs, " << pe;
        }
        ++edges;
      }
    }
    const std::ptrdiff_t rows = blocks.rows(), columns = blocks.columns();
    EXPECT_EQ(edges, std::size_t(2 * (rows * (columns - 1) + (rows - 1) * columns)));
  }
}

TEST(Product, of_blocks_is_that_of_the_whole_grid) {
  for (const std::size_t n : {4, 5, 17}) {
    const Blocks whole(1, n);
    const Vector in = part_of(whole, whole.block(0));
    Vector out(whole.block(0));
    const double dot_all = multiply_block(in, out);
    EXPECT_EQ(out.row(1)[2], 4 * value_of(1, 2) - value_of(0, 2) - value_of(2, 2) - value_of(1, 1) - value_of(1, 3));
    EXPECT_EQ(out.row(0)[0], 4 * value_of(0, 0) - value_of(0, 1) - value_of(1, 0));
    for (const std::size_t pes : {2, 3, 4, 16}) {
      const Blocks blocks(pes, n);
      if (blocks.columns() > blocks.n()) continue;
      double dots = 0;
      for (std::size_t pe = 0; pe < pes; ++pe) {
        const Area area = blocks.block(pe);
        Vector part(area);
        dots += multiply_block(part_of(blocks, area), part);
        for (std::ptrdiff_t row = 0; row < area.rows; ++row) {
          for (std::ptrdiff_t i = 0; i < area.columns; ++i) {
            ASSERT_EQ(part.row(row)[i], out.row(area.row + row)[area.column + i]) << pes << " PEs, " << n;
          }
        }
      }
      EXPECT_NEAR(dots, dot_all, 1e-12 * dot_all);
    }
  }
}

TEST(Product, has_the_sines_as_eigenvectors_and_the_smallest_eigenvalue) {
  const std::size_t n = 9;
  const Blocks whole(1, n);
  Vector sines(whole.block(0)), out(whole.block(0));
  const auto sine = [&](std::ptrdiff_t i) { return std::sin(std::numbers::pi * double(i + 1) / double(n + 1)); };
  for (std::ptrdiff_t row = 0; row < std::ptrdiff_t(n); ++row) {
    for (std::ptrdiff_t i = 0; i < std::ptrdiff_t(n); ++i) sines.row(row)[i] = sine(row) * sine(i);
  }
  multiply_block(sines, out);
  for (std::ptrdiff_t row = 0; row < std::ptrdiff_t(n); ++row) {
    for (std::ptrdiff_t i = 0; i < std::ptrdiff_t(n); ++i) {
      EXPECT_NEAR(out.row(row)[i], smallest_eigenvalue(std::ptrdiff_t(n)) * sines.row(row)[i], 1e-14);
    }
  }
}

TEST(Product, of_the_solution_is_the_right_hand_side_on_every_block) {
  const std::ptrdiff_t n = 12;
  const Blocks blocks(6, std::size_t(n));
  for (std::size_t pe = 0; pe < 6; ++pe) {
    const Area area = blocks.block(pe);
    Vector exact(area), out(area);
    for (std::ptrdiff_t row = -1; row <= area.rows; ++row) {
      for (std::ptrdiff_t i = -1; i <= area.columns; ++i) {
        exact.row(row)[i] = solution(n, area.row + row, area.column + i);
      }
    }
    multiply_block(exact, out);
    const Vector b = right_hand_side(n, area);
    for (std::ptrdiff_t row = 0; row < area.rows; ++row) {
      for (std::ptrdiff_t i = 0; i < area.columns; ++i) EXPECT_EQ(out.row(row)[i], b.row(row)[i]);
    }
  }
}

TEST(Vector, keeps_its_place_in_memory_when_it_takes_the_cells_of_another) {
  const Area area{0, 0, 3, 5};
  Vector from(area, 7), to(area, 64);
  from.row(2)[4] = 3;
  from.row(-1)[-1] = 2;
  const double* const before = to.row(0);
  to.assign(from);
  EXPECT_EQ(to.row(0), before);
  EXPECT_EQ(to.row(2)[4], 3);
  EXPECT_EQ(to.row(-1)[-1], 2);
  to.clear();
  EXPECT_EQ(to.row(2)[4], 0);
}

TEST(Dot, is_the_sum_of_products_at_every_length) {
  std::vector<double> a, b;
  double expected = 0;
  for (std::ptrdiff_t count = 0; count < 20; ++count) {
    EXPECT_EQ(dot(a.data(), b.data(), count), expected);
    a.push_back(double(count + 1));
    b.push_back(double(2 * count + 1));
    expected += a.back() * b.back();
  }
}

TEST(Update, of_all_at_once_is_that_of_each_after_the_other) {
  const std::ptrdiff_t n = 5;
  std::vector<double> x{1, 2, 3, 4, 5}, r{2, 1, 4, 3, 6}, p{1, 0, 2, 0, 3}, s{4, 4, 1, 1, 2}, w{3, 1, 2, 5, 4};
  std::vector<double> z{2, 2, 2, 1, 1};
  const std::vector<double> q{1, 2, 1, 2, 1};
  const double alpha = 0.5, beta = 0.25;
  auto x1 = x, r1 = r, p1 = p, s1 = s, w1 = w, z1 = z;
  update_pipelined(alpha, beta, n, x1.data(), r1.data(), p1.data(), s1.data(), w1.data(), z1.data(), q.data());
  auto x2 = x, r2 = r, p2 = p, s2 = s;
  update_merged(alpha, beta, n, x2.data(), r2.data(), p2.data(), s2.data(), w.data());
  EXPECT_EQ(x1, x2);
  EXPECT_EQ(r1, r2);
  EXPECT_EQ(p1, p2);
  EXPECT_EQ(s1, s2);
  update_direction(beta, n, p.data(), r.data());
  update_direction(beta, n, s.data(), w.data());
  update_direction(beta, n, z.data(), q.data());
  update_solution(alpha, n, x.data(), r.data(), p.data(), s.data());
  EXPECT_EQ(x1, x);
  EXPECT_EQ(r1, r);
  EXPECT_EQ(z1, z);
  std::vector<double> unused(5, 0), w3{3, 1, 2, 5, 4};
  update_solution(alpha, n, unused.data(), w3.data(), q.data(), z.data());  // w -= alpha z
  EXPECT_EQ(w1, w3);
}

}  // namespace
}  // namespace headway::cg
