// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type cannot be sent: give it a serialize\(archive\) member, or make it a plain aggregate of sendable members
// names: Name
#include <headway/aggregate/aggregator.hpp>
#include <string>

class Name {
 public:
#ifndef HEADWAY_BAD
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text_);
  }
#endif

 private:
  std::string text_;
};

void use(headway::Pe& pe) {
  headway::Aggregator<Name> names(pe);
  names.on([](const Name&) {});
  names.send(0, Name());
  (void)names.try_send(0, {});
}
