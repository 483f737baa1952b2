// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: send_n\(\) takes a number and next\(\), which returns a pair or tuple: the PE, and the Aggregator's arguments
#include <headway/aggregate/aggregator.hpp>
#include <tuple>

void use(headway::Aggregator<long, long>& pairs) {
#ifdef HEADWAY_BAD
  pairs.send_n(9, [] { return std::tuple(0, 1); });
#else
  pairs.send_n(9, [] { return std::tuple(0, 1, 2); });
#endif
}
