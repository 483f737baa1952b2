// SPDX-License-Identifier: BSD-3-Clause
/// `headway watch`: a live view of a running program.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <record/command_line.hpp>
#include <string>
#include <vector>

#include "commands.hpp"
#include "watch_find.hpp"
#include "watch_output.hpp"
#include "watch_source.hpp"
#include "watched_run.hpp"

namespace headway::tools {
namespace {

const std::string name = "headway watch";

struct Request {
  std::optional<pid_t> pid;
  double interval_s = 1;
  std::uint64_t count = 0;  // views; 0: until the program ends
  bool json = false;
  std::string program, agent;
  std::vector<std::string> hosts;
};

std::optional<int> parse(Request& request, int argc, char** argv) {
  bench::CommandLine app(
      "Shows what a running program does: rates of messages and frames, waiting, memory and spill of each PE. PID is "
      "any "
      "process of the run, or the one that started it; without PID the only run of this user is shown. q or Ctrl-C "
      "ends the watch, never the program.",
      name);
  app.add_number("--interval", "SECONDS", "time of one view [1]", request.interval_s, 0.1, 60);
  app.add_count("--count", "N", "end after N views", request.count, 1, 1'000'000'000);
  app.add_flag("--json", "one JSON object per line and view", request.json);
  app.add_text("--program", "NAME", "the run of this program, by path or file name", request.program);
  app.add_value("--hosts", "A,B,...", "watch on these hosts by --agent, and show all PEs together",
                [&](const std::string& text) { request.hosts = bench::parse_list("--hosts", text); });
  app.add_text("--agent", "COMMAND", "called as COMMAND HOST LINE, runs the line of shell there [ssh]", request.agent);
  app.add_positional("PID", "process of the run", [&](const std::string& text) {
    request.pid = pid_t(bench::parse_count("PID", text, 1, 1 << 30));
  });
  return app.parse(argc, argv, [&] {
    if (request.pid && !request.program.empty()) throw SettingError("--program: not with PID, which names one run");
    if (request.pid && !request.hosts.empty()) throw SettingError("PID: not with --hosts; allowed is --program NAME");
    if (!request.agent.empty() && request.hosts.empty()) throw SettingError("--agent: allowed with --hosts alone");
  });
}

using Runs = std::vector<std::unique_ptr<WatchedRun>>;

bool is_called(const WatchedRun& run, const std::string& program) {
  const std::string path = run.program();
  return path == program || std::filesystem::path(path).filename() == program;
}

/// Without PID: runs of this user, of the program if one is named. More or fewer than one are an error.
Runs find_only_run(const std::string& program) {
  Runs runs;
  std::vector<std::string> refused;
  for (FoundRun& found : find_runs()) {
    try {
      auto run = std::make_unique<WatchedRun>(std::move(found));
      if (program.empty() || is_called(*run, program)) runs.push_back(std::move(run));
    } catch (const SettingError& error) {  // of another version, or just ended
      refused.emplace_back(error.what());
    }
  }
  if (runs.size() == 1) return runs;
  if (runs.empty()) {
    std::cerr << fmt::format("{}: no program of this user runs on Headway here{}{}\n", name,
                             program.empty() ? "" : fmt::format(" that is called '{}'", program),
                             refused.empty() ? "" : "; " + refused.front());
  } else {
    std::cerr << fmt::format("{}: {} run here; give the PID of one:\n", name, base::counted(runs.size(), "program"));
    for (const auto& run : runs)
      std::cerr << fmt::format("  {}  {}, {}\n", run->pid(), run->program(), base::counted(run->pes(), "PE"));
  }
  return {};
}

Runs find(const Request& request) {
  if (!request.pid) return find_only_run(request.program);
  Runs runs;
  try {
    for (FoundRun& found : find_runs_of(*request.pid)) runs.push_back(std::make_unique<WatchedRun>(std::move(found)));
  } catch (const SettingError& error) {
    std::cerr << fmt::format("{}: {}\n", name, error.what());
    return {};
  }
  return runs;
}

std::vector<std::string> command_there(const Request& request) {
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe"), "watch", "--json", "--interval",
                                      fmt::format("{}", request.interval_s)};
  if (!request.program.empty()) command.insert(command.end(), {"--program", request.program});
  return command;
}

}  // namespace

int watch_command(int argc, char** argv) {
  Request request;
  if (const auto status = parse(request, argc, argv)) return *status;
  const auto interval_ns = std::int64_t(request.interval_s * 1e9);
  std::unique_ptr<WatchSource> source;
  if (request.hosts.empty()) {
    Runs runs = find(request);
    if (runs.empty()) return exit_status::unusable_arguments;
    source = watch_here(std::move(runs), interval_ns);
  } else {
    source = watch_hosts({request.hosts, request.agent, command_there(request)}, interval_ns);
  }
  const Form form = request.json ? Form::json : isatty(STDOUT_FILENO) == 1 ? Form::terminal : Form::tables;
  Wait wait(form == Form::terminal && isatty(STDIN_FILENO) == 1);
  WatchOutput output(form);
  View view;
  for (std::uint64_t shown = 0; request.count == 0 || shown < request.count; ++shown) {
    switch (source->next(wait, output, view)) {
      case WatchSource::Next::interrupted: return 0;
      case WatchSource::Next::ended:
        output.note(fmt::format(
            "{}: {}", name, view.program.empty() ? "the watch has ended" : fmt::format("{} has ended", view.program)));
        return source->status();
      case WatchSource::Next::view:
        if (!output.show(view)) return 0;  // the reader has seen enough
    }
  }
  return source->status();
}

}  // namespace headway::tools
