// SPDX-License-Identifier: BSD-3-Clause
#include "record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <iostream>
#include <string_view>

namespace headway::bench {
namespace {

void set_rates(Json& record) {
  const double seconds = record["seconds"]["median"];
  const double rate = seconds > 0 ? record["messages"].get<double>() / seconds : 0;
  record["messages_per_second"] = rate;
  if (record["bench"] == "randomaccess") record["gups"] = rate / 1e9;
  if (record.contains("bytes_per_second")) record["bytes_per_second"] = rate * record["message_bytes"].get<double>();
}

/// The median of one field over all repeats that have it.
Spread field_spread(std::span<const Json> repeats, const Json::json_pointer& field) {
  std::vector<double> values;
  for (const Json& repeat : repeats) {
    if (repeat.contains(field)) values.push_back(repeat.at(field).get<double>());
  }
  return spread_of(std::move(values));
}

/// The text that a field has in most repeats; of equals the first.
std::string most_frequent(std::span<const Json> repeats, const char* field) {
  const auto times = [&](const Json& of) {
    return std::ranges::count_if(repeats,
                                 [&](const Json& repeat) { return repeat.value(field, "") == of.value(field, ""); });
  };
  return std::ranges::max(repeats, {}, times).value(field, "");
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

Json to_json(const Spread& spread) { return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}}; }

Json make_record(const Case& measured, double seconds, bool verified) {
  Json record = {{"bench", measured.bench},
                 {"mode", measured.mode},
                 {"transport", measured.transport},
                 {"pes", measured.pes},
                 {"processes", measured.processes},
                 {"pes_per_process", measured.pes_per_process},
                 {"hosts", measured.hosts},
                 {"message_bytes", measured.message_bytes},
                 {"messages", measured.messages},
                 {"repeat", 1},
                 {"seconds", to_json({seconds, seconds, seconds})},
                 {"messages_per_second", 0.0},
                 {"verified", verified}};
  if (measured.transport == "sim" || measured.transport == "smpi") record["simulated_time"] = true;
  set_rates(record);
  return record;
}

void add_frames(Json& record, const FrameCounts& counts) {
  record["frames"] = counts.frames;
  record["frames_between_processes"] = counts.frames_between_processes;
  record["frames_between_hosts"] = counts.frames_between_hosts;
  record["wire_bytes"] = counts.wire_bytes;
  record["copies"] = counts.copies;
  record["copied_bytes"] = counts.copied_bytes;
  record["fill_mean"] = counts.fill_mean;
  record["flush"] = {
      {"full", counts.full}, {"timeout", counts.timeout}, {"idle", counts.idle}, {"explicit", counts.explicitly}};
  record["peak_buffer_bytes"] = counts.peak_buffer_bytes;
}

Json merge_repeats(std::span<const Json> repeats) {
  Json merged = repeats.front();
  merged["repeat"] = repeats.size();
  merged["seconds"] = to_json(field_spread(repeats, Json::json_pointer("/seconds/median")));
  merged["verified"] = std::ranges::all_of(repeats, [](const Json& r) { return r.value("verified", false); });
  for (const char* field :
       {"one_way_us", "latency_us", "cpu_us", "cpu_us_without", "in_calls_us", "late_fraction", "us"}) {
    if (!merged.contains(field)) continue;
    merged[field] = to_json(field_spread(repeats, Json::json_pointer(fmt::format("/{}/median", field))));
  }
  if (merged.contains("errors")) {
    std::uint64_t errors = 0;
    for (const Json& repeat : repeats) errors += repeat.value("errors", std::uint64_t(0));
    merged["errors"] = errors;
  }
  for (const char* field :
       {"/frames", "/frames_between_processes", "/frames_between_hosts", "/wire_bytes", "/copies", "/copied_bytes",
        "/flush/full", "/flush/timeout", "/flush/idle", "/flush/explicit", "/peak_buffer_bytes"}) {
    const Json::json_pointer pointer(field);
    if (merged.contains(pointer)) merged[pointer] = std::uint64_t(field_spread(repeats, pointer).median);
  }
  if (merged.contains("formulation")) merged["formulation"] = most_frequent(repeats, "formulation");
  const Json::json_pointer tried("/tried_messages_per_second");
  if (merged.contains(tried)) {
    for (auto& [name, rate] : merged[tried].items()) rate = field_spread(repeats, tried / name).median;
  }
  if (merged.contains("phases_us")) {
    for (auto& [name, us] : merged["phases_us"].items())
      us = field_spread(repeats, Json::json_pointer("/phases_us") / name).median;
  }
  for (const char* field : {"fill_mean", "teps", "keys_per_second", "setup_us"}) {
    const Json::json_pointer pointer("/" + std::string(field));
    if (merged.contains(pointer)) merged[pointer] = field_spread(repeats, pointer).median;
  }
  set_rates(merged);
  return merged;
}

std::string speed_of(const Json& record) {
  if (record.contains("one_way_us")) {
    return fmt::format("{:.3f} us one way", record["one_way_us"]["median"].get<double>());
  }
  if (record.contains("latency_us")) {
    return fmt::format("{:.3f} us", record["latency_us"]["median"].get<double>());
  }
  if (record.contains("us")) return fmt::format("{:.3f} us", record["us"]["median"].get<double>());
  if (record.contains("cpu_us")) {
    return fmt::format("{:.2f} us of a processor for a call of a PE", record["cpu_us"]["median"].get<double>());
  }
  return fmt::format("{:.2f} M messages/s in all", record["messages_per_second"].get<double>() / 1e6);
}

Json machine_description() {
  utsname system{};
  ::uname(&system);
  return {{"host", system.nodename},
          {"processor", processor_name()},
          {"cores_online", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"cores_available", base::available_cores()},
          {"memory_bytes", base::available_memory_bytes()},
          {"system", std::string(system.sysname) + " " + system.release},
          {"compiler", HEADWAY_COMPILER},
          {"build", HEADWAY_BUILD_TYPE}};
}

Json result_file(const std::vector<std::string>& command, const std::vector<Json>& records) {
  return {{"headway", HEADWAY_VERSION}, {"machine", machine_description()}, {"command", command}, {"records", records}};
}

void require_writable(const std::string& option, const std::string& path) {
  if (path.empty() || path == "-") return;
  constexpr int flags = O_WRONLY | O_CLOEXEC | O_NONBLOCK;  // a FIFO may have no reader yet
  int file = ::open(path.c_str(), flags);
  if (file < 0 && errno == ENOENT) {
    file = ::open(path.c_str(), flags | O_CREAT | O_EXCL, 0666);
    if (file >= 0) ::unlink(path.c_str());
  }
  const int error = errno;
  if (file >= 0) {
    ::close(file);
  } else if (error != ENXIO) {
    throw SettingError(fmt::format("{}: '{}' cannot be written: {}", option, path, std::strerror(error)));
  }
}

void write_json(const std::string& path, const Json& value) {
  if (path == "-") {
    std::cout << value.dump(2) << std::endl;
    return;
  }
  std::ofstream file(path);
  file << value.dump(2) << '\n';
  file.flush();
  if (!file) base::throw_errno(("writing " + path).c_str());
}

}  // namespace headway::bench
