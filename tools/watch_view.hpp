// SPDX-License-Identifier: BSD-3-Clause
/// What `headway watch` shows of a run for one interval, and its line of JSON.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <headway/report/statistics.hpp>
#include <optional>
#include <record/record.hpp>
#include <string>
#include <vector>

namespace headway::tools {

/// Between two answers of a PE, by its clock.
struct Rates {
  double messages_per_s = 0, handled_per_s = 0, frames_per_s = 0;
  std::optional<double> fill;  // messages per frame, forwarded ones included; empty without frames
};

/// Empty if there is no time between the answers, or another run began.
std::optional<Rates> rates_between(const report::PeStatistics& before, const report::PeStatistics& after);

struct WatchedPe {
  std::size_t pe = 0;
  std::string host;  // with --hosts
  pid_t pid = 0;     // 0: unknown
  std::string state;
  std::optional<Rates> rates;                           // empty: the PE has not answered in this interval
  std::optional<double> waiting, handling;              // shares of the samples; empty in a simulated run
  std::uint64_t messages = 0, handled = 0, frames = 0;  // since the run began
  std::uint64_t buffer_bytes = 0, memory_bytes = 0, budget_bytes = 0, spill_bytes = 0, spilled_frames = 0;
  std::optional<std::uint64_t> resident_bytes;  // of its process
};

struct View {
  std::string program;
  double seconds = 0;  // since the watch began
  bool simulated = false;
  std::vector<WatchedPe> pes;  // by number
};

/// The sums of a view. Its processes count once.
struct Sums {
  Rates rates;
  std::size_t answered = 0;  // PEs
  std::optional<double> waiting, handling;
  std::uint64_t buffer_bytes = 0, memory_bytes = 0, budget_bytes = 0, spill_bytes = 0, spilled_frames = 0,
                resident_bytes = 0;
};
Sums sums_of(const View& view);

bench::Json to_json(const View& view);
/// Throws SettingError if the text is no view.
View view_of_json(const std::string& text);

}  // namespace headway::tools
