// SPDX-License-Identifier: BSD-3-Clause
/// Sparse matrix times vector, again and again: the PE of column j holds x[j] and the column, and sends each product to
/// the PE of its row, where it is added up.
#include <utility>
#include <vector>

#include "program.hpp"

using Number = std::uint64_t;  // wraps around, so that the order of additions does not matter

struct NonZero {
  std::size_t row;
  Number value;
};

constexpr std::size_t columns = 2000, rounds = 10;

/// Column j has 0 to 15 nonzeros.
std::vector<NonZero> column(std::size_t j) {
  std::vector<NonZero> result(program::random(j) % 16);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::uint64_t n = program::random(j << 8 | (i + 1));
    result[i] = {n % columns, n >> 40};
  }
  return result;
}

std::vector<Number> serial_product() {
  std::vector<Number> x(columns, 1);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::vector<Number> y(columns);
    for (std::size_t j = 0; j < columns; ++j) {
      for (const NonZero& a : column(j)) y[a.row] += a.value * x[j];
    }
    x = y;
  }
  return x;
}

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    const headway::Block layout(columns, pe.size());
    std::vector<std::vector<NonZero>> matrix;
    for (std::size_t at = 0; at < layout.count(pe.id()); ++at) matrix.push_back(column(layout.global(pe.id(), at)));
    std::vector<Number> x(matrix.size(), 1), y(matrix.size());

    headway::Aggregator<NonZero> products(pe, program::options(argc, argv));
    products.on([&](const NonZero& product) { y[product.row] += product.value; });

    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t at = 0; at < matrix.size(); ++at) {
        for (const NonZero& a : matrix[at]) products.send(layout.owner(a.row), {layout.local(a.row), a.value * x[at]});
      }
      pe.quiesce();  // y is complete, and no PE's next products come in before it is taken away
      x = std::exchange(y, std::vector<Number>(y.size()));
    }

    const std::vector<Number> expected = serial_product();
    bool right = true;
    Number checksum = 0;
    for (std::size_t at = 0; at < x.size(); ++at) {
      right &= x[at] == expected[layout.global(pe.id(), at)];
      checksum += x[at];
    }
    return program::finish(pe, right, "sum of the last vector", program::sum(pe, checksum));
  });
}
