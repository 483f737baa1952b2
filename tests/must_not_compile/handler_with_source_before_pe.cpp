// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a handler is called as handler\(args...\), optionally with Pe& and then PeId source before them, where a view arrives by value and all else as a const reference
#include <headway/aggregate/aggregator.hpp>

void use(headway::Pe& pe) {
  headway::Aggregator<double, int> updates(pe);
#ifdef HEADWAY_BAD
  updates.on([](headway::PeId, headway::Pe&, double, int) {});
#else
  updates.on([](headway::Pe&, headway::PeId, double, int) {});
#endif
  updates.send(0, 1.0, 2);
}
