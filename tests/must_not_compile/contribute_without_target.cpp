// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: contribute\(\) takes a value, an operator and a target
#include <functional>
#include <headway/object/object.hpp>

class Cell : public headway::Element<Cell, headway::Index<1>> {
 public:
  void take(long sum);
  void give() {
#ifdef HEADWAY_BAD
    contribute(1L, std::plus<>());
#else
    contribute(1L, std::plus<>(), headway::to<&Cell::take>(proxy()));
#endif
  }
};

void use(headway::Array<Cell>& cells) { cells.broadcast<&Cell::give>(); }
