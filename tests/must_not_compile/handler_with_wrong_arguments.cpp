// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a handler is called as handler\(args...\), optionally with Pe& and then PeId source before them, where a view arrives by value and all else as a const reference
#include <headway/aggregate/aggregator.hpp>

struct Update {
  std::size_t slot;
  double value;
};

void use(headway::Pe& pe) {
  headway::Aggregator<Update> updates(pe);
#ifdef HEADWAY_BAD
  updates.on([](std::size_t, double) {});
#else
  updates.on([](const Update&) {});
#endif
  updates.send(0, {1, 2.0});
}
