// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a class of elements that migrate or are checkpointed has a constructor without arguments and a member
#include <headway/object/object.hpp>

class Cell : public headway::Element<Cell, headway::Index<1>> {
 public:
  void step() { migrate_to(0); }
#ifndef HEADWAY_BAD
  template <class A>
  void serialize(A& archive) {
    archive(value);
  }
#endif

 private:
  int value = 0;
};

void use(headway::Array<Cell>& cells) { cells[1].send<&Cell::step>(); }
