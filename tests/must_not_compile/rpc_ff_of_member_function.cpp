// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a function called on another PE is a plain function or one without captures
// names: Counter
#include <headway/call/calls.hpp>

struct Counter {
  void add(int n) { sum += n; }
  int sum = 0;
};

void use(headway::Pe& pe, headway::DistObject<Counter>& counter) {
#ifdef HEADWAY_BAD
  headway::rpc_ff(pe, 0, &Counter::add, counter, 1);
#else
  headway::rpc_ff(pe, 0, [](Counter& c, int n) { c.add(n); }, counter, 1);
#endif
}
