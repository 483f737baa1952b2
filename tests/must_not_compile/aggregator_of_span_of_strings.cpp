// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: a span as an argument stands for its content, which must be trivially copyable and carry no address
// names: std::span
#include <headway/aggregate/aggregator.hpp>
#include <span>
#include <string>
#include <vector>

#ifdef HEADWAY_BAD
using Argument = std::span<const std::string>;
#else
using Argument = std::vector<std::string>;
#endif

void use(headway::Pe& pe, const std::vector<std::string>& words) {
  headway::Aggregator<Argument> messages(pe);
  messages.on([](const Argument&) {});
  messages.send(0, words);
}
