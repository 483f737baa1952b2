// SPDX-License-Identifier: BSD-3-Clause
/// Patterns of communication in what an MPI program counted, and what Headway offers for each.
#pragma once

#include <optional>
#include <record/record.hpp>
#include <string>
#include <vector>

#include "mpi_counts.hpp"

namespace headway::tools {

struct MpiPattern {
  std::string name;            // "regular halo", ...
  std::optional<bool> stable;  // the same lists of messages in each step; empty where there are no steps
  std::string evidence;        // figures, for people
  std::string advice;          // what Headway would change
  bench::Json figures;         // the same figures, by name
};

/// The patterns of the world, point to point first. `ranks_per_host`: as if the ranks were on hosts of that many each;
/// 0: on those where they ran.
std::vector<MpiPattern> patterns_of(const MpiWorld& world, const MpiTotals& totals, std::size_t ranks_per_host = 0);

/// "1/7", "1/2.5", "1" of two numbers of messages.
std::string fraction_text(std::uint64_t part, std::uint64_t whole);

}  // namespace headway::tools
