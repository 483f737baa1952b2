// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: this type carries an address
// names: basic_string_view
#include <headway/call/rpc.hpp>
#include <string>
#include <string_view>

void use(headway::Pe& pe) {
#ifdef HEADWAY_BAD
  static_cast<void>(headway::rpc(pe, 0, [](std::string_view text) { return text.substr(1); }, "text"));
#else
  static_cast<void>(headway::rpc(pe, 0, [](std::string_view text) { return std::string(text.substr(1)); }, "text"));
#endif
}
