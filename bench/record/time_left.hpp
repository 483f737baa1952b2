// SPDX-License-Identifier: BSD-3-Clause
/// An estimate for lines of progress.
#pragma once

#include <string>

namespace headway::bench {

/// ", 40 s left": if the rest takes as long for each step as `done` of `of` steps did, which took `seconds`. Empty in
/// the first second, and before the first step is done.
std::string time_left(double done, double of, double seconds);

}  // namespace headway::bench
