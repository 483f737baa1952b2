// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: rpc\(\) and rpc_ff\(\) take the PE to run on, a number, then the function, then its arguments
#include <headway/call/rpc.hpp>

void use(headway::CallAggregator& calls) {
#ifdef HEADWAY_BAD
  calls.rpc_ff([](int) {}, 3);
#else
  calls.rpc_ff(0, [](int) {}, 3);
#endif
}
