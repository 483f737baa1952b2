// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: send\(\) takes the PE and the Aggregator's arguments: an argument has another type
// names: Takes( = .|<)long( int)?, std::span<const char
#include <headway/aggregate/aggregator.hpp>
#include <span>

void use(headway::Aggregator<long, std::span<const char>>& texts, std::span<const char> text) {
#ifdef HEADWAY_BAD
  texts.send(0, 1, 2);
#else
  texts.send(0, 1, text);
#endif
}
