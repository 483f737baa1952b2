// SPDX-License-Identifier: BSD-3-Clause
/// HEADWAY_COSTS: whether a run uses the costs that `headway probe --save` has kept.
#pragma once

namespace headway::base {

/// Throws SettingError.
bool wants_probed_costs();

}  // namespace headway::base
