// SPDX-License-Identifier: BSD-3-Clause
#include "parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace headway::graph {
namespace {

TEST(Layout, a_vertex_is_in_the_part_of_its_first_bits) {
  const Layout layout{.log2 = 3};
  EXPECT_EQ(layout.vertices(), 8u);
  for (std::uint32_t vertex = 0; vertex < 64; ++vertex) {
    EXPECT_EQ(layout.first(layout.part(vertex)) + layout.within(vertex), vertex);
    EXPECT_EQ(layout.part(vertex), std::int32_t(vertex / 8));
  }
}

TEST(Edges, of_a_vertex_lie_side_by_side_in_the_order_in_which_they_came) {
  Edges<std::uint32_t> edges;
  std::vector<std::vector<std::uint32_t>> expected(20);
  Random random(7);
  for (std::uint32_t i = 0; i < 300; ++i) {
    const auto vertex = std::uint32_t(random.below(19));  // the last has none
    edges.add(vertex, i);
    expected[vertex].push_back(i);
  }
  edges.build(expected.size());
  for (std::uint32_t vertex = 0; vertex < expected.size(); ++vertex) {
    const std::span<const std::uint32_t> found = std::as_const(edges).of(vertex);
    EXPECT_EQ(std::vector<std::uint32_t>(found.begin(), found.end()), expected[vertex]);
    EXPECT_EQ(edges.degree(vertex), expected[vertex].size());
  }
}

TEST(Candidates, are_all_vertices_each_once_and_others_by_another_seed) {
  std::vector<std::uint32_t> first;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const KroneckerOptions graph{.scale = 10, .seed = seed};
    Candidates candidates(graph);
    std::vector<bool> seen(graph.vertices());
    for (std::uint64_t i = 0; i < graph.vertices(); ++i) {
      const auto vertex = candidates.next();
      ASSERT_TRUE(vertex);
      EXPECT_FALSE(seen[*vertex]);
      seen[*vertex] = true;
      if (i == 0) first.push_back(*vertex);
    }
    EXPECT_FALSE(candidates.next());
  }
  std::ranges::sort(first);
  EXPECT_GT(std::unique(first.begin(), first.end()) - first.begin(), 15);
}

TEST(Weights, are_as_likely_in_any_tenth_and_zero_as_often_as_asked_for) {
  const KroneckerOptions graph{.scale = 12, .seed = 5}, zeros{.scale = 12, .seed = 5, .zeros = 4};
  std::vector<std::uint64_t> tenths(10);
  std::uint64_t nothing = 0;
  for (std::uint64_t i = 0; i < graph.edges(); ++i) {
    const float weight = graph::weight(graph, i);
    ASSERT_GE(weight, 0);
    ASSERT_LT(weight, 1);
    ++tenths[std::size_t(weight * 10)];
    const float other = graph::weight(zeros, i);
    EXPECT_TRUE(other == weight || other == 0);
    nothing += other == 0;
  }
  for (const std::uint64_t count : tenths) EXPECT_NEAR(double(count) / double(graph.edges()), 0.1, 0.01);
  EXPECT_NEAR(double(nothing) / double(graph.edges()), 0.25, 0.01);
}

}  // namespace
}  // namespace headway::graph
