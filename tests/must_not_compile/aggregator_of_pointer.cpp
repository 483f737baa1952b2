// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: Message
#include <headway/aggregate/aggregator.hpp>

struct Message {
  int id;
#ifdef HEADWAY_BAD
  int* next;
#else
  int next;
#endif
};

void use(headway::Pe& pe) {
  headway::Aggregator<Message> messages(pe);
  messages.on([](const Message&) {});
  messages.send(0, {1, {}});
  (void)messages.try_send(0, {1, {}});
}
