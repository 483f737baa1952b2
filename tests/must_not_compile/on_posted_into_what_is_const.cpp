// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the function that posts memory returns a std::span of elements that are not const
#include <headway/aggregate/aggregator.hpp>
#include <span>
#include <vector>

#ifdef HEADWAY_BAD
using Memory = const std::vector<int>;
#else
using Memory = std::vector<int>;
#endif

void use(headway::Pe& pe, Memory& memory) {
  headway::Aggregator<std::span<const int>> messages(pe);
  messages.on_posted([&](std::size_t) { return std::span(memory); }, [](std::span<const int>) {});
}
