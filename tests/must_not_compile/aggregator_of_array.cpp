// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: an array is no argument of a message: use std::array, or std::span<const T> for its content
// names: int *\[3\]
#include <headway/aggregate/aggregator.hpp>
#include <array>

#ifdef HEADWAY_BAD
using Argument = int[3];
#else
using Argument = std::array<int, 3>;
#endif

void use(headway::Pe& pe, const Argument& three) {
  headway::Aggregator<Argument> messages(pe);
  messages.on([](const Argument&) {});
  messages.send(0, three);
  (void)messages.try_send(0, three);
}
