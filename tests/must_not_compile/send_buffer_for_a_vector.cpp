// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: send_buffer\(\) is for an argument that is a std::span or std::string_view
#include <headway/aggregate/aggregator.hpp>
#include <span>
#include <vector>

#ifdef HEADWAY_BAD
using Argument = std::vector<int>;
#else
using Argument = std::span<const int>;
#endif

void use(headway::Pe& pe, const std::vector<int>& data) {
  headway::Aggregator<Argument> messages(pe);
  messages.on([](const Argument&) {});
  messages.send(0, headway::send_buffer(data, [] {}));
}
