// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: std::function
#include <headway/aggregate/aggregator.hpp>
#include <functional>

#ifdef HEADWAY_BAD
using Message = std::function<int(int)>;
#else
using Message = int;
#endif

void use(headway::Pe& pe, const Message& message) {
  headway::Aggregator<Message> messages(pe);
  messages.on([](const Message&) {});
  messages.send(0, message);
}
