// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a method with steps gives no answer
#include <headway/object/object.hpp>

class Cell : public headway::Element<Cell, headway::Index<1>> {
 public:
  int ghost(int step);
  void relax(int step);
  static constexpr auto triggers = headway::triggers(headway::trigger<&Cell::relax, &Cell::ghost>(2));
};

void use(headway::Array<Cell>& cells) {
#ifdef HEADWAY_BAD
  static_cast<void>(cells[1].rpc<&Cell::ghost>(0));
#else
  cells[1].send<&Cell::ghost>(0);
#endif
}
