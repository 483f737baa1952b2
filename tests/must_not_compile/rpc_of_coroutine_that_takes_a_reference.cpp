// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a coroutine goes on when its message is gone: it takes its arguments by value
#include <headway/call/rpc.hpp>
#include <string>

void use(headway::Pe& pe) {
#ifdef HEADWAY_BAD
  const auto length = [](const std::string& text) -> headway::Task<std::size_t> { co_return text.size(); };
#else
  const auto length = [](std::string text) -> headway::Task<std::size_t> { co_return text.size(); };
#endif
  const std::string text = "text";
  static_cast<void>(headway::rpc(pe, 0, length, text));
}
