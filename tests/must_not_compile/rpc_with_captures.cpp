// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a function called on another PE is a plain function or one without captures
#include <headway/call/rpc.hpp>

headway::Task<> use(headway::Pe& pe, int sum) {
#ifdef HEADWAY_BAD
  static_cast<void>(headway::rpc(pe, 0, [sum](int n) { return sum + n; }, 1));
#else
  static_cast<void>(headway::rpc(pe, 0, [](int s, int n) { return s + n; }, sum, 1));
#endif
  co_return;
}
