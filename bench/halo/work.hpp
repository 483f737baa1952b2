// SPDX-License-Identifier: BSD-3-Clause
/// Shared by headway-halo and its peers: the work as options, and its fields in records.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <record/command_line.hpp>
#include <record/record.hpp>
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
                               halo_exchanges_max = std::uint64_t(1) << 32;

inline std::vector<std::string> halo_case_names() {
  std::vector<std::string> names;
  for (const HaloCase& one : halo_cases) {
    if (one.name != "plan") names.push_back(one.name);
  }
  return names;
}

struct HaloWork {
  std::string name = halo_cases.front().name;
  std::size_t elements = 0, fields = 0, bytes = 0;  // 0: the case's
  std::size_t width = 1, points = 27;               // of grid27 and blocks
  std::string application = halo_applications.front();
  std::string plan;             // a file
  std::uint64_t exchanges = 0;  // 0: by size
  std::uint64_t seed = 1;
  bool corrupt = false;

  /// Takes the case's sizes where no option states them. Throws SettingError where options do not fit together.
  void complete() {
    if (!plan.empty()) name = "plan";
    const HaloCase& chosen = *std::ranges::find(halo_cases, name, &HaloCase::name);
    if (elements != 0 && chosen.elements == 0)
      throw SettingError(fmt::format("--elements: not an option of case {}, which has its own numbers", name));
    if (elements == 0) elements = chosen.elements;
    if (fields == 0) fields = chosen.fields;
    if (bytes == 0) bytes = name == "recorded" && application == "cabana" ? 88 : chosen.bytes;
    const auto n = double(elements), side = n + 2 * double(width);
    check_bytes(name == "row"         ? 4 * n
                : name == "random"    ? 12 * n
                : name == "particles" ? 2 * n
                : name == "grid27"    ? side * side * side
                : name == "blocks"    ? 64 * side * side * side
                                      : 0);
    const bool is_grid = name == "grid27" || name == "blocks";
    if (is_grid && width > elements) {
      throw SettingError(
          fmt::format("--width: '{}' is not allowed; allowed is 1 to {}, the cells of a side", width, elements));
    }
  }
  /// Throws SettingError if arrays of so many elements are too large.
  void check_bytes(double array_elements) const {
    const double all = array_elements * double(fields) * double(bytes);
    if (all <= halo_array_bytes_max) return;
    throw SettingError(fmt::format("--elements: the arrays of a PE would have {:.0f} bytes; allowed are {:.0f}", all,
                                   halo_array_bytes_max));
  }
};

inline void add_halo_options(CLI::App& app, HaloWork& work, const std::string& of = "") {
  const auto add = [&](const char* name, const char* value, const std::string& help,
                       std::function<void(const std::string&)> store) {
    add_value(app, name, std::move(store), value, of + help);
  };
  add("--case", "NAME", fmt::format("{} [row]", fmt::join(halo_case_names(), ", ")),
      [&](const std::string& t) { work.name = parse_choice("--case", t, halo_case_names()); });
  // A program that has the option for another benchmark passes its value on.
  if (app.get_option_no_throw("--elements") == nullptr)
    add("--elements", "N",
        "row, random: elements for each partner; grid27, blocks: cells along a side; particles: of a PE [by case]",
        [&](const std::string& t) { work.elements = parse_count("--elements", t, 1, halo_elements_max); });
  add("--fields", "N", "arrays in one exchange [blocks 4, others 1]",
      [&](const std::string& t) { work.fields = parse_count("--fields", t, 1, halo_fields_max); });
  add("--element-bytes", "N", "bytes of an element: 4, 8, 16, 24, 88 [particles 88, others 8]",
      [&](const std::string& t) { work.bytes = std::stoul(parse_choice("--element-bytes", t, halo_element_bytes)); });
  add("--width", "N", "grid27, blocks: layers of ghost cells [1]",
      [&](const std::string& t) { work.width = parse_count("--width", t, 1, halo_width_max); });
  add("--points", "N", "grid27, blocks: 27 or 7 cells that an update reads [27]", [&](const std::string& t) {
    work.points = std::stoul(parse_choice("--points", t, std::vector<std::string>{"27", "7"}));
  });
  add("--application", "NAME", fmt::format("recorded: {} [clamr]", fmt::join(halo_applications, ", ")),
      [&](const std::string& t) { work.application = parse_choice("--application", t, halo_applications); });
  add("--plan", "FILE", "the plan in this file, instead of a case", [&](const std::string& t) { work.plan = t; });
  add("--exchanges", "N", "how many are measured [by size]",
      [&](const std::string& t) { work.exchanges = parse_count("--exchanges", t, 1, halo_exchanges_max); });
  app.add_flag("--corrupt", work.corrupt, of + "change one received byte before the check, which must report it");
}

/// "grid27, 32 elements, 4 fields of 8 bytes".
inline std::string halo_title(const HaloWork& work) {
  std::string text = work.name == "recorded" ? "recorded " + work.application : work.name;
  if (work.elements != 0) text += ", " + base::counted(work.elements, "element");
  return text + fmt::format(", {} of {}", base::counted(work.fields, "field"), base::counted(work.bytes, "byte"));
}

}  // namespace headway::bench
