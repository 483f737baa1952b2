// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <queue>
#include <vector>

#include "grid.hpp"

namespace headway::connect {
namespace {

TEST(Components, are_what_a_search_from_each_node_finds) {
  for (const double edges : {0.0, 0.3, 0.55, 1.0}) {
    const Grid grid{17, 23, edges, 5};
    const std::vector<std::uint64_t> found = components(grid);
    std::vector<std::uint64_t> expected(grid.nodes(), ~std::uint64_t(0));
    for (std::size_t from = 0; from < grid.nodes(); ++from) {
      if (expected[from] != ~std::uint64_t(0)) continue;
      std::queue<std::size_t> next({from});
      expected[from] = from;
      const auto visit = [&](std::size_t node) {
        if (expected[node] != ~std::uint64_t(0)) return;
        expected[node] = from;
        next.push(node);
      };
      for (; !next.empty(); next.pop()) {
        const std::size_t node = next.front();
        if (grid.leads_right(node)) visit(node + 1);
        if (grid.leads_down(node)) visit(node + grid.columns);
        if (node % grid.columns != 0 && grid.leads_right(node - 1)) visit(node - 1);
        if (node >= grid.columns && grid.leads_down(node - grid.columns)) visit(node - grid.columns);
      }
    }
    EXPECT_EQ(found, expected) << edges;
  }
}

TEST(Grid, has_about_as_many_edges_as_it_should) {
  const Grid grid{200, 300, 0.3, 1};
  std::size_t edges = 0;
  for (std::size_t node = 0; node < grid.nodes(); ++node) edges += grid.leads_right(node) + grid.leads_down(node);
  EXPECT_NEAR(double(edges), 0.3 * (200 * 299 + 199 * 300), 1000);
}

}  // namespace
}  // namespace headway::connect
