// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: Message
#include <headway/base/serialize.hpp>

struct Message {
  int id;
#ifdef HEADWAY_BAD
  const int& counter;
#else
  int counter;
#endif
};

std::size_t bytes(const Message& message) { return headway::serialized_bytes(message); }
