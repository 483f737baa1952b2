// SPDX-License-Identifier: BSD-3-Clause
/// The HEADWAY_ settings as options of a command.
#pragma once

#include <headway/base/settings.hpp>
#include <map>
#include <optional>
#include <record/command_line.hpp>
#include <string>
#include <vector>

namespace headway::tools {

class SettingsOptions {
 public:
  /// Adds an option for each setting that the library reads; without those of AggregationSettings where the command has
  /// options of its own for them.
  explicit SettingsOptions(bench::CommandLine& app, bool with_aggregation = true);

  /// Sets this process's HEADWAY_ variables from the options given, for the programs that it starts, and returns the
  /// settings that result. Where an option cannot be used: one line on standard error in the option's name, and
  /// nothing; an invalid variable of the environment throws SettingError.
  std::optional<base::Settings> apply(const std::string& command) const;

  /// Removes the variables of AggregationSettings from this process's environment; returns those that were there.
  static std::vector<std::string> unset_aggregation();

 private:
  std::map<std::string, std::string> given_;  // by variable
};

}  // namespace headway::tools
