// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a handler returns nothing
#include <headway/aggregate/aggregator.hpp>

void use(headway::Pe& pe) {
  headway::Aggregator<int> numbers(pe);
  numbers.on([](headway::PeId, const int& n) {
    static_cast<void>(n);
#ifdef HEADWAY_BAD
    return n;
#endif
  });
  numbers.send(0, 1);
}
