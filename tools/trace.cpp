// SPDX-License-Identifier: BSD-3-Clause
/// `headway trace`: the trace of a run, for viewers of other projects.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <headway/base/error.hpp>
#include <iostream>
#include <record/command_line.hpp>
#include <record/record.hpp>

#include "commands.hpp"
#include "trace_csv.hpp"
#include "trace_folder.hpp"
#include "trace_otf2.hpp"
#include "trace_perfetto.hpp"

namespace headway::tools {
namespace {

struct Request {
  std::string folder, perfetto, csv, otf2;
};

/// An output in the folder of the trace could replace its own input.
void refuse_own_input(const std::string& option, const Request& request, const std::string& file) {
  if (file.empty() || file == "-") return;
  std::error_code error;
  const std::filesystem::path path(file);
  if (!std::filesystem::equivalent(path.has_parent_path() ? path.parent_path() : ".", request.folder, error)) return;
  if (path.extension() == ".trace" || path.filename() == "trace.json")
    throw SettingError(fmt::format("{}: '{}' is a file of the trace itself: choose another name", option, file));
}

void require_outputs(const Request& request) {
  if (request.perfetto.empty() && request.csv.empty() && request.otf2.empty())
    throw SettingError("an output is needed: -o FILE, --csv FILE or --otf2 DIR");
  if (request.perfetto == "-") throw SettingError("--output: '-' is not allowed; the file is compressed bytes");
  refuse_own_input("--output", request, request.perfetto);
  refuse_own_input("--csv", request, request.csv);
  bench::require_writable("--output", request.perfetto);
  bench::require_writable("--csv", request.csv);
  if (!request.otf2.empty()) require_otf2(request.otf2);
}

std::string size_text(double bytes) {
  return bytes < 1e6 ? fmt::format("{:.1f} kB", 1e-3 * bytes) : fmt::format("{:.1f} MB", 1e-6 * bytes);
}

void convert(const Request& request) {
  const TraceFolder folder(request.folder);
  std::ostream& out = request.csv == "-" ? std::cerr : std::cout;
  out << folder.summary() << std::flush;
  if (!request.perfetto.empty()) {
    const PerfettoCounts counts = write_perfetto(folder, request.perfetto);
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(request.perfetto, error);
    out << fmt::format("{}: {} slices and {} arrows, {}{}; open it at https://ui.perfetto.dev\n", request.perfetto,
                       counts.slices, counts.arrows, size_text(double(counts.bytes)),
                       error ? "" : fmt::format(", compressed {}", size_text(double(bytes))));
  }
  if (!request.csv.empty()) {
    write_csv(folder, request.csv);
    if (request.csv != "-") out << fmt::format("{}: {} records\n", request.csv, folder.records());
  }
  if (!request.otf2.empty())
    out << fmt::format("{}/traces.otf2: {} events\n", request.otf2, write_otf2(folder, request.otf2));
  out << std::flush;
}

}  // namespace

int trace_command(int argc, char** argv) {
  const std::string name = "headway trace";
  bench::CommandLine app(
      "Converts the trace of a run (headway run --trace DIR) for viewers: Perfetto (https://ui.perfetto.dev), and "
      "others "
      "that read OTF2. It prints how many records were lost, and how many frames were never taken.",
      name);
  Request request;
  app.add_positional(
      "DIR", "the folder with the trace", [&](const std::string& text) { request.folder = text; }, true);
  app.add_value("-o,--output", "FILE", "write FILE for Perfetto, such as run.pftrace; it is compressed by gzip",
                [&](const std::string& text) { request.perfetto = text; });
  app.add_text("--csv", "FILE", "write a row for each record to FILE, or - for standard output", request.csv);
  app.add_text("--otf2", "DIR", "write an archive of OTF2 to the new folder DIR; needs python3 with the package otf2",
               request.otf2);
  if (const auto status = app.parse(argc, argv, [&] { require_outputs(request); })) return *status;
  try {
    convert(request);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << fmt::format("{}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace headway::tools
