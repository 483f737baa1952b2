// SPDX-License-Identifier: BSD-3-Clause
/// Shared by headway-halo and its peers: the work as options, and its fields in records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <record/command_line.hpp>
#include <string>
#include <vector>

namespace headway::bench {

/// A kind of plan, with the sizes that it has where no option states them.
struct HaloCase {
  std::string name;
  std::size_t elements;  // 0: the case does not take --elements
  std::size_t fields, bytes;
};

/// Of all fields of a PE; MPI counts bytes by int.
inline constexpr double halo_array_bytes_max = 2147483647;

/// `plan` stands for --plan FILE.
inline const std::vector<HaloCase> halo_cases = {
    {"row", 2048, 1, 8},          {"random", 4096, 1, 8}, {"grid27", 32, 1, 8}, {"blocks", 8, 4, 8},
    {"particles", 10'000, 1, 88}, {"recorded", 0, 1, 8},  {"plan", 0, 1, 8}};
inline const std::vector<std::string> halo_applications = {"clamr", "clamr-1", "cabana", "xrage"};
inline constexpr const char* halo_mode = "halo";
inline const std::vector<std::string> halo_modes = {halo_mode, "pack"};
inline const std::vector<std::string> halo_memories = {"heap", "field"};
inline const std::vector<std::string> halo_element_bytes = {"4", "8", "16", "24", "88"};
inline constexpr std::uint64_t halo_elements_max = 1 << 20, halo_fields_max = 64, halo_width_max = 64,
                               halo_exchanges_max = std::uint64_t(1) << 32, halo_compute_us_max = 1'000'000;

std::vector<std::string> halo_case_names();

struct HaloWork {
  std::string name = halo_cases.front().name;
  std::size_t elements = 0, fields = 0, bytes = 0;  // 0: the case's
  std::size_t width = 1, points = 27;               // of grid27 and blocks
  std::string application = halo_applications.front();
  std::string plan;             // a file
  std::uint64_t exchanges = 0;  // 0: by size
  std::uint64_t compute_us = 0;
  std::uint64_t seed = 1;
  bool corrupt = false;

  /// Takes the case's sizes where no option states them. Throws SettingError where options do not fit together.
  void complete();
  /// Throws SettingError if arrays of so many elements are too large.
  void check_bytes(double array_elements) const;
};

/// `of` precedes each help text. A program that has --elements for another benchmark passes its value on.
void add_halo_options(CommandLine& app, HaloWork& work, const std::string& of = "");

/// "grid27, 32 elements, 4 fields of 8 bytes".
std::string halo_title(const HaloWork& work);

}  // namespace headway::bench
