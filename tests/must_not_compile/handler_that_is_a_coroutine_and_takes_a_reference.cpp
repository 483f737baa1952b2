// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a coroutine goes on when its message is gone: it takes its arguments by value
#include <headway/aggregate/aggregator.hpp>
#include <string>

void use(headway::Pe& pe, std::size_t& sum) {
  headway::Aggregator<std::string> texts(pe);
#ifdef HEADWAY_BAD
  texts.on([&sum](const std::string& text) -> headway::Task<> {
#else
  texts.on([&sum](std::string text) -> headway::Task<> {
#endif
    sum += text.size();
    co_return;
  });
  texts.send(0, "text");
}
