// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a coroutine goes on when its message is gone: it takes its arguments by value
#include <headway/call/rpc.hpp>
#include <string>
#include <string_view>

headway::Task<std::size_t> length_of(std::string text) { co_return text.size(); }
headway::Task<std::size_t> length_of_view(std::string_view text) { co_return text.size(); }

void use(headway::Pe& pe) {
#ifdef HEADWAY_BAD
  static_cast<void>(headway::rpc(pe, 0, length_of_view, "text"));
#else
  const std::string text = "text";
  static_cast<void>(headway::rpc(pe, 0, length_of, text));
#endif
}
