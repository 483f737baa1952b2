// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the function cannot be called with these arguments \(const references; DistObject<T> arrives as T&\), optionally with Pe& and PeId source before them
#include <headway/call/calls.hpp>

void use(headway::Pe& pe) {
#ifdef HEADWAY_BAD
  headway::rpc_ff(pe, 0, [](int& n) { ++n; }, 1);
#else
  headway::DistObject<int> number(pe);
  headway::rpc_ff(pe, 0, [](int& n) { ++n; }, number);
#endif
}
