// SPDX-License-Identifier: BSD-3-Clause
#include "bench_limit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <message/message.hpp>
#include <record/command_line.hpp>

namespace headway::tools {
namespace {

// What headway-limit takes.
constexpr std::size_t limit_pes_max = 64;
constexpr std::uint64_t limit_bytes_min = 8, limit_bytes_max = 4_MiB, trip_bytes_max = 64_MiB;
constexpr unsigned limit_log2_max = 36;
constexpr std::uint64_t edge_messages_max = 1 << 24;  // which take some tenths of a second
constexpr std::uint64_t limit_buffers_min = 2, limit_buffers_max = 32;

constexpr std::array<std::size_t, 5> fixed_sizes = {8, 16, 32, 104, 1000};
constexpr std::array<std::size_t, 3> variable_sizes = {32, 104, 1000};
constexpr std::array<const char*, 2> table_log2s = {"16", "24"};

using Words = std::vector<std::string>;

BenchCase limit_case(const std::string& label, const Words& arguments, std::size_t pes,
                     const base::Settings& settings) {
  BenchCase made;
  made.label = label;
  made.command = {program_directory() + "/headway-limit", "--json", "-", "--pes", std::to_string(pes)};
  made.command.insert(made.command.end(), arguments.begin(), arguments.end());
  if (settings.bind == base::Bind::none) made.command.emplace_back("--no-bind");
  return made;
}

[[noreturn]] void refuse(const std::string& mode, const std::string& why) {
  throw SettingError(fmt::format("--mode: '{}' is not allowed {}", mode, why));
}

void check(const std::string& mode, const base::Settings& settings) {
  if (settings.simulated()) refuse(mode, "with --transport sim; it measures this machine");
  if (settings.pes > limit_pes_max) {
    refuse(mode, fmt::format("with {}; allowed are at most {}", base::counted(settings.pes, "PE"), limit_pes_max));
  }
}

void check_bytes(const std::string& mode, const std::string& bytes, std::uint64_t most = limit_bytes_max) {
  const std::uint64_t size = std::stoull(bytes);
  if (size >= limit_bytes_min && size <= most) return;
  refuse(mode, fmt::format("with --bytes {}; allowed is {} to {}", bytes, base::format_bytes(limit_bytes_min),
                           base::format_bytes(most)));
}

bool is_of_trips(const std::string& mode) { return std::ranges::find(trip_limits, mode) != trip_limits.end(); }

/// Of limit-N; 0: of limit.
std::uint64_t buffers_of(const std::string& mode) {
  if (mode == limit_mode) return 0;
  const std::string_view number = std::string_view(mode).substr(std::string_view(limit_of_buffers).size());
  return bench::parse_count(fmt::format("--mode {}N", limit_of_buffers), number, limit_buffers_min, limit_buffers_max);
}

/// In another benchmark's comparison.
BenchCase limit_mode_case(const std::string& mode, Words arguments, const base::Settings& settings) {
  const std::uint64_t buffers = buffers_of(mode);
  if (buffers > 0) arguments.insert(arguments.end(), {"--buffers", std::to_string(buffers)});
  BenchCase made = limit_case(mode, arguments, settings.pes, settings);
  made.role = BenchCase::Role::limit;
  return made;
}

/// Messages of a case of the benchmark `limit`, so that a pass takes some milliseconds.
std::uint64_t messages_of(const Request& request, std::uint64_t bytes, std::uint64_t most, std::uint64_t bytes_in_all) {
  const std::uint64_t fitting = std::clamp<std::uint64_t>(bytes_in_all / bytes, 10, most);
  return request.messages.empty() ? fitting : std::min<std::uint64_t>(fitting, std::stoull(request.messages));
}

BenchGroup ring_group(const std::string& title, Words arguments, const Request& request,
                      const base::Settings& settings) {
  arguments.insert(arguments.begin(), {"--bench", "ring"});
  BenchGroup group{title, {}};
  const auto add = [&](std::size_t bytes, bool variable) {
    Words all = arguments;
    const std::uint64_t messages = messages_of(request, bytes, 4'000'000, 256_MiB);
    all.insert(all.end(), {"--bytes", std::to_string(bytes), "--messages", std::to_string(messages)});
    if (variable) all.emplace_back("--variable");
    group.cases.push_back(
        limit_case(base::counted(bytes, "byte") + (variable ? ", variable" : ""), all, settings.pes, settings));
  };
  for (const std::size_t bytes : fixed_sizes) add(bytes, false);
  for (const std::size_t bytes : variable_sizes) add(bytes, true);
  return group;
}

BenchGroup updates_group(const Request& request, const base::Settings& settings) {
  BenchGroup group{"updates of each PE's own table", {}};
  for (const char* log2 : table_log2s) {
    const std::string updates = std::to_string(messages_of(request, 8, 8'000'000, 64_MiB));
    group.cases.push_back(limit_case(fmt::format("2^{} words", log2),
                                     {"--bench", "updates", "--table-log2", log2, "--messages", updates}, settings.pes,
                                     settings));
  }
  return group;
}

BenchGroup latency_group(const Request& request, const base::Settings& settings) {
  const std::string trips = std::to_string(messages_of(request, 8, 100'000, 1_GiB));
  return {"one way, 8 bytes", {limit_case("8 bytes", {"--bench", "latency", "--messages", trips}, 2, settings)}};
}

BenchGroup copy_group(const std::string& bench, const std::string& title, std::size_t pes, const Request& request,
                      const base::Settings& settings) {
  BenchGroup group{title, {}};
  for (std::uint64_t bytes = 1_KiB; bytes <= 64_MiB; bytes *= 4) {
    const std::string copies = std::to_string(messages_of(request, bytes, 100'000, 1_GiB));
    group.cases.push_back(limit_case(base::format_bytes(bytes),
                                     {"--bench", bench, "--bytes", std::to_string(bytes), "--messages", copies}, pes,
                                     settings));
  }
  return group;
}

}  // namespace

void check_limit_mode(const std::string& mode) {
  if (!is_of_trips(mode)) buffers_of(mode);
}

std::vector<BenchCase> limits_of_trips(const Request& request, const std::string& mode, const Work& work,
                                       const base::Settings& settings) {
  if (mode != limit_mode && !is_of_trips(mode)) {
    refuse(mode, fmt::format("for {}; allowed are {}, {}", request.bench, limit_mode, fmt::join(trip_limits, ", ")));
  }
  check(mode, settings);
  check_bytes(mode, work.bytes, trip_bytes_max);
  if (settings.pes != 2)
    refuse(mode, fmt::format("for {} on {}; allowed is 2", request.bench, base::counted(settings.pes, "PE")));
  if (request.touch) refuse(mode, "with --touch; its loops look at both ends");
  const std::string trips = request.messages.empty()
                                ? std::to_string(bench::default_messages(request.bench, std::stoull(work.bytes)))
                                : request.messages;
  std::vector<BenchCase> cases;
  for (const std::string& limit : trip_limits) {
    if (mode != limit_mode && mode != limit) continue;
    const std::string loop = "trip-" + limit.substr(std::string_view(limit_of_buffers).size());
    BenchCase& made = cases.emplace_back(
        limit_case(limit, {"--bench", loop, "--bytes", work.bytes, "--buffers", work.buffers, "--messages", trips},
                   settings.pes, settings));
    made.role = BenchCase::Role::limit;
  }
  return cases;
}

BenchCase limit_of_table(const Request& request, const std::string& mode, const Work& work,
                         const base::Settings& settings) {
  check(mode, settings);
  check_bytes(mode, work.bytes);
  if (std::stoul(work.log2) > limit_log2_max) {
    refuse(mode, fmt::format("with --log2 {}; allowed is 1 to {}", work.log2, limit_log2_max));
  }
  const double updates = std::ldexp(std::stod(work.updates_per_word), std::stoi(work.log2));
  const auto each = std::max<std::uint64_t>(1, std::uint64_t(updates) / settings.pes);
  Words arguments = {"--bench",  "ring",         "--pattern", "both-ways",  "--bytes",
                     work.bytes, "--table-log2", work.log2,   "--messages", std::to_string(each)};
  if (request.type == "bytes") arguments.emplace_back("--variable");
  return limit_mode_case(mode, arguments, settings);
}

BenchCase limit_of_edges(const Request& request, const std::string& mode, const Work& work,
                         const base::Settings& settings) {
  check(mode, settings);
  const auto given = [&](const char* name, std::uint64_t usual, std::uint64_t most) {
    const auto found = std::ranges::find(request.work_options, name, &Request::GivenOption::name);
    return found == request.work_options.end() ? usual : bench::parse_count(name, found->text, 1, most);
  };
  const std::uint64_t edges = given("--edge-factor", 16, 1024) << given("--scale", 16, 30);
  const std::uint64_t each = 2 * edges * given("--roots", 4, 1024) / settings.pes;
  return limit_mode_case(mode,
                         {"--bench", "ring", "--pattern", "both-ways", "--bytes", work.bytes, "--messages",
                          std::to_string(std::clamp<std::uint64_t>(each, 1, edge_messages_max))},
                         settings);
}

BenchCase limit_of_messages(const Request& request, const std::string& mode, const Work& work,
                            const base::Settings& settings) {
  check(mode, settings);
  check_bytes(mode, work.bytes);
  const std::uint64_t each = request.messages.empty() ? bench::default_messages(request.bench, std::stoull(work.bytes))
                                                      : std::stoull(request.messages);
  if (request.bench == "pingpong") {
    if (settings.pes != 2)
      refuse(mode, fmt::format("for pingpong on {}; allowed is 2", base::counted(settings.pes, "PE")));
    if (buffers_of(mode) > 0) refuse(mode, fmt::format("for pingpong, which has no rings; allowed is {}", limit_mode));
    return limit_mode_case(mode, {"--bench", "latency", "--bytes", work.bytes, "--messages", std::to_string(each)},
                           settings);
  }
  const bool to_all = request.bench == "synthetic";  // `each` to each of the others
  Words arguments = {"--bench", "ring",     "--pattern",  to_all ? "others" : "pairs",
                     "--bytes", work.bytes, "--messages", std::to_string(to_all ? each * (settings.pes - 1) : each)};
  if (request.type == "bytes") arguments.emplace_back("--variable");
  return limit_mode_case(mode, arguments, settings);
}

std::vector<BenchGroup> limit_groups(const Request& request, const base::Settings& settings) {
  check(limit_mode, settings);
  std::vector<BenchGroup> groups = {updates_group(request, settings)};
  const bool paired = settings.pes % 2 == 0;
  for (const char* log2 : table_log2s) {
    const auto add = [&](const char* pattern) {
      groups.push_back(ring_group(fmt::format("{}, 2^{} words", pattern, log2),
                                  {"--pattern", pattern, "--table-log2", log2}, request, settings));
    };
    add("both-ways");
    if (paired) add("one-way");
  }
  if (paired) groups.push_back(ring_group("pairs, as stream", {"--pattern", "pairs"}, request, settings));
  groups.push_back(latency_group(request, settings));
  groups.push_back(copy_group("copy", "copies within a process", 1, request, settings));
  groups.push_back(copy_group("cma", "reads of another process's memory (CMA)", 2, request, settings));
  return groups;
}

}  // namespace headway::tools
