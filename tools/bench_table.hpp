// SPDX-License-Identifier: BSD-3-Clause
/// The table of one comparison, for people.
#pragma once

#include <record/record.hpp>
#include <string>
#include <vector>

namespace headway::tools {

struct MeasuredCase {
  std::string label;
  bench::Json record;
};

/// A title line, a head, a line per case; columns aligned, units in the head.
std::string table_of(const std::string& bench, const std::string& title, const std::vector<MeasuredCase>& cases);

/// The same for what `headway bench limit` measures, each case in its unit and with the formulation that won.
std::string limit_table_of(const std::string& title, const std::vector<MeasuredCase>& cases);

/// For each label a block of two columns, size and value, over all groups, as the OSU micro-benchmarks print: latency
/// in us where the records have one, else MB/s (10^6 bytes) of all PEs together. A comment says which and, where it is
/// so, that a result is wrong.
std::string osu_blocks(const std::string& bench, const std::vector<MeasuredCase>& cases);

/// Rows of cells as lines: the first column to the left, all others to the right. The first row is the head.
std::string align(const std::vector<std::vector<std::string>>& rows);

}  // namespace headway::tools
