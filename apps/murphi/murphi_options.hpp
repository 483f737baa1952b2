// SPDX-License-Identifier: BSD-3-Clause
/// The options of headway-murphi, and the functions that check one of its models each.
#pragma once

#include <cstdint>
#include <headway/headway.hpp>
#include <string>

namespace headway::murphi {

struct Arguments {
  std::string model = "peterson";
  std::string search;   // empty: levels with a bug, else free
  std::uint64_t n = 0;  // 0: of the model
  bool bug = false;
  std::uint64_t states_max = 0, memory_bytes = 0;  // of a PE; 0: by the memory of this host
  std::uint64_t serial_states_max = 100'000;       // compare with one processor up to so many
  bool checks = true;                              // once more all successors
  std::uint64_t spoil = 0;
  double work_us = 0;
  AggregatorOptions aggregation;
  std::string json;  // a file, "-", or empty for a line on standard output
};

/// The values of n that a model allows.
struct ModelSize {
  const char* name;
  const char* what;
  std::uint64_t min, max, usual;
};
inline constexpr ModelSize model_sizes[] = {{"peterson", "processes", 2, 6, 5},
                                            {"german", "nodes", 2, 4, 4},
                                            {"directory", "clusters", 2, 4, 3},
                                            {"mcs", "processes", 2, 4, 4},
                                            {"mcs-swap", "processes", 2, 3, 3}};

// Collective. The status to end with.
int check_peterson(Pe& pe, const Arguments& arguments);
int check_german(Pe& pe, const Arguments& arguments);
int check_directory(Pe& pe, const Arguments& arguments);
int check_mcs(Pe& pe, const Arguments& arguments);

}  // namespace headway::murphi
