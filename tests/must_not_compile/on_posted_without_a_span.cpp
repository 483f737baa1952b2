// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: on_posted\(\) is for messages of which one argument is a std::span
#include <headway/aggregate/aggregator.hpp>
#include <span>
#include <vector>

#ifdef HEADWAY_BAD
using Argument = std::vector<int>;
#else
using Argument = std::span<const int>;
#endif

void use(headway::Pe& pe, std::vector<int>& memory) {
  headway::Aggregator<Argument> messages(pe);
  messages.on_posted([&](const auto&) { return std::span<int>(memory); }, [](const Argument&) {});
}
