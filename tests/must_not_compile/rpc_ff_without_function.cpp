// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: rpc\(\) and rpc_ff\(\) take the PE to run on, a number, then the function, then its arguments
#include <headway/call/rpc.hpp>

void begin();

void use(headway::Pe& pe) {
#ifdef HEADWAY_BAD
  headway::rpc_ff(pe, 0);
#else
  headway::rpc_ff(pe, 0, begin);
#endif
}
