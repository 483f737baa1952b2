// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the elements of a span in a collective are trivially copyable, carry no address, and are not bool
#include <headway/collective/gather.hpp>
#include <span>
#include <string>
#include <vector>

#ifdef HEADWAY_BAD
using Element = std::string;
#else
using Element = int;
#endif

void use(headway::Pe& pe, const std::vector<Element>& values) {
  static_cast<void>(headway::gather_async(pe, std::span(values), 0));
}
