// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: Batch
#include <string>
#include <vector>

#include <headway/base/serialize.hpp>

struct Message {
  int id;
#ifdef HEADWAY_BAD
  int* next;
#else
  int next;
#endif
};

struct Batch {
  std::string name;
  std::vector<std::vector<Message>> messages;
};

std::size_t bytes(const Batch& batch) { return headway::serialized_bytes(batch); }
