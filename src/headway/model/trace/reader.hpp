// SPDX-License-Identifier: BSD-3-Clause
/// Reads the files of a traced run.
#pragma once

#include <cstdint>
#include <headway/model/trace/record.hpp>
#include <string>
#include <vector>

namespace headway::model::trace {

/// Of one PE. Kinds that this version does not know are left out; times ascend.
struct PeTrace {
  Header header{};
  std::vector<NameEntry> names;
  std::vector<Record> records;  // the first is `begin`, unless some are lost
  std::uint64_t lost = 0;       // older ones, which the ring had no place for
  bool ended = false;           // the last record is `end`

  /// The name, or one made of the number if the table has none: `phase 7`.
  std::string name_of(NameKind kind, std::uint32_t number) const;
};

/// Traces that a caller accepts, beside whole ones of runs that ended.
struct ReadOptions {
  bool may_be_unended = false;
  bool may_lose_records = false;
  /// Records that the PE of a run that goes on makes after so many are left out.
  std::uint64_t written_max = UINT64_MAX;
};

/// One file. SystemError with one line that names the file and the reason: it cannot be read, is of another kind
/// or version, is cut off, has a number out of its range, or is one that the options do not allow.
PeTrace read_trace(const std::string& path, const ReadOptions& options = {});

}  // namespace headway::model::trace
