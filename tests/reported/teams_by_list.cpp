// SPDX-License-Identifier: BSD-3-Clause
// Teams of similar lists, such as {2} and {2, 3}, which each PE makes in an order of its own.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <headway/headway.hpp>
#include <vector>

int main(int argc, char** argv) {
  return headway::run(argc, argv, [](headway::Pe& pe) {
    const std::size_t n = pe.size(), id = pe.id();
    std::vector<std::vector<std::size_t>> lists;
    for (std::size_t a = 0; a < n; ++a) {
      lists.push_back({a});
      for (std::size_t b = 0; b < n; ++b) {
        if (b == a) continue;
        lists.push_back({a, b});
        if ((a + 1) % n != a && (a + 1) % n != b) lists.push_back({(a + 1) % n, a, b});
      }
    }
    std::vector<std::size_t> mine;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (std::ranges::find(lists[i], id) != lists[i].end()) mine.push_back(i);
    }
    std::ranges::rotate(mine, mine.begin() + std::ptrdiff_t(mine.size() * id / n));
    std::vector<headway::Team> teams;
    for (const std::size_t i : mine) teams.emplace_back(pe, lists[i]);
    std::vector<headway::Future<std::size_t>> sums;
    for (std::size_t k = 0; k < mine.size(); ++k) {
      sums.push_back(headway::allreduce_async(teams[k], mine[k] + id, std::plus<>()));
    }
    int wrong = 0;
    for (std::size_t k = 0; k < mine.size(); ++k) {
      std::size_t expected = 0;
      for (const std::size_t member : lists[mine[k]]) expected += mine[k] + member;
      if (const std::size_t sum = sums[k].get(); sum != expected) {
        std::printf("PE %zu: list %zu sums up to %zu instead of %zu\n", id, mine[k], sum, expected);
        wrong = 1;
      }
    }
    return wrong;
  });
}
