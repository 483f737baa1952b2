/// The table of one comparison, for people.
#pragma once

#include <record/record.hpp>
#include <string>
#include <vector>

namespace headway::tools {

struct MeasuredCase {
  std::string label;
  bool peer = false;
  bench::Json record;
};

/// A title line, a head, a line per case; columns aligned, units in the head.
std::string table_of(const std::string& bench, const std::string& title, const std::vector<MeasuredCase>& cases);

/// Rows of cells as lines: the first column to the left, all others to the right. The first row is the head.
std::string align(const std::vector<std::vector<std::string>>& rows);

}  // namespace headway::tools
