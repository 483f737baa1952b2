// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the result of send_buffer\(\) is for one send\(\): call it among the arguments
#include <headway/aggregate/aggregator.hpp>
#include <span>
#include <vector>

void use(headway::Pe& pe, const std::vector<int>& data) {
  headway::Aggregator<std::span<const int>> messages(pe);
  messages.on([](std::span<const int>) {});
#ifdef HEADWAY_BAD
  auto buffer = headway::send_buffer(data, [] {});
  messages.send(0, buffer);
#else
  messages.send(0, headway::send_buffer(data, [] {}));
#endif
}
