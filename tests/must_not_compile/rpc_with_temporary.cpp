// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: GCC 12 destroys such a temporary twice where it is in an expression with co_await .GCC bug 99576.: give the argument a name first
// where: headway::am::destroys_temporaries_twice
#include <headway/call/rpc.hpp>
#include <string>

headway::Task<std::size_t> use(headway::Pe& pe) {
  const auto length = [](const std::string& text) { return text.size(); };
#if defined(HEADWAY_BAD)
  co_return co_await headway::rpc(pe, 0, length, std::string("text"));
#else
  const std::string text = "text";
  co_return co_await headway::rpc(pe, 0, length, text);
#endif
}
