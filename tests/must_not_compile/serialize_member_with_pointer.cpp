// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: int\*|int \*
#include <headway/base/serialize.hpp>

class Message {
 public:
  template <class Archive>
  void serialize(Archive& archive) {
#ifdef HEADWAY_BAD
    archive(next_);
#else
    archive(*next_);
#endif
  }

 private:
  int value_ = 0;
  int* next_ = &value_;
};

std::size_t bytes(const Message& message) { return headway::serialized_bytes(message); }
