// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a handler is called as handler\(args...\), optionally with Pe& and then PeId source before them, where a view arrives by value and all else as a const reference
#include <headway/aggregate/aggregator.hpp>

struct Message {
  void show() const {}
  int id;
};

void use(headway::Pe& pe) {
  headway::Aggregator<Message> messages(pe);
#ifdef HEADWAY_BAD
  messages.on(&Message::show);
#else
  messages.on([](const Message& message) { message.show(); });
#endif
  messages.send(0, {1});
}
