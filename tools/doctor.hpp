// SPDX-License-Identifier: BSD-3-Clause
/// What `headway doctor` finds.
#pragma once

#include <string>
#include <vector>

namespace headway::tools {

/// What one check found. A warning costs speed or a feature; an error keeps programs from running.
struct Finding {
  enum class Grade { ok, warning, error };
  std::string subject;
  Grade grade = Grade::ok;
  std::string text;
  std::string cure;  // for all but ok
};

/// The ways to start a program beside the one without requirements: finds the launchers and checks their requirements.
std::vector<Finding> ways_to_start();

}  // namespace headway::tools
