// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: the elements of a send_buffer\(\) have another type than those of the argument
#include <headway/aggregate/aggregator.hpp>
#include <span>
#include <vector>

void use(headway::Aggregator<std::span<const double>>& blocks, const std::vector<double>& doubles,
         [[maybe_unused]] const std::vector<float>& floats) {
#ifdef HEADWAY_BAD
  blocks.send(0, headway::send_buffer(floats, [] {}));
#else
  blocks.send(0, headway::send_buffer(doubles, [] {}));
#endif
}
