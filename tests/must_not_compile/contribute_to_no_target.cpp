// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the target of contribute\(\) must be a result of headway::to<&Class::method>\(\)
#include <functional>
#include <headway/object/object.hpp>

class Cell : public headway::Element<Cell, headway::Index<1>> {
 public:
  void take(long sum);
  void give() {
#ifdef HEADWAY_BAD
    contribute(1L, std::plus<>(), 0);
#else
    contribute(1L, std::plus<>(), headway::to<&Cell::take>(proxy()));
#endif
  }
};

void use(headway::Array<Cell>& cells) { cells.broadcast<&Cell::give>(); }
