// SPDX-License-Identifier: BSD-3-Clause
/// The error for invalid bytes.
#pragma once

#include <stdexcept>

namespace headway {

/// Invalid bytes: truncated, damaged, or written for another type.
struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace headway
