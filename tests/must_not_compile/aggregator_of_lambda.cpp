// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: lambda
#include <headway/aggregate/aggregator.hpp>

void use(headway::Pe& pe) {
  const auto twice = [](int x) { return 2 * x; };
#ifdef HEADWAY_BAD
  const auto message = twice;
#else
  const auto message = twice(1);
#endif
  headway::Aggregator<std::remove_const_t<decltype(message)>> messages(pe);
  messages.on([](const auto&) {});
  messages.send(0, message);
}
