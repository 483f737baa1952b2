// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address
#include <headway/collective/reduce.hpp>

#ifdef HEADWAY_BAD
using Value = const int*;
#else
using Value = int;
#endif

void use(headway::Pe& pe, const Value& value) {
  static_cast<void>(headway::allreduce(pe, value, [](const Value& a, const Value&) { return a; }));
}
