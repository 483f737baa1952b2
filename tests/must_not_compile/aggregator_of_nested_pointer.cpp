// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: Batch
#include <headway/aggregate/aggregator.hpp>
#include <string>
#include <vector>

struct Message {
  int id;
#ifdef HEADWAY_BAD
  const char* text;
#else
  std::string text;
#endif
};

struct Batch {
  std::string name;
  std::vector<Message> messages;
};

void use(headway::Pe& pe) {
  headway::Aggregator<int, Batch> batches(pe);
  batches.on([](int, const Batch&) {});
  batches.send(0, 1, {"name", {{1, "text"}}});
  (void)batches.try_send(0, 1, {"name", {}});
}
