// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: send\(\) takes the PE and the Aggregator's arguments: 1 argument is missing
#include <headway/aggregate/aggregator.hpp>

void use(headway::Aggregator<long, long>& pairs) {
#ifdef HEADWAY_BAD
  if (!pairs.try_send(0, 1)) pairs.flush();
#else
  if (!pairs.try_send(0, 1, 2)) pairs.flush();
#endif
}
