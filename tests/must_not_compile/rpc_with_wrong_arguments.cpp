// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the function cannot be called with these arguments
#include <headway/call/rpc.hpp>

void use(headway::Pe& pe) {
#ifdef HEADWAY_BAD
  static_cast<void>(headway::rpc(pe, 0, [](int* n) { return *n; }, 1));
#else
  static_cast<void>(headway::rpc(pe, 0, [](int n) { return n; }, 1));
#endif
}
