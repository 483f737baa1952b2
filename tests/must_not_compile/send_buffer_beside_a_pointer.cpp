// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: send\(\) takes the PE and the Aggregator's arguments: an argument has another type
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <span>
#include <vector>

void use(headway::Pe& pe, const std::vector<int>& data, const int* object) {
  headway::Aggregator<std::uint64_t, std::span<const int>> messages(pe);
  messages.on([](std::uint64_t, std::span<const int>) {});
#ifdef HEADWAY_BAD
  messages.send(0, object, headway::send_buffer(data, [] {}));
#else
  messages.send(0, *object, headway::send_buffer(data, [] {}));
#endif
}
