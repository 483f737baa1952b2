// SPDX-License-Identifier: BSD-3-Clause
/// `headway probe`: LogGP of the transports here, with intervals over launches.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <headway/base/dial_settings.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <headway/base/nanoseconds.hpp>
#include <headway/base/settings.hpp>
#if defined(HEADWAY_SIM)
#include <headway/transport/sim/conditions.hpp>
#endif
#include <iostream>
#include <optional>
#include <probe/result.hpp>
#include <record/command_line.hpp>

#include "commands.hpp"
#include "probe_cache.hpp"
#include "probe_calibration.hpp"
#include "probe_launches.hpp"
#include "probe_peers.hpp"
#include "probe_plot.hpp"
#include "probe_table.hpp"
#include "progress.hpp"

namespace headway::tools {
namespace {

using bench::Json;

const char* const command_name = "headway probe";
constexpr double calibrated_ns_max = 1e6;  // longer delays make a launch too long

struct Outputs {
  std::string json, csv, markdown, plot;
  bool osu = false, save = false, peers = false;
};

struct Calibration {
  bool wanted = false;
  std::vector<std::string> dials = dial_names();
  std::vector<double> values_ns = {1e3, 5e3, 10e3, 20e3, 50e3, 100e3};
};

/// A target with the samples of its launches.
struct Probed {
  ProbeTarget target;
  std::vector<bench::ProbeLaunch> launches;
  bench::ProbeResult result = {};
};

void add_options(bench::CommandLine& app, ProbeRequest& request, Outputs& outputs) {
  static const std::vector<std::string> transports = {"local", "sim", "ucx", "openmpi", "mpich", "mpi-abi"};
  static const std::vector<std::string> pairs = {"thread", "process", "host"};
  const auto list = [&](const char* name, const std::string& help, std::vector<std::string>& to,
                        const std::vector<std::string>& allowed) {
    app.add_value(name, "LIST", help, [name, &to, &allowed](const std::string& text) {
      to = bench::parse_list(name, text);
      for (const std::string& one : to) bench::parse_choice(name, one, allowed);
    });
  };
  list("--transport", fmt::format("{} [all here but sim]", fmt::join(transports, ", ")), request.transports,
       transports);
  list("--pair", "thread (of one process), process (of one host), host [all that the transport has]", request.pairs,
       pairs);
  app.add_value("--hosts", "A,B", "also between these hosts, over ucx", [&](const std::string& text) {
    if (bench::parse_list("--hosts", text).size() != 2)
      throw SettingError(fmt::format("--hosts: '{}' is not allowed; allowed are two names A,B", text));
    request.hosts = text;
  });
  app.add_text("--agent", "COMMAND", "runs a line of shell on a host, as of `headway run` [ssh]", request.agent);
  app.add_text(
      "--command", "LINE",
      "a line of shell that starts headway-probe on 2 PEs, such as 'srun -n 2 headway-probe', instead of pairs",
      request.command);
  app.add_count("--launches", "N", "launches of each pair, interleaved [6]", request.launches, 1, 1000);
  app.add_count("--points", "N", "random sizes of a launch, beside the powers of two [40]", request.points, 4, 100'000);
  app.add_count("--bytes-max", "N", "the largest size [65536]", request.bytes_max, 64, 1 << 20);
  app.add_count("--messages", "N", "messages of a burst [32]", request.messages, 2, 256);
  app.add_count("--repeats", "N", "measurements of each exchange; 1 suffices where time is simulated [7]",
                request.repeats, 1, 1000);
  app.add_count("--seed", "N", "of the sizes and their order [1]", request.seed, 0, std::uint64_t(1) << 40);
  app.add_value("--dial", "LIST", "delays that are added, such as o=5us,L=10us [none]", [&](const std::string& text) {
    base::DialSettings::parse("--dial", text);
    request.dial = text;
  });
  app.add_value("--sim", "LIST", "the simulated network, such as L=2us,o=200ns", [&](const std::string& text) {
#if defined(HEADWAY_SIM)
    sim::Conditions().parse("--sim", text, 2);
#endif
    request.sim = text;
  });
  app.add_count("--time-limit", "S", "seconds that one launch may take [120]", request.limit, 1, 86'400);
  app.add_text("--json", "FILE", "write the result file, or - for standard output, instead of a table", outputs.json);
  app.add_flag("--osu", "latency and bandwidth as the OSU micro-benchmarks print them, instead of a table",
               outputs.osu);
  app.add_text("--csv", "FILE", "also write all samples, a line each", outputs.csv);
  app.add_text("--plot", "FILE", "also draw times over sizes with the fitted lines, as SVG", outputs.plot);
  app.add_flag("--peers", "also latency, rate and bandwidth of Open MPI and MPICH, in turns with the launches",
               outputs.peers);
  app.add_flag("--save", "also keep the result for this host and build, for `headway doctor`", outputs.save);
}

void add_calibration_options(bench::CommandLine& app, Calibration& calibration, Outputs& outputs) {
  app.add_flag("--calibrate", "observe o, g, L and G for each value of each dial", calibration.wanted);
  app.add_value("--dials", "LIST", "of --calibrate: o, item_o, g, L, G [all]", [&](const std::string& text) {
    calibration.dials = bench::parse_list("--dials", text);
    for (const std::string& one : calibration.dials) bench::parse_choice("--dials", one, dial_names());
  });
  app.add_value("--values", "LIST", "of each dial; of G for 1000 bytes [1us,5us,10us,20us,50us,100us]",
                [&](const std::string& text) {
                  calibration.values_ns.clear();
                  for (const std::string& one : bench::parse_list("--values", text)) {
                    const std::optional<double> ns = base::parse_nanoseconds(one);
                    if (!ns || *ns > calibrated_ns_max)
                      throw SettingError(
                          fmt::format("--values: '{}' is not allowed; allowed are times up to 1ms, such as 5us", one));
                    calibration.values_ns.push_back(*ns);
                  }
                });
  app.add_text("--markdown", "FILE", "of --calibrate: write a page with the matrix", outputs.markdown);
}

/// Throws SettingError where options do not fit to one another. A launch of --calibrate is shorter than others, because
/// there are many of them, and dials make them slow.
void complete(const bench::CommandLine& app, ProbeRequest& request, const Calibration& calibration,
              const Outputs& outputs) {
  for (const char* option : {"--dials", "--values", "--markdown"}) {
    if (app.given(option) && !calibration.wanted)
      throw SettingError(fmt::format("{} is an option of --calibrate", option));
  }
  const auto asks = [&](const char* transport) {
    return std::ranges::find(request.transports, transport) != request.transports.end();
  };
  if (app.given("--sim") && !asks("sim")) throw SettingError("--sim: only with --transport sim");
  if (app.given("--agent") && request.hosts.empty()) throw SettingError("--agent: only with --hosts");
  for (const char* option : {"--transport", "--pair", "--hosts"}) {
    if (app.given(option) && app.given("--command"))
      throw SettingError(fmt::format("{}: not together with --command, which says how PEs are started", option));
  }
  if (outputs.save && app.given("--command"))
    throw SettingError("--save: not with --command, because the transport is not known");
  if (app.given("--osu") && outputs.json == "-") throw SettingError("--osu: not together with --json -");
  if (outputs.save && (!request.dial.empty() || base::DialSettings::from_environment()))
    throw SettingError("--save: not with delays (--dial, HEADWAY_DIAL), which are no property of the machine");
  if (outputs.save && std::ranges::find(request.transports, "sim") != request.transports.end())
    throw SettingError("--save: not with --transport sim, which is no machine");
  bench::require_writable("--json", outputs.json);
  bench::require_writable("--csv", outputs.csv);
  bench::require_writable("--plot", outputs.plot);
  bench::require_writable("--markdown", outputs.markdown);
  if (!calibration.wanted) return;
  if (base::DialSettings::from_environment())
    throw SettingError("--calibrate: HEADWAY_DIAL is set; it would delay the run without dials, too");
  for (const char* option : {"--dial", "--osu", "--csv", "--save", "--plot", "--peers"}) {
    if (app.given(option)) throw SettingError(fmt::format("{} is no option of --calibrate", option));
  }
  if (request.transports.empty() && request.command.empty()) request.transports = {"local"};
  if (request.pairs.empty() && request.command.empty()) request.pairs = {"process"};
  if (!app.given("--launches")) request.launches = 3;
  if (!app.given("--points")) request.points = 12;
  if (!app.given("--bytes-max")) request.bytes_max = 4096;
  if (!app.given("--messages")) request.messages = 8;
  if (!outputs.markdown.empty() && outputs.json == "-") throw SettingError("--markdown: not together with --json -");
}

Json record_of(const ProbeTarget& target, const bench::ProbeResult& result) {
  Json record = {{"bench", "probe"}, {"transport", target.transport}, {"pair", target.pair}};
  if (target.cores) {
    record["cores"] = {target.cores->first, target.cores->second};
    record["shared_cache"] = target.cores->shares_cache;
  }
  bench::add_probe_result(record, result);
  return record;
}

int calibrate(const ProbeRequest& request, const Calibration& calibration, const Outputs& outputs,
              const std::vector<std::string>& command_line) {
  const std::vector<ProbeTarget> targets = probe_targets(request);
  if (request.command.empty() && (request.transports.size() != 1 || request.pairs.size() != 1))
    throw SettingError("--calibrate: several transports or pairs are not allowed; allowed is one of each");
  const std::vector<DialSetting> settings = settings_of(calibration.dials, calibration.values_ns);
  Progress progress(settings.size() * request.launches);
  const std::vector<CalibratedSetting> calibrated =
      tools::calibrate(targets[0], request, settings, [&](const std::string& what) { progress.step(what); });
  progress.clear();
  if (!outputs.markdown.empty()) {
    std::ofstream file(outputs.markdown);
    file << page_of(targets[0], request.launches, calibrated);
    file.flush();
    if (!file) base::throw_errno(("writing " + outputs.markdown).c_str());
  }
  if (outputs.json.empty()) {
    std::cout << matrix_of(calibrated, false) << std::flush;
    return 0;
  }
  std::vector<Json> records;
  for (const CalibratedSetting& one : calibrated) {
    Json record = record_of(targets[0], one.result);
    record["dial"] = one.setting.dial;
    record["dialled_ns"] = one.setting.dialled_ns;
    if (one.setting.dial != "none") record["error_ns"] = error_ns(one, calibrated.front().result);
    records.push_back(std::move(record));
  }
  bench::write_json(outputs.json, bench::result_file(command_line, records));
  return 0;
}

/// `peers` are measured in turns with the launches.
std::vector<Probed> measure(const ProbeRequest& request, const std::vector<ProbeTarget>& targets,
                            std::vector<ProbedPeer>& peers) {
  std::vector<Probed> all;
  for (const ProbeTarget& target : targets) all.push_back({target, {}});
  Progress progress((targets.size() + peers.size()) * request.launches);
  for (std::size_t number = 0; number != request.launches; ++number) {
    for (Probed& one : all) {
      progress.step(fmt::format("{}, {}, launch {} of {}", one.target.transport, name_of_pair(one.target), number + 1,
                                request.launches));
      one.launches.push_back(launch_probe(one.target, request, number));
    }
    measure_peers(peers, targets.front().cores, request.limit, [&](const std::string& name) {
      progress.step(fmt::format("{}, launch {} of {}", name, number + 1, request.launches));
    });
  }
  for (Probed& one : all) one.result = bench::evaluate(one.launches);
  return all;
}

/// "0-2 shared cache"; empty where they are not known.
std::string cores_of(const ProbeTarget& target) {
  if (!target.cores) return "";
  return fmt::format("{}-{} {}", target.cores->first, target.cores->second,
                     target.cores->shares_cache ? "shared cache" : "no shared cache");
}

void write_csv(const std::string& path, const std::vector<Probed>& all) {
  std::ofstream file(path);
  file << bench::csv_head();
  for (const Probed& one : all) {
    for (std::size_t i = 0; i != one.launches.size(); ++i)
      file << bench::csv_of({one.target.transport, one.target.pair, cores_of(one.target), i + 1}, one.launches[i]);
  }
  file.flush();
  if (!file) base::throw_errno(("writing " + path).c_str());
}

/// The delays of all launches: --dial, or else HEADWAY_DIAL. Empty: none.
std::string dials_of(const ProbeRequest& request) {
  const char* const given = std::getenv("HEADWAY_DIAL");
  return request.dial.empty() && given != nullptr ? given : request.dial;
}

void write_plot(const std::string& path, const std::vector<Probed>& all) {
  std::vector<PlottedPair> pairs;
  for (const Probed& one : all) {
    pairs.push_back({fmt::format("{}, {}", one.target.transport, name_of_pair(one.target)), one.launches, &one.result});
  }
  std::ofstream file(path);
  file << plot_of(pairs);
  file.flush();
  if (!file) base::throw_errno(("writing " + path).c_str());
}

int probe(const ProbeRequest& request, const Outputs& outputs, const std::vector<std::string>& command_line) {
  const std::vector<ProbeTarget> targets = probe_targets(request);
  std::vector<ProbedPeer> peers = outputs.peers ? probed_peers() : std::vector<ProbedPeer>();
  const std::vector<Probed> all = measure(request, targets, peers);
  std::vector<Json> records;
  for (const Probed& one : all) {
    Json record = record_of(one.target, one.result);
    if (const std::string dials = dials_of(request); !dials.empty()) record["dials"] = dials;
    records.push_back(std::move(record));
    if (outputs.json == "-") continue;
    if (outputs.osu)
      std::cout << osu_blocks(one.target, bench::measured_sizes(one.launches));
    else if (outputs.json.empty())
      std::cout << (records.size() > 1 ? "\n" : "") << probe_table(one.target, one.result, dials_of(request));
  }
  if (!peers.empty() && outputs.json != "-" && (outputs.osu || outputs.json.empty()))
    std::cout << "\n" << peer_table(peers);
  std::cout << std::flush;
  if (!outputs.csv.empty()) write_csv(outputs.csv, all);
  if (outputs.save) {
    for (const std::string& path : save_probe(command_line, records))
      std::cerr << fmt::format("{}: kept as {}\n", command_name, path);
  }
  if (!outputs.plot.empty()) write_plot(outputs.plot, all);
  for (Json& record : peer_records(peers)) records.push_back(std::move(record));
  if (!outputs.json.empty()) bench::write_json(outputs.json, bench::result_file(command_line, records));
  return 0;
}

}  // namespace

int probe_command(int argc, char** argv) {
  bench::CommandLine app(
      "Measures o, g, L and G of the frames between two PEs, and what the library needs for a message. Each launch is "
      "a run of its own; intervals hold what further launches give with 95 %.",
      command_name);
  ProbeRequest request;
  Outputs outputs;
  Calibration calibration;
  add_options(app, request, outputs);
  add_calibration_options(app, calibration, outputs);
  if (const auto status = app.parse(argc, argv, [&] { complete(app, request, calibration, outputs); })) return *status;
  base::Settings::from_environment();
  base::DialSettings::from_environment();
  if (base::available_cores() < 2)
    std::cerr << fmt::format("{}: one core for two PEs: times include the switches between them\n", command_name);
  try {
    if (calibration.wanted) return calibrate(request, calibration, outputs, {argv, argv + argc});
    return probe(request, outputs, {argv, argv + argc});
  } catch (const SettingError& error) {
    std::cerr << fmt::format("{}: {}\n", command_name, error.what());
    return exit_status::unusable_arguments;
  } catch (const LaunchFailed& error) {
    std::cerr << fmt::format("{}: {}\n", command_name, error.what());
    return error.status;
  }
}

}  // namespace headway::tools
