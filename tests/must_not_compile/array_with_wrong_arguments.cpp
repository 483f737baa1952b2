// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the class of the elements has no constructor for the arguments of the collection
#include <headway/object/object.hpp>

class Cell : public headway::Element<Cell, headway::Index<2>> {
 public:
  explicit Cell(int number);
  Cell() = default;
  template <class A>
  void serialize(A&) {}
};

void use(headway::Pe& pe) {
#ifdef HEADWAY_BAD
  const headway::Array<Cell> cells(pe, {2, 2}, {}, "one");
#else
  const headway::Array<Cell> cells(pe, {2, 2}, {}, 1);
#endif
}
