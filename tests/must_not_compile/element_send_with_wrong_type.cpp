// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the entry method cannot be called with these arguments: the type of one does not fit
#include <headway/object/object.hpp>
#include <string>
#include <vector>

class Cell : public headway::Element<Cell, headway::Sparse<std::string>> {
 public:
  void recv(std::span<const double> forces);
};

void use(headway::SparseArray<Cell>& cells) {
#ifdef HEADWAY_BAD
  const std::vector<float> forces(3);
#else
  const std::vector<double> forces(3);
#endif
  cells["a"].send<&Cell::recv>(forces);
}
