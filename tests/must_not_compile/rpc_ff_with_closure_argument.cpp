// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: lambda
#include <headway/call/calls.hpp>

void use(headway::Pe& pe) {
  const auto twice = [](int x) { return 2 * x; };
#ifdef HEADWAY_BAD
  headway::rpc_ff(pe, 0, [](const auto& f) { f(1); }, twice);
#else
  headway::rpc_ff(pe, 0, [](int n) { static_cast<void>(n); }, twice(1));
#endif
}
