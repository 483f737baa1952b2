// SPDX-License-Identifier: BSD-3-Clause
/// The report on one MPI_COMM_WORLD, as text and as a record.
#pragma once

#include <record/record.hpp>
#include <string>
#include <vector>

#include "mpi_counts.hpp"
#include "mpi_patterns.hpp"

namespace headway::tools {

std::string to_text(const MpiTotals& totals, const std::vector<MpiPattern>& patterns);
bench::Json to_json(const MpiWorld& world, const MpiTotals& totals, const std::vector<MpiPattern>& patterns);

}  // namespace headway::tools
