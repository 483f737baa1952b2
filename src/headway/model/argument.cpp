// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cmath>
#include <headway/base/error.hpp>
#include <headway/model/argument.hpp>

namespace headway::model {

void require_positive(const char* name, double value) {
  if (std::isfinite(value) && value > 0) return;
  throw SettingError(fmt::format("model: {} = {}: allowed is a finite number above 0", name, value));
}

void require_at_least(const char* name, double value, double low) {
  if (std::isfinite(value) && value >= low) return;
  throw SettingError(fmt::format("model: {} = {}: allowed is a finite number of at least {}", name, value, low));
}

void require_between(const char* name, double value, double low, double high) {
  if (value >= low && value <= high) return;
  throw SettingError(fmt::format("model: {} = {}: allowed is {} to {}", name, value, low, high));
}

}  // namespace headway::model
