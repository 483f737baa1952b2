// SPDX-License-Identifier: BSD-3-Clause
/// The benchmarks that `headway bench` knows, and what sets them apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headway::tools {

/// The mode that is no topology, and the benchmark that has no modes: headway-limit's.
inline constexpr const char* limit_mode = "limit";
/// `limit-N` is the same with rings of N buffers alone.
inline constexpr const char* limit_of_buffers = "limit-";
/// `limit-mapped` and so on are the loops that zerocopy is held against; `limit` stands for all of them there.
inline const std::vector<std::string> trip_limits = {"limit-mapped", "limit-pieces", "limit-cma"};
inline bool is_limit(std::string_view mode) { return mode == limit_mode || mode.starts_with(limit_of_buffers); }

/// An option of applications. Their programs and their peers get it unchanged, and check its value.
struct WorkOption {
  std::string name, value, help;  // no value: a flag
};
const std::vector<WorkOption>& work_options();

struct Benchmark {
  std::string name;  // its program is headway-NAME
  std::string help;
  std::vector<std::string> peers = {};                // what does the same work without Headway
  std::vector<std::string> modes = {"direct", "1d"};  // those where --mode says nothing
  std::vector<std::string> ways = {};                 // of --way, all of them cases where it says nothing
  std::vector<std::string> memories = {};             // of --memory, all of them cases where it says nothing
  std::vector<std::string> options = {};              // those of work_options() that it takes
  bool has_table = false;                             // takes --log2
  bool has_updates = false;                           // takes --updates-per-word
  bool has_gathers = false;                           // takes --gathers and --messages-only
  bool has_ways = false;                              // takes --way
  bool has_sizes = false;                             // takes --bytes
  bool has_types = false;                             // takes --type
  bool has_buffers = false;                           // takes --buffers and --touch
  bool has_limit = true;                              // takes --mode limit
  bool sends_ranges = false;                          // takes --one-by-one
  bool has_messages = false;                          // takes --osu; needs two PEs
  bool has_skew = false;                              // takes --measure, --call, --skew-us and so on
  bool has_elements = false;                          // takes --elements
  bool has_memory = false;                            // takes --memory
  bool has_cases = false;                             // takes --case, --fields, --element-bytes, --plan and so on
  bool takes_modes = true;                            // takes --mode
  std::vector<std::string> own_modes = {};            // all that --mode takes; empty: topologies and limits
  bool on_elements = false;                           // takes --balance and --balance-every
  bool pairs = false;                                 // needs an even number of PEs
  std::string bytes = "8";                            // the size of a message where --bytes says nothing
  std::uint64_t bytes_min = 0;
  bool has_count = true;       // takes --messages
  bool has_modes = true;       // runs on Headway, so takes --peer
  bool has_aggregator = true;  // takes the aggregator's options
};

/// All, as they are listed.
const std::vector<Benchmark>& benchmarks();

/// One of them; there must be one of that name.
const Benchmark& benchmark(std::string_view name);

/// The names of those for which `has` is true.
std::vector<std::string> names_of(bool Benchmark::*has);
/// The names of those that take one of work_options().
std::vector<std::string> names_with(const std::string& option);
std::vector<std::string> all_names();

}  // namespace headway::tools
