// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type cannot be sent: give it a serialize\(archive\) member, or make it a plain aggregate of sendable members
// names: Message
#include <string>
#include <utility>

#include <headway/base/serialize.hpp>

class Name {
 public:
  Name() = default;
  explicit Name(std::string text) : text_(std::move(text)) {}

 private:
  std::string text_;
};

struct Message {
  int id;
#ifdef HEADWAY_BAD
  Name name;
#else
  std::string name;
#endif
};

std::size_t bytes(const Message& message) { return headway::serialized_bytes(message); }
