// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the operator of a collective takes two elements and gives one: for the elements of a vector
#include <functional>
#include <headway/collective/reduce.hpp>
#include <span>
#include <vector>

void use(headway::Pe& pe, std::vector<int>& values) {
#ifdef HEADWAY_BAD
  static_cast<void>(headway::allreduce_async(pe, values, [](int a, int b) { return a + b; }));
#else
  static_cast<void>(headway::allreduce_async(pe, std::span(values), [](int a, int b) { return a + b; }));
#endif
}
