// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the function cannot be called with these arguments \(const references; DistObject<T> arrives as T&\), optionally with Pe& and PeId source before them
#include <headway/call/calls.hpp>

void greet(int, double) noexcept {}

void use(headway::Pe& pe) {
#ifdef HEADWAY_BAD
  headway::rpc_ff(pe, 0, greet, 1);
#else
  headway::rpc_ff(pe, 0, greet, 1, 2.0);
#endif
}
