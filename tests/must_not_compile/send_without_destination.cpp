// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: send\(\) takes first the PE that the message goes to: a number
#include <headway/aggregate/aggregator.hpp>
#include <string>

void use(headway::Aggregator<std::string, int>& texts) {
#ifdef HEADWAY_BAD
  texts.send("one", 1, 0);
#else
  texts.send(0, "one", 1);
#endif
}
