// SPDX-License-Identifier: BSD-3-Clause
/// What applications on collections of elements have in common: options of the command line, progress on a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/headway.hpp>
#include <options.hpp>
#include <string>

namespace headway::apps {

struct Common {
  AggregatorOptions aggregation;    // of all entry methods, in the place of what their classes declare
  std::string balance = "none";     // none, or what strategy moves elements between phases
  std::uint64_t balance_every = 1;  // steps in a phase, where elements are moved at all
  std::string json;                 // a file, "-", or empty for a line on standard output
  bool shows_progress = false;

  /// Whether it was told how to aggregate; else classes say it.
  bool is_told() const;
};

/// Adds --mode and the other options of aggregators, --balance, --balance-every and --json. Called in main(), before
/// run(): a PE cannot tell whether its output goes to a terminal.
void add_common_options(bench::CommandLine& app, Common& common);

/// Shows the progress of PE 0 and the time that is left on one line of a terminal, a few times a second; elsewhere
/// nothing.
class Progress {
 public:
  Progress(Pe& pe, const Common& common, std::string what, std::uint64_t of);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Whether this PE shows progress.
  bool shown() const { return shown_; }
  void at(std::uint64_t done);

 private:
  am::Engine* engine_;
  bool shown_, printed_ = false;
  std::string what_;
  std::uint64_t of_;
  std::int64_t begin_, next_ = 0;
};

}  // namespace headway::apps
