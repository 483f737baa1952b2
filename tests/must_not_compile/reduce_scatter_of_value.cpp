// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: give a std::span, which is cut into blocks of equal length, or a std::vector with a block
#include <array>
#include <functional>
#include <headway/collective/exchange.hpp>
#include <vector>

#ifdef HEADWAY_BAD
using Blocks = std::array<int, 3>;
#else
using Blocks = std::vector<int>;
#endif

void use(headway::Pe& pe, const Blocks& blocks) {
  static_cast<void>(headway::reduce_scatter(pe, blocks, std::plus<>()));
}
