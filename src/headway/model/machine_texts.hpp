// SPDX-License-Identifier: BSD-3-Clause
/// The texts of machines/*.machine, which CMake puts into the library.
#pragma once

#include <span>
#include <string_view>

namespace headway::model {

struct MachineText {
  std::string_view file, text;
};
std::span<const MachineText> machine_texts();

}  // namespace headway::model
