// SPDX-License-Identifier: BSD-3-Clause
/// What applications on collections of elements have in common: options of the command line, progress on a terminal.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
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
  bool is_told() const {
    const AggregatorOptions& of = aggregation;
    return of.topology != derived_topology || of.buffer_bytes != derived_bytes || of.threshold != derived_fraction ||
           of.cutoff != derived_fraction || of.timeout != derived_timeout || !of.flush_when_idle || of.ordered;
  }
};

/// Adds an option that is a whole number from `min` to `max`.
template <class T>
void add_count(CLI::App& app, const char* name, T& value, std::uint64_t min, std::uint64_t max, const char* help) {
  bench::add_value(
      app, name,
      [&value, name, min, max](const std::string& text) { value = T(bench::parse_count(name, text, min, max)); }, "N",
      help);
}

/// Adds --mode and the other options of aggregators, --balance, --balance-every and --json. Called in main(), before
/// run(): a PE cannot tell whether its output goes to a terminal.
inline void add_common_options(CLI::App& app, Common& common) {
  static const std::array<std::string, 4> strategies = {"none", "greedy", "refine", "rotate"};
  common.shows_progress = ::isatty(STDERR_FILENO) == 1;
  bench::add_aggregator_options(app, common.aggregation);
  bench::add_value(
      app, "--balance",
      [&](const std::string& text) { common.balance = bench::parse_choice("--balance", text, strategies); }, "NAME",
      "between phases, move elements: greedy, refine (as few as will do), rotate (all, to test); or none [none]");
  bench::add_value(
      app, "--balance-every",
      [&](const std::string& text) { common.balance_every = bench::parse_count("--balance-every", text, 1, 1 << 30); },
      "N", "steps of a phase [1]");
  bench::add_value(
      app, "--json", [&](const std::string& text) { common.json = text; }, "FILE",
      "write the record to FILE, or - for standard output");
}

/// Shows the progress of PE 0 on one line of a terminal, a few times a second; elsewhere nothing.
class Progress {
 public:
  Progress(Pe& pe, const Common& common, std::string what, std::uint64_t of)
      : engine_(&pe.engine()), shown_(common.shows_progress && pe.id() == 0), what_(std::move(what)), of_(of) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (printed_) print("\r\033[K");
  }

  /// Whether this PE shows progress.
  bool shown() const { return shown_; }
  void at(std::uint64_t done) {
    if (!shown_) return;
    const std::int64_t now = engine_->now();
    if (now < next_) return;
    next_ = now + 200'000'000;
    print(fmt::format("\r{} {} of {}\033[K", what_, done, of_));
    printed_ = true;
  }

 private:
  static void print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }

  am::Engine* engine_;
  bool shown_, printed_ = false;
  std::string what_;
  std::uint64_t of_;
  std::int64_t next_ = 0;
};

}  // namespace headway::apps
