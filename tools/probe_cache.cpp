// SPDX-License-Identifier: BSD-3-Clause
#include "probe_cache.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/transport/probed_costs.hpp>
#include <map>

namespace headway::tools {
namespace {

namespace fs = std::filesystem;
using bench::Json;

std::vector<Json> records_of(const fs::path& path) {
  std::ifstream from(path);
  const Json file = Json::parse(from, nullptr, false);
  if (!file.is_object() || !file.contains("records") || !file["records"].is_array()) return {};
  std::vector<Json> records;
  for (const Json& record : file["records"]) {
    const auto is_text = [&](const char* name) { return record.contains(name) && record[name].is_string(); };
    if (record.is_object() && is_text("transport") && is_text("pair")) records.push_back(record);
  }
  return records;
}

/// The library's text of these records. Those without a time of o are left out: all of it is within other values.
std::vector<transport::ProbedPair> costs_of(const std::vector<Json>& records) {
  std::vector<transport::ProbedPair> pairs;
  const auto number = [](const Json& record, const char* name, const char* field) {
    const Json::json_pointer pointer(fmt::format("/{}/{}", name, field));
    return record.contains(pointer) && record.at(pointer).is_number() ? record.at(pointer).get<double>() : 0;
  };
  for (const Json& record : records) {
    transport::ProbedPair pair{record["pair"].get<std::string>(), {}};
    if (pair.name == "process" && record.contains("shared_cache") && record["shared_cache"] == false)
      pair.name = "process_apart";
    pair.costs = {number(record, "o_send_ns", "value") + number(record, "o_recv_ns", "value"),
                  number(record, "gap_per_byte_ns", "value"), number(record, "latency_ns", "value")};
    pair.line_ns_least = number(record, "line_ns", "min");
    pair.line_ns_most = number(record, "line_ns", "max");
    if (pair.costs.overhead_ns > 0) pairs.push_back(std::move(pair));
  }
  return pairs;
}

/// A reader sees the old file or the new one.
template <class Write>
void replace(const std::string& path, Write write) {
  const std::string unfinished = fmt::format("{}.{}", path, ::getpid());
  write(unfinished);
  std::error_code error;
  fs::rename(unfinished, path, error);
  if (error) throw SystemError(fmt::format("--save: renaming {}: {}", unfinished, error.message()));
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  if (!file) base::throw_errno(("writing " + path).c_str());
}

}  // namespace

std::vector<std::string> save_probe(const std::vector<std::string>& command, const std::vector<Json>& records) {
  const std::string directory = transport::probe_directory();
  if (directory.empty()) throw SystemError("--save: neither XDG_CACHE_HOME nor HOME is an absolute path");
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw SystemError(fmt::format("--save: making {}: {}", directory, error.message()));
  std::map<std::string, std::vector<Json>> by_transport;
  for (const Json& record : records) by_transport[record["transport"].get<std::string>()].push_back(record);
  std::vector<std::string> paths;
  for (const auto& [transport, measured] : by_transport) {
    const std::string path = fmt::format("{}/{}{}.json", directory, transport::probe_file_prefix(), transport);
    std::vector<Json> all = measured;
    for (const Json& kept : records_of(path)) {
      const auto is_pair = [&](const Json& one) {
        return one["pair"] == kept["pair"] && one.value("shared_cache", false) == kept.value("shared_cache", false);
      };
      if (std::ranges::none_of(measured, is_pair)) all.push_back(kept);
    }
    replace(path, [&](const std::string& to) { bench::write_json(to, bench::result_file(command, all)); });
    replace(transport::probed_costs_path(transport),
            [&](const std::string& to) { write_text(to, transport::to_text(costs_of(all))); });
    paths.push_back(path);
  }
  return paths;
}

std::vector<SavedProbe> saved_probes() {
  std::vector<SavedProbe> saved;
  const std::string directory = transport::probe_directory(), prefix = transport::probe_file_prefix();
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || entry.path().extension() != ".json") continue;
    SavedProbe one{entry.path().string(), 0, records_of(entry.path())};
    struct stat found = {};
    if (::stat(one.path.c_str(), &found) == 0) one.saved_at = found.st_mtime;
    if (!one.records.empty()) saved.push_back(std::move(one));
  }
  std::ranges::sort(saved, {}, &SavedProbe::path);
  return saved;
}

}  // namespace headway::tools
