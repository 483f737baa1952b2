// SPDX-License-Identifier: BSD-3-Clause
// expect: headway: send_range\(\) takes the PE and a range of the Aggregator's type, of which it has one
#include <headway/aggregate/aggregator.hpp>
#include <string>
#include <vector>

void use(headway::Aggregator<std::string>& names, const std::vector<const char*>& texts,
         [[maybe_unused]] const std::vector<int>& numbers) {
#ifdef HEADWAY_BAD
  names.send_range(0, numbers);
#else
  names.send_range(0, texts);
#endif
}
