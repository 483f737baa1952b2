// SPDX-License-Identifier: BSD-3-Clause
/// What `headway bench` was asked for, as groups of cases: the cases of a group are one comparison, run interleaved.
#pragma once

#include <chrono>
#include <cstdint>
#include <headway/base/settings.hpp>
#include <optional>
#include <string>
#include <vector>

#include "child.hpp"
#include "peers.hpp"

namespace headway::tools {

/// One program to start, the same way in every repeat.
struct BenchCase {
  /// `limit`: the hand-written loop, which all others are given as fractions of.
  enum class Role { headway, peer, limit };
  std::string label;  // in tables: "1d", "1d 16K", "mpi-alltoallv"
  Role role = Role::headway;
  std::vector<std::string> command;
  std::vector<Variable> environment;
  std::vector<std::string> bucket_sizes;  // mpi-alltoallv: --buffer-bytes values of which the best is found first
};

struct BenchGroup {
  std::string title;  // "2^20 words", "104 bytes"
  std::vector<BenchCase> cases;
};

struct BenchPlan {
  std::string bench;
  std::vector<BenchGroup> groups;
  std::size_t repeats;
  std::chrono::seconds limit;  // for one start of one program
  bool osu;                    // two columns a mode instead of a table a group
  std::string json;            // a file, "-", or empty
};

/// Reads the arguments of `headway bench`. Where there is nothing to run, `status` is what to end with.
struct PlanOrStatus {
  std::optional<BenchPlan> plan;
  int status = 0;
};
PlanOrStatus make_plan(int argc, char** argv);

}  // namespace headway::tools
