// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the entry method cannot be called with these arguments: the type of one does not fit
#include <headway/object/object.hpp>

class Cell : public headway::Element<Cell, headway::Index<2>> {
 public:
  void recv(double force, int step);
  long total(int step) const;
};

void use(headway::Array<Cell>& cells) {
#ifdef HEADWAY_BAD
  cells.broadcast<&Cell::recv>(0.5, "3");
#else
  cells.broadcast<&Cell::recv>(0.5, 3);
#endif
}
