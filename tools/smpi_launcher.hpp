// SPDX-License-Identifier: BSD-3-Clause
/// Starts programs that were built for SimGrid's SMPI, on a simulated machine.
#pragma once

#include <cstddef>
#include <headway/model/machine.hpp>
#include <string>
#include <vector>

#include "child.hpp"

namespace headway::tools {

/// Owns a folder in memory with platforms and SMPI's copies of the program.
class SmpiLauncher {
 public:
  /// Throws SystemError without `smpirun`, or without room for the folder.
  explicit SmpiLauncher(model::Machine machine);
  SmpiLauncher(const SmpiLauncher&) = delete;
  SmpiLauncher& operator=(const SmpiLauncher&) = delete;
  ~SmpiLauncher();

  /// What stands before the program, for so many ranks, each on a host of its own.
  std::vector<std::string> command(std::size_t pes) const;
  std::vector<Variable> environment() const;

 private:
  model::Machine machine_;
  std::string folder_;
};

}  // namespace headway::tools
