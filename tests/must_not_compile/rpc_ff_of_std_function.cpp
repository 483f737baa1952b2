// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a function called on another PE is a plain function or one without captures
// names: std::function
#include <headway/call/calls.hpp>
#include <functional>

void greet(int) {}

void use(headway::Pe& pe) {
#ifdef HEADWAY_BAD
  const std::function<void(int)> function = greet;
#else
  const auto function = greet;
#endif
  headway::rpc_ff(pe, 0, function, 1);
}
