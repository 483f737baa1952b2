// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the entry method cannot be called with these arguments: it has more parameters
#include <headway/object/object.hpp>

class Cell : public headway::Element<Cell, headway::Index<2>> {
 public:
  void recv(double force, int step);
  long total(int step) const;
};

void use(headway::Array<Cell>& cells) {
#ifdef HEADWAY_BAD
  static_cast<void>(cells[{1, 2}].rpc<&Cell::total>());
#else
  static_cast<void>(cells[{1, 2}].rpc<&Cell::total>(3));
#endif
}
