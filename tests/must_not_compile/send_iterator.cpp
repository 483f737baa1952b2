// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: Message
#include <cstddef>
#include <map>
#include <string>

#include <headway/base/serialize.hpp>

struct Message {
  int id;
#ifdef HEADWAY_BAD
  std::map<int, std::string>::iterator where;
#else
  std::size_t where;
#endif
};

std::size_t bytes(const Message& message) { return headway::serialized_bytes(message); }
