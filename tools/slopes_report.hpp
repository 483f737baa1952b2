// SPDX-License-Identifier: BSD-3-Clause
/// Tables and records of `headway slopes`.
#pragma once

#include <headway/model/trace/slopes.hpp>
#include <optional>
#include <record/record.hpp>
#include <string>
#include <vector>

namespace headway::tools {

struct Slope {
  const model::trace::Parameter* parameter;
  double count = 0;                                           // on the longest path
  std::optional<double> critical, one_percent, five_percent;  // in ns, or ns a byte
};

struct DialledTime {
  std::string dials;
  double predicted_seconds = 0;
  model::trace::Path path;  // with these dials
  std::optional<double> measured_seconds = {};
};

struct Slopes {
  std::vector<std::string> command;  // or the folder alone
  std::string transport, dials;      // of the traced run
  std::size_t pes = 0, frames = 0, forced = 0;
  bool simulated = false;
  double traced_seconds = 0, replayed_seconds = 0;
  model::trace::Path path;
  std::vector<Slope> slopes;
  std::vector<DialledTime> dialled;
};

std::string to_text(const Slopes& slopes);
bench::Json to_json(const Slopes& slopes);

}  // namespace headway::tools
