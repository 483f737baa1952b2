// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the class of the elements has no constructor for the arguments of insert\(\)
#include <headway/object/object.hpp>
#include <string>

class Cell : public headway::Element<Cell, headway::Sparse<std::string>> {
 public:
  Cell(int number, const std::string& name);
  Cell() = default;
  template <class A>
  void serialize(A&) {}
};

void use(headway::SparseArray<Cell>& cells) {
#ifdef HEADWAY_BAD
  cells["a"].insert(1);
#else
  cells["a"].insert(1, std::string("one"));
#endif
}
