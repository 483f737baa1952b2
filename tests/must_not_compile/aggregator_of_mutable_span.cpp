// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a span as an argument is read in place: write std::span<const T>
// names: std::span<int>
#include <headway/aggregate/aggregator.hpp>
#include <span>
#include <vector>

#ifdef HEADWAY_BAD
using Numbers = std::span<int>;
#else
using Numbers = std::span<const int>;
#endif

void use(headway::Pe& pe, std::vector<int>& numbers) {
  headway::Aggregator<int, Numbers> messages(pe);
  messages.on([](int, Numbers) {});
  messages.send(0, 1, numbers);
}
