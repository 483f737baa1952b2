// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/transport/probed_costs.hpp>
#include <iterator>
#include <locale>
#include <sstream>
#include <string_view>
#include <system_error>

namespace headway::transport {
namespace {

constexpr std::string_view first_line = "headway costs 1";
constexpr std::array<std::string_view, 4> names = {"thread", "process", "process_apart", "host"};
// `headway probe` says of results beyond it that the machine changed its speed.
constexpr double spread_max = 2;
constexpr const char* cure = "run `headway probe --save`, or set HEADWAY_COSTS=default";

std::string absolute_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

bool is_time(double ns) { return ns >= 0 && ns <= 1e9; }

bool is_sound(const ProbedPair& pair) {
  return std::ranges::find(names, pair.name) != names.end() && pair.costs.overhead_ns > 0 &&
         is_time(pair.costs.overhead_ns) && is_time(pair.costs.gap_per_byte_ns) && is_time(pair.costs.latency_ns) &&
         is_time(pair.line_ns_least) && is_time(pair.line_ns_most) && pair.line_ns_least <= pair.line_ns_most;
}

}  // namespace

std::string probe_directory() {
  if (const std::string given = absolute_variable("XDG_CACHE_HOME"); !given.empty()) return given + "/headway";
  const std::string home = absolute_variable("HOME");
  return home.empty() ? "" : home + "/.cache/headway";
}

std::string probe_file_prefix() {
  utsname system{};
  ::uname(&system);
  std::string name =
      fmt::format("probe-{}-{}-{}-{}-", system.nodename, HEADWAY_VERSION, HEADWAY_COMPILER, HEADWAY_BUILD_TYPE);
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == ' '; }, '_');
  return name;
}

std::string probed_costs_path(const std::string& transport) {
  const std::string directory = probe_directory();
  if (directory.empty()) {
    throw SettingError(
        "HEADWAY_COSTS=probed: neither XDG_CACHE_HOME nor HOME is an absolute path, so there are no kept results; "
        "allowed here is default");
  }
  return fmt::format("{}/{}{}.costs", directory, probe_file_prefix(), transport);
}

std::string to_text(const std::vector<ProbedPair>& pairs) {
  std::string text = fmt::format("{}\n", first_line);
  for (const ProbedPair& pair : pairs) {
    text += fmt::format("{} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g}\n", pair.name, pair.costs.overhead_ns,
                        pair.costs.gap_per_byte_ns, pair.costs.latency_ns, pair.line_ns_least, pair.line_ns_most);
  }
  return text;
}

std::vector<ProbedPair> read_probed_costs(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  std::vector<ProbedPair> pairs;
  bool good = line == first_line;
  while (good && std::getline(lines, line)) {
    std::istringstream words(line);
    words.imbue(std::locale::classic());
    ProbedPair& pair = pairs.emplace_back();
    words >> pair.name >> pair.costs.overhead_ns >> pair.costs.gap_per_byte_ns >> pair.costs.latency_ns >>
        pair.line_ns_least >> pair.line_ns_most;
    good = !words.fail() && (words >> std::ws).eof() && is_sound(pair);
  }
  if (good) return pairs;
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  throw SettingError(fmt::format("'{}' is no line of kept costs", line.substr(0, 100)));
}

ChosenCosts probed_costs(const std::string& transport, const std::string& pair) {
  const std::string path = probed_costs_path(transport);
  const auto refuse = [&](const std::string& why) {
    throw SettingError(fmt::format("HEADWAY_COSTS=probed: {}: {}: {}", path, why, cure));
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(fmt::format("it cannot be read ({})", std::generic_category().message(errno)));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<ProbedPair> pairs;
  try {
    pairs = read_probed_costs(text);
  } catch (const SettingError& error) {
    refuse(error.what());
  }
  auto found = std::ranges::find(pairs, pair + "_apart", &ProbedPair::name);
  if (found == pairs.end()) found = std::ranges::find(pairs, pair, &ProbedPair::name);
  if (found == pairs.end()) refuse(fmt::format("it has no results of the pair {}", pair));
  if (found->line_ns_most <= spread_max * found->line_ns_least) return {found->costs, ""};
  return {{},
          fmt::format("HEADWAY_COSTS=probed: the results in {} are not used: a cache line took {:.3g} to {:.3g} ns, so "
                      "the machine changed its speed while they were measured; {}",
                      path, found->line_ns_least, found->line_ns_most, cure)};
}

}  // namespace headway::transport
