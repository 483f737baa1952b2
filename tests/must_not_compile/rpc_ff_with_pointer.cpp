// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address \(a pointer, reference, view, iterator or closure\), which means nothing on another PE
// names: int\*|int \*
#include <headway/call/calls.hpp>

void use(headway::Pe& pe, int& n) {
#ifdef HEADWAY_BAD
  headway::rpc_ff(pe, 0, [](const int* at) { static_cast<void>(*at); }, &n);
#else
  headway::rpc_ff(pe, 0, [](const int& at) { static_cast<void>(at); }, n);
#endif
}
