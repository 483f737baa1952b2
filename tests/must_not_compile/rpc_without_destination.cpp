// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: rpc\(\) and rpc_ff\(\) take the PE to run on, a number, then the function, then its arguments
#include <headway/call/rpc.hpp>

int square(int n);

void use(headway::Pe& pe) {
#ifdef HEADWAY_BAD
  static_cast<void>(headway::rpc(pe, square, 3));
#else
  static_cast<void>(headway::rpc(pe, 0, square, 3));
#endif
}
