// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the operator of a collective outlives the call: it is a function, a closure without captures
#include <algorithm>
#include <headway/collective/reduce.hpp>

struct AtMost {
  int limit;
  int operator()(int a, int b) const { return std::min(a + b, limit); }
};

void use(headway::Pe& pe, int limit) {
#ifdef HEADWAY_BAD
  static_cast<void>(headway::reduce_async(pe, 1, [&limit](int a, int b) { return std::min(a + b, limit); }, 0));
#else
  static_cast<void>(headway::reduce_async(pe, 1, AtMost{limit}, 0));
#endif
}
