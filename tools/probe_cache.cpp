// SPDX-License-Identifier: BSD-3-Clause
#include "probe_cache.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <map>

namespace headway::tools {
namespace {

namespace fs = std::filesystem;
using bench::Json;

std::string absolute_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

/// "probe-HOST-BUILD-": the transport follows.
std::string file_prefix() {
  const Json file = bench::result_file({}, {});
  const auto text = [](const Json& value) { return value.get<std::string>(); };
  std::string name = fmt::format("probe-{}-{}-{}-{}-", text(file["machine"]["host"]), text(file["headway"]),
                                 text(file["machine"]["compiler"]), text(file["machine"]["build"]));
  for (char& c : name) {
    if (c == '/' || c == ' ') c = '_';
  }
  return name;
}

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

}  // namespace

std::string cache_directory() {
  if (const std::string given = absolute_variable("XDG_CACHE_HOME"); !given.empty()) return given + "/headway";
  const std::string home = absolute_variable("HOME");
  return home.empty() ? "" : home + "/.cache/headway";
}

std::vector<std::string> save_probe(const std::vector<std::string>& command, const std::vector<Json>& records) {
  const std::string directory = cache_directory();
  if (directory.empty()) throw SystemError("--save: neither XDG_CACHE_HOME nor HOME is an absolute path");
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw SystemError(fmt::format("--save: making {}: {}", directory, error.message()));
  std::map<std::string, std::vector<Json>> by_transport;
  for (const Json& record : records) by_transport[record["transport"].get<std::string>()].push_back(record);
  std::vector<std::string> paths;
  for (const auto& [transport, measured] : by_transport) {
    const std::string path = fmt::format("{}/{}{}.json", directory, file_prefix(), transport);
    std::vector<Json> all = measured;
    for (const Json& kept : records_of(path)) {
      const auto is_pair = [&](const Json& one) {
        return one["pair"] == kept["pair"] && one.value("shared_cache", false) == kept.value("shared_cache", false);
      };
      if (std::ranges::none_of(measured, is_pair)) all.push_back(kept);
    }
    const std::string unfinished = fmt::format("{}.{}", path, ::getpid());
    bench::write_json(unfinished, bench::result_file(command, all));
    fs::rename(unfinished, path, error);
    if (error) throw SystemError(fmt::format("--save: renaming {}: {}", unfinished, error.message()));
    paths.push_back(path);
  }
  return paths;
}

std::vector<SavedProbe> saved_probes() {
  std::vector<SavedProbe> saved;
  const std::string directory = cache_directory(), prefix = file_prefix();
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
