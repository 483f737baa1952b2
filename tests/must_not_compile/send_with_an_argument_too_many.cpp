// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: send\(\) takes the PE and the Aggregator's arguments: 1 argument is too many
#include <headway/aggregate/aggregator.hpp>

void use(headway::Aggregator<long>& words) {
#ifdef HEADWAY_BAD
  words.send(0, 1, 2);
#else
  words.send(0, 1);
#endif
}
