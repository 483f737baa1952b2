// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: send_buffer\(\) is for send\(\), not for try_send\(\)
#include <headway/aggregate/aggregator.hpp>
#include <span>
#include <vector>

void use(headway::Aggregator<std::span<const int>>& blocks, const std::vector<int>& data) {
#ifdef HEADWAY_BAD
  static_cast<void>(blocks.try_send(0, headway::send_buffer(data, [] {})));
#else
  blocks.send(0, headway::send_buffer(data, [] {}));
#endif
}
