// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <headway/base/bytes.hpp>
#include <headway/base/costs_setting.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/counts_setting.hpp>
#include <headway/base/dial_settings.hpp>
#include <headway/base/error.hpp>
#include <headway/base/given_settings.hpp>
#include <headway/base/machine.hpp>
#include <headway/base/settings.hpp>
#include <headway/base/topology_text.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace headway::base {
namespace {

constexpr std::array variables = {"HEADWAY_PES",       "HEADWAY_PES_PER_PROCESS", "HEADWAY_TRANSPORT",
                                  "HEADWAY_SHARE",     "HEADWAY_BUDGET",          "HEADWAY_SPILL",
                                  "HEADWAY_BIND",      "HEADWAY_STALL",           "HEADWAY_SEED",
                                  "HEADWAY_SIM",       "HEADWAY_BUFFER_BYTES",    "HEADWAY_TOPOLOGY",
                                  "HEADWAY_THRESHOLD", "HEADWAY_CUTOFF",          "HEADWAY_TIMEOUT",
                                  "HEADWAY_TRANSFER",  "HEADWAY_CHECK",           "HEADWAY_COLLECTIVES",
                                  "HEADWAY_PROGRESS",  "HEADWAY_TEST_SIZES",      "HEADWAY_DIAL",
                                  "HEADWAY_COUNTS",    "HEADWAY_COSTS",           "HEADWAY_TRACE"};

constexpr std::pair<std::string_view, Progress> progress_names[] = {{"polling", Progress::polling},
                                                                    {"helper", Progress::helper},
                                                                    {"both", Progress::both},
                                                                    {"thread", Progress::thread}};

constexpr const char* transports =
    has_simulation
        ? "local, sim, mpi, openmpi, mpich, mpi-abi or ucx"
        : "local, mpi, openmpi, mpich, mpi-abi or ucx (for sim this build needs Boost.Context when it is built)";

/// Replaces control characters, so that the text stays on one line.
std::string printable(std::string_view text) {
  std::string line(text);
  for (char& c : line) c = static_cast<unsigned char>(c) < ' ' ? '?' : c;
  return line;
}

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view allowed) {
  throw SettingError(fmt::format("{}={}: allowed is {}", name, printable(value), allowed));
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::size_t count_variable(const char* name, std::size_t fallback, std::size_t max) {
  const auto text = variable(name);
  if (!text) return fallback;
  const auto number = parse_number<std::size_t>(*text);
  if (!number || *number < 1 || *number > max) refuse(name, *text, fmt::format("a whole number from 1 to {}", max));
  return *number;
}

std::uint64_t seed_variable() {
  const auto text = variable("HEADWAY_SEED");
  if (!text) return 1;
  const auto number = parse_number<std::uint64_t>(*text);
  if (!number) refuse("HEADWAY_SEED", *text, "a whole number from 0 to 2^64-1");
  return *number;
}

/// A number from 0 to 1.
std::optional<double> fraction_variable(const char* name) {
  const auto text = variable(name);
  if (!text) return std::nullopt;
  const auto number = parse_number<double>(*text);
  if (!number || !(*number >= 0 && *number <= 1)) refuse(name, *text, "a number from 0 to 1");
  return number;
}

/// "30s", "500ms", "2min" or a bare number of seconds.
std::chrono::nanoseconds parse_duration(const char* name, const std::string& text,
                                        const char* allowed = "a time such as 30s, 500ms or 2min, or 0 for never") {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size());
  double scale = 0;
  if (unit.empty() || unit == "s") scale = 1e9;
  if (unit == "ms") scale = 1e6;
  if (unit == "us") scale = 1e3;
  if (unit == "min") scale = 60e9;
  if (error != std::errc() || scale == 0 || !(number >= 0) || number * scale > 1e18) {
    refuse(name, text, allowed);
  }
  return std::chrono::nanoseconds(std::int64_t(std::ceil(number * scale)));  // only 0 itself is 0
}

/// A variable of build systems with a path, such as HEADWAY_ROOT.
bool is_place(std::string_view name) {
  return name.ends_with("_ROOT") || name.ends_with("_DIR") || name.ends_with("_HOME");
}

void refuse_unknown_variables() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("HEADWAY_")) continue;
    const auto equals = text.find('=');
    const std::string_view name = text.substr(0, equals), value = equals == text.npos ? "" : text.substr(equals + 1);
    if (is_place(name)) continue;
    if (name == launch_variable || name == meeting_variable || std::ranges::find(variables, name) != variables.end())
      continue;
    throw SettingError(fmt::format("{}={}: there is no such setting; allowed are {}", printable(name), printable(value),
                                   fmt::join(variables, ", ")));
  }
}

/// Sets the transport, and under a launcher the number of PEs.
void settle_transport(Settings& settings, Launchers launchers) {
  const auto text = variable("HEADWAY_TRANSPORT");
  const auto launcher = launchers == Launchers::recognised ? Launcher::from_environment() : std::nullopt;
  settings.transport_given = text.has_value();
  if (text) {
    settings.transport = *text;
    if (*text != "local" && !settings.on_wire() && !(has_simulation && *text == "sim")) {
      refuse("HEADWAY_TRANSPORT", *text, transports);
    }
  } else if (launcher && (launcher->size > 1 || !variable("HEADWAY_PES"))) {
    settings.transport = "mpi";
  }
  if (!settings.on_wire()) return;
  settings.launcher = launcher;
  if (settings.starts_wire()) return;
  const std::size_t processes = launcher ? launcher->size : 1, most = processes * settings.pes_per_process;
  if (most > pes_max) {
    throw SettingError(fmt::format("{} of {} each (HEADWAY_PES_PER_PROCESS) {} more than the {} PEs of the largest run",
                                   counted(processes, "process"), counted(settings.pes_per_process, "PE"),
                                   by_number(processes, "is", "are"), pes_max));
  }
  if (const auto given = variable("HEADWAY_PES"); given && settings.processes() != processes) {
    refuse("HEADWAY_PES", *given,
           fmt::format("{} here: {} has started {}, of {} each (HEADWAY_PES_PER_PROCESS)", most,
                       launcher ? launcher->name : "no launcher", counted(processes, "process"),
                       counted(settings.pes_per_process, "PE")));
  } else if (!given) {
    settings.pes = most;
  }
}

std::size_t derived_budget(std::size_t pes) {
  // A quarter of the memory for all frames of all PEs, at most 16 MiB a PE: beyond that buffers only cost cache.
  const std::size_t share = available_memory_bytes() / 4 / pes;
  return std::clamp<std::size_t>(std::bit_floor(std::max<std::size_t>(share, 1)), budget_bytes_min, 16_MiB);
}

}  // namespace

std::uint64_t parse_bytes(std::string_view what, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  double scale = 0;
  if (unit.empty() || unit == "B") scale = 1;
  if (!unit.empty() && (unit.size() == 1 || unit.substr(1) == "iB" || unit.substr(1) == "B")) {
    switch (unit[0]) {
      case 'k':
      case 'K': scale = 0x1p10; break;
      case 'm':
      case 'M': scale = 0x1p20; break;
      case 'g':
      case 'G': scale = 0x1p30; break;
      case 't':
      case 'T': scale = 0x1p40; break;
      default: break;
    }
  }
  if (error != std::errc() || scale == 0 || !(number >= 0) || number * scale >= 0x1p63) {
    refuse(what, text, "a size such as 4096, 16K or 64M");
  }
  return std::uint64_t(number * scale);
}

std::string format_bytes(std::uint64_t bytes) {
  for (const auto& [unit, shift] : {std::pair("GiB", 30), std::pair("MiB", 20), std::pair("KiB", 10)}) {
    const bool in_few = bytes >> shift >= 1 && bytes >> shift < 10'240;
    if (in_few && bytes % (1ull << shift) == 0) return fmt::format("{} {}", bytes >> shift, unit);
  }
  if (bytes >= 10ull << 30) return fmt::format("{:.1f} GiB", double(bytes) / 0x1p30);
  if (bytes >= 10ull << 20) return fmt::format("{:.1f} MiB", double(bytes) / 0x1p20);
  return fmt::format("{} B", bytes);
}

AggregationSettings AggregationSettings::from_environment() {
  AggregationSettings settings;
  if (const auto text = variable("HEADWAY_BUFFER_BYTES")) {
    settings.buffer_bytes = parse_bytes("HEADWAY_BUFFER_BYTES", *text);
    if (*settings.buffer_bytes < buffer_bytes_min || *settings.buffer_bytes > buffer_bytes_max) {
      refuse("HEADWAY_BUFFER_BYTES", *text,
             fmt::format("{} to {}", format_bytes(buffer_bytes_min), format_bytes(buffer_bytes_max)));
    }
  }
  settings.topology = variable("HEADWAY_TOPOLOGY");
  if (settings.topology && !read_topology(*settings.topology)) {
    refuse("HEADWAY_TOPOLOGY", *settings.topology, topologies_allowed);
  }
  settings.threshold = fraction_variable("HEADWAY_THRESHOLD");
  settings.cutoff = fraction_variable("HEADWAY_CUTOFF");
  if (const auto text = variable("HEADWAY_TIMEOUT")) {
    settings.timeout = *text == "none"
                           ? std::chrono::nanoseconds::max()
                           : parse_duration("HEADWAY_TIMEOUT", *text, "a time such as 100us or 1ms, or none");
  }
  return settings;
}

namespace {

/// Dials delay frames, and traces have frames alone: with them all data between PEs is in frames.
const char* needs_frames() {
  if (variable("HEADWAY_DIAL")) return "HEADWAY_DIAL, which delays";
  return variable("HEADWAY_TRACE") ? "HEADWAY_TRACE, which records" : nullptr;
}

}  // namespace

TransferSettings TransferSettings::from_environment() {
  TransferSettings settings;
  if (const auto text = variable("HEADWAY_TRANSFER")) {
    constexpr std::array paths = {std::pair("auto", TransferPath::fastest), std::pair("mapped", TransferPath::mapped),
                                  std::pair("cma", TransferPath::cma), std::pair("network", TransferPath::network),
                                  std::pair("frames", TransferPath::frames)};
    const auto path = std::ranges::find(paths, *text, [](const auto& named) { return std::string_view(named.first); });
    if (path == paths.end()) refuse("HEADWAY_TRANSFER", *text, "auto, mapped, cma, network or frames");
    settings.path = path->second;
    if (needs_frames() && path->second != TransferPath::fastest && path->second != TransferPath::frames) {
      refuse("HEADWAY_TRANSFER", *text, fmt::format("auto or frames with {} content in frames alone", needs_frames()));
    }
  }
  if (needs_frames()) settings.path = TransferPath::frames;
  if (const auto text = variable("HEADWAY_CHECK")) {
    if (*text != "on" && *text != "off") refuse("HEADWAY_CHECK", *text, "on or off");
    settings.check = *text == "on";
  }
  return settings;
}

std::optional<DialSettings> DialSettings::from_environment() {
  const auto text = variable("HEADWAY_DIAL");
  if (!text) return std::nullopt;
  DialSettings settings = parse("HEADWAY_DIAL", *text);
  settings.seed = seed_variable();
  return settings;
}

std::string counts_file() {
  const auto text = variable("HEADWAY_COUNTS");
  if (text && text->empty()) refuse("HEADWAY_COUNTS", *text, "the name of a file, which the run writes");
  return text.value_or("");
}

std::string trace_folder() {
  const auto text = variable("HEADWAY_TRACE");
  if (text && text->empty()) refuse("HEADWAY_TRACE", *text, "the name of a folder, to which the run writes");
  return text.value_or("");
}

bool wants_probed_costs() {
  const auto text = variable("HEADWAY_COSTS");
  if (text && *text != "default" && *text != "probed") refuse("HEADWAY_COSTS", *text, "default or probed");
  return text && *text == "probed";
}

CollectiveStrategy collective_strategy_from_environment() {
  const auto text = variable("HEADWAY_COLLECTIVES");
  if (!text || *text == "auto") return needs_frames() ? CollectiveStrategy::messages : CollectiveStrategy::best;
  if (*text == "messages") return CollectiveStrategy::messages;
  if (*text == "shared" && needs_frames()) {
    refuse("HEADWAY_COLLECTIVES", *text, fmt::format("auto or messages with {} frames alone", needs_frames()));
  }
  if (*text == "shared") return CollectiveStrategy::shared;
  refuse("HEADWAY_COLLECTIVES", *text, "auto, messages or shared");
}

SizeConstants size_constants_from_environment() {
  const auto text = variable("HEADWAY_TEST_SIZES");
  if (!text || *text == "normal") return normal_sizes;
  if (*text == "small") return small_sizes;
  refuse("HEADWAY_TEST_SIZES", *text, "normal or small");
}

Settings Settings::from_environment(Launchers launchers) {
  refuse_unknown_variables();
  Settings settings;
  settings.pes = count_variable("HEADWAY_PES", std::min(available_cores(), pes_max), pes_max);
  settings.pes_per_process = count_variable("HEADWAY_PES_PER_PROCESS", 1, pes_max);
  settle_transport(settings, launchers);
  settings.plugin_dir = base::plugin_dir();
  if (const auto text = variable("HEADWAY_SHARE")) {
    if (*text != "host" && *text != "process") refuse("HEADWAY_SHARE", *text, "host or process");
    settings.share = *text == "host" ? Share::host : Share::process;
  }
  if (const auto text = variable("HEADWAY_PROGRESS")) {
    const auto* const named = std::ranges::find(progress_names, *text, [](const auto& pair) { return pair.first; });
    if (named == std::end(progress_names)) refuse("HEADWAY_PROGRESS", *text, "polling, helper, both or thread");
    settings.progress = named->second;
  }
  settings.budget_bytes = derived_budget(settings.pes);
  if (const auto text = variable("HEADWAY_BUDGET")) {
    const std::uint64_t bytes = parse_bytes("HEADWAY_BUDGET", *text);
    if (bytes < budget_bytes_min || bytes > budget_bytes_max) {
      refuse("HEADWAY_BUDGET", *text,
             fmt::format("{} to {}", format_bytes(budget_bytes_min), format_bytes(budget_bytes_max)));
    }
    settings.budget_bytes = std::bit_floor(bytes);
  }
  settings.spill_bytes = std::min<std::size_t>(available_memory_bytes() / 4 / settings.pes, 1_GiB);
  if (const auto text = variable("HEADWAY_SPILL")) settings.spill_bytes = parse_bytes("HEADWAY_SPILL", *text);
  // A launcher binds its processes.
  settings.bind = settings.pes > available_cores() || settings.on_wire() ? Bind::none : Bind::core;
  if (const auto text = variable("HEADWAY_BIND")) {
    if (*text != "core" && *text != "none") refuse("HEADWAY_BIND", *text, "core or none");
    settings.bind = *text == "core" && settings.pes <= available_cores() ? Bind::core : Bind::none;
  }
  if (const auto text = variable("HEADWAY_STALL")) settings.stall = parse_duration("HEADWAY_STALL", *text);
  settings.seed = seed_variable();
  static_cast<void>(DialSettings::from_environment());  // refuses a wrong value before any PE exists
  static_cast<void>(counts_file());
  static_cast<void>(trace_folder());
  static_cast<void>(wants_probed_costs());
  settings.aggregation = AggregationSettings::from_environment();
  settings.transfer = TransferSettings::from_environment();
  settings.collectives = collective_strategy_from_environment();
  settings.sizes = size_constants_from_environment();
  settings.sim = variable("HEADWAY_SIM").value_or("");
  if (settings.simulated()) {
    const std::string given = variable("HEADWAY_PES_PER_PROCESS").value_or("");
    if (!given.empty() && settings.pes_per_process != settings.pes) {
      refuse("HEADWAY_PES_PER_PROCESS", given,
             fmt::format("{} with HEADWAY_TRANSPORT=sim: all PEs are in one process", settings.pes));
    }
    settings.pes_per_process = settings.pes;
    settings.bind = Bind::none;
  } else if (!settings.sim.empty()) {
    refuse("HEADWAY_SIM", settings.sim, "nothing without HEADWAY_TRANSPORT=sim");
  }
  return settings;
}

std::string plugin_dir() { return variable("HEADWAY_PLUGIN_DIR").value_or(""); }

std::string meeting() { return variable(meeting_variable).value_or(""); }

std::vector<std::string> given_settings() {
  std::vector<std::string> given;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry), name = text.substr(0, text.find('='));
    if (!name.starts_with("HEADWAY_") || is_place(name) || name == launch_variable || name == meeting_variable)
      continue;
    given.emplace_back(text);
  }
  std::ranges::sort(given);
  return given;
}

std::string take_launch_descriptor() {
  const auto text = variable(launch_variable);
  unsetenv(launch_variable);
  return text.value_or("");
}

}  // namespace headway::base
