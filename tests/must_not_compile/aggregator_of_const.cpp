// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: write the types of a message without const and &
#include <headway/aggregate/aggregator.hpp>
#include <string>

#ifdef HEADWAY_BAD
using Argument = const std::string;
#else
using Argument = std::string;
#endif

void use(headway::Pe& pe) {
  headway::Aggregator<int, Argument> messages(pe);
  messages.on([](int, const std::string&) {});
  messages.send(0, 1, "text");
  (void)messages.try_send(0, 1, "text");
}
