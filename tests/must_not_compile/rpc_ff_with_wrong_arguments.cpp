// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the function cannot be called with these arguments \(const references; DistObject<T> arrives as T&\), optionally with Pe& and PeId source before them
#include <headway/call/calls.hpp>
#include <string>

void use(headway::Pe& pe) {
  const auto greet = [](const std::string&, int) {};
#ifdef HEADWAY_BAD
  headway::rpc_ff(pe, 0, greet, 1, "name");
#else
  headway::rpc_ff(pe, 0, greet, std::string("name"), 1);
#endif
}
