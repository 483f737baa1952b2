// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the entry method cannot be called with these arguments: it has fewer parameters
#include <headway/object/object.hpp>

class Cell : public headway::Element<Cell, headway::Index<2>> {
 public:
  void recv(double force, int step);
  long total(int step) const;
};

void use(headway::Array<Cell>& cells) {
#ifdef HEADWAY_BAD
  cells[{1, 2}].send<&Cell::recv>(0.5, 3, 4);
#else
  cells[{1, 2}].send<&Cell::recv>(0.5, 3);
#endif
}
