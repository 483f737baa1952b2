// SPDX-License-Identifier: BSD-3-Clause
/// Reads the files of a traced run.
#pragma once

#include <headway/model/trace/record.hpp>
#include <string>
#include <vector>

namespace headway::model::trace {

/// Of one PE. Kinds that this version does not know are left out; times ascend.
struct PeTrace {
  Header header{};
  std::vector<Record> records;
};

/// One file. SystemError with one line that names the file and the reason: it cannot be read, is of another kind
/// or version, is cut off, has a number out of its range, or the run did not come to its end.
PeTrace read_trace(const std::string& path);

}  // namespace headway::model::trace
