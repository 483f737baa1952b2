// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: write the types of a message without const and &
#include <headway/aggregate/aggregator.hpp>

#ifdef HEADWAY_BAD
using Argument = const int&;
#else
using Argument = int;
#endif

void use(headway::Pe& pe) {
  headway::Aggregator<Argument> messages(pe);
  messages.on([](int) {});
  messages.send(0, 1);
  (void)messages.try_send(0, 1);
}
