// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a coroutine goes on when its message is gone: it takes its arguments by value
#include <headway/object/object.hpp>
#include <string>

class Cell : public headway::Element<Cell, headway::Index<1>> {
 public:
#ifdef HEADWAY_BAD
  headway::Task<> greet(const std::string& name);
#else
  headway::Task<> greet(std::string name);
#endif
};

void use(headway::Array<Cell>& cells) { cells[1].send<&Cell::greet>("you"); }
