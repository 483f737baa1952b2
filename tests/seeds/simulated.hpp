// SPDX-License-Identifier: BSD-3-Clause
/// A random program on the simulated transport, under the eyes of an oracle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program.hpp"

namespace seeds {

struct Verdict {
  std::string violation;  // empty: none
  std::uint64_t messages = 0, frames = 0;
  std::int64_t simulated_ns = 0;
  std::uint64_t spilled_frames = 0;    // on all PEs
  std::vector<std::uint64_t> digests;  // by PE
};

Verdict run_simulated(const Program& program, bool talks = false);

}  // namespace seeds
