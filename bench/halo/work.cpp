// SPDX-License-Identifier: BSD-3-Clause
#include "work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <utility>

namespace headway::bench {

std::vector<std::string> halo_case_names() {
  std::vector<std::string> names;
  for (const HaloCase& one : halo_cases) {
    if (one.name != "plan") names.push_back(one.name);
  }
  return names;
}

void HaloWork::complete() {
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

void HaloWork::check_bytes(double array_elements) const {
  const double all = array_elements * double(fields) * double(bytes);
  if (all <= halo_array_bytes_max) return;
  throw SettingError(fmt::format("--elements: the arrays of a PE would have {:.0f} bytes; allowed are {:.0f}", all,
                                 halo_array_bytes_max));
}

void add_halo_options(CommandLine& app, HaloWork& work, const std::string& of) {
  static const std::vector<std::string> points = {"27", "7"};
  const auto add = [&](const char* name, const char* value, const std::string& help, CommandLine::Store store) {
    app.add_value(name, value, of + help, std::move(store));
  };
  add("--case", "NAME", fmt::format("{} [row]", fmt::join(halo_case_names(), ", ")),
      [&](const std::string& t) { work.name = parse_choice("--case", t, halo_case_names()); });
  if (!app.takes_value("--elements")) {
    app.add_count("--elements", "N",
                  of + "row, random: elements for each partner; grid27, blocks: cells along a side; particles: of a PE "
                       "[by case]",
                  work.elements, 1, halo_elements_max);
  }
  app.add_count("--fields", "N", of + "arrays in one exchange [blocks 4, others 1]", work.fields, 1, halo_fields_max);
  add("--element-bytes", "N", "bytes of an element: 4, 8, 16, 24, 88 [particles 88, others 8]",
      [&](const std::string& t) { work.bytes = std::stoul(parse_choice("--element-bytes", t, halo_element_bytes)); });
  app.add_count("--width", "N", of + "grid27, blocks: layers of ghost cells [1]", work.width, 1, halo_width_max);
  add("--points", "N", "grid27, blocks: 27 or 7 cells that an update reads [27]",
      [&](const std::string& t) { work.points = std::stoul(parse_choice("--points", t, points)); });
  app.add_choice("--application", "NAME", of + fmt::format("recorded: {} [clamr]", fmt::join(halo_applications, ", ")),
                 work.application, halo_applications);
  app.add_text("--plan", "FILE", of + "the plan in this file, instead of a case", work.plan);
  app.add_count("--exchanges", "N", of + "how many are measured [by size]", work.exchanges, 1, halo_exchanges_max);
  app.add_count("--compute-us", "N",
                of + "computation of so many us while each exchange is under way; before it where a peer cannot [0]",
                work.compute_us, 1, halo_compute_us_max);
  app.add_flag("--corrupt", of + "change one received byte before the check, which must report it", work.corrupt);
}

std::string halo_title(const HaloWork& work) {
  std::string text = work.name == "recorded" ? "recorded " + work.application : work.name;
  if (work.elements != 0) text += ", " + base::counted(work.elements, "element");
  return text + fmt::format(", {} of {}", base::counted(work.fields, "field"), base::counted(work.bytes, "byte"));
}

}  // namespace headway::bench
