// SPDX-License-Identifier: BSD-3-Clause
#include "kronecker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace headway::graph {
namespace {

TEST(Kronecker, every_vertex_has_a_label_of_its_own) {
  for (unsigned scale = 0; scale < 14; ++scale) {
    const KroneckerOptions graph{.scale = scale, .seed = scale + 5};
    std::vector<bool> seen(graph.vertices());
    for (std::uint32_t vertex = 0; vertex < graph.vertices(); ++vertex) {
      const std::uint32_t to = label(graph, vertex);
      ASSERT_LT(to, graph.vertices());
      EXPECT_FALSE(seen[to]) << scale << ": " << vertex;
      seen[to] = true;
    }
  }
}

TEST(Kronecker, its_quarters_have_the_edges_that_they_should) {
  const KroneckerOptions graph{.scale = 1, .edge_factor = 1 << 16, .seed = 3};
  double quarters[2][2] = {};
  for (std::uint64_t i = 0; i < graph.edges(); ++i) {
    const auto [from, to] = edge(graph, i);
    quarters[from][to] += 1 / double(graph.edges());
  }
  const std::uint32_t zero = label(graph, 0), one = 1 - zero;
  EXPECT_NEAR(quarters[zero][zero], 0.57, 0.01);
  EXPECT_NEAR(quarters[zero][one], 0.19, 0.01);
  EXPECT_NEAR(quarters[one][zero], 0.19, 0.01);
  EXPECT_NEAR(quarters[one][one], 0.05, 0.01);
}

TEST(Kronecker, another_seed_is_another_graph) {
  const KroneckerOptions a{.scale = 10, .seed = 1}, b{.scale = 10, .seed = 2};
  std::uint64_t same = 0;
  for (std::uint64_t i = 0; i < a.edges(); ++i) {
    EXPECT_EQ(edge(a, i), edge(a, i));
    same += edge(a, i) == edge(b, i);
  }
  EXPECT_LT(same, a.edges() / 100);
}

}  // namespace
}  // namespace headway::graph
