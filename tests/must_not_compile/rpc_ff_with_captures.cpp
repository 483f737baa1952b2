// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a function called on another PE is a plain function or one without captures
// names: lambda
#include <headway/call/calls.hpp>

void use(headway::Pe& pe) {
  int sum = 0;
#ifdef HEADWAY_BAD
  headway::rpc_ff(pe, 0, [&sum](int n) { sum += n; }, 1);
#else
  headway::rpc_ff(pe, 0, [](int s, int n) { s += n; }, sum, 1);
#endif
}
