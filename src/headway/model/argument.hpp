// SPDX-License-Identifier: BSD-3-Clause
/// Checks of arguments of the model's functions.
#pragma once

namespace headway::model {

/// SettingError "model: NAME = VALUE: allowed is ..." unless `value` is finite and above 0.
void require_positive(const char* name, double value);
/// SettingError unless `value` is finite and at least `low`.
void require_at_least(const char* name, double value, double low);
/// SettingError unless low <= value <= high.
void require_between(const char* name, double value, double low, double high);

}  // namespace headway::model
