// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this is not a method of the class of the collection's elements
#include <headway/object/object.hpp>

class Cell : public headway::Element<Cell, headway::Index<1>> {
 public:
  void recv(int step);
};
class Other : public headway::Element<Other, headway::Index<1>> {
 public:
  void recv(int step);
};

void use(headway::Array<Cell>& cells) {
#ifdef HEADWAY_BAD
  cells[1].send<&Other::recv>(3);
#else
  cells[1].send<&Cell::recv>(3);
#endif
}
