// SPDX-License-Identifier: BSD-3-Clause
#include "probe_launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/wire/loader.hpp>
#include <optional>

#include "outcome.hpp"
#include "peers.hpp"

namespace headway::tools {
namespace {

std::string probe_program() { return program_directory() + "/headway-probe"; }

ProbeTarget in_one_host(const std::string& transport, const std::string& pair) {
  ProbeTarget target{transport, pair, {probe_program()}, {}};
  target.environment = {{"HEADWAY_PES", "2"},
                        {"HEADWAY_PES_PER_PROCESS", pair == "thread" ? "2" : "1"},
                        {"HEADWAY_TRANSPORT", transport}};
  return target;
}

/// All simulated PEs are in one process; the simulation says which of them belong to one.
ProbeTarget simulated(const std::string& pair, const std::string& conditions) {
  ProbeTarget target = in_one_host("sim", pair);
  target.environment[1].value = "2";
  const char* const processes = pair == "thread" ? "per-process=2" : "per-process=1";
  target.environment.push_back({"HEADWAY_SIM", conditions.empty() ? processes : conditions + "," + processes});
  return target;
}

/// Processes of this host that share no memory, so that frames between them use the network library.
ProbeTarget over_wire(const wire::Plugin& plugin) {
  ProbeTarget target = in_one_host(plugin.name, "process");
  target.environment.push_back({"HEADWAY_SHARE", "process"});
  if (plugin.mpi.empty()) return target;
  Peer launched{plugin.mpi, probe_program(), find_launcher(plugin.mpi)};
  if (plugin.mpi == "openmpi") launched.launcher_options = openmpi_options();
  target.command = launch_command(launched, 2);
  const std::vector<Variable> further = launch_environment(launched);
  target.environment.insert(target.environment.end(), further.begin(), further.end());
  return target;
}

ProbeTarget between_hosts(const wire::Plugin& plugin, const ProbeRequest& request) {
  ProbeTarget target{plugin.name, "host", {program_directory() + "/headway"}, {}};
  for (const char* argument : {"run", "--pes", "2", "--pes-per-process", "1", "--transport"})
    target.command.emplace_back(argument);
  target.command.insert(target.command.end(), {plugin.name, "--hosts", request.hosts});
  if (!request.agent.empty()) target.command.insert(target.command.end(), {"--agent", request.agent});
  target.command.push_back(probe_program());
  return target;
}

/// PEs of a launcher that this command does not know. The options follow the line.
ProbeTarget by_command(const std::string& line) {
  return {"command", "command", {"/bin/sh", "-c", "exec " + line + " \"$@\"", "headway-probe"}, {}};
}

/// Why frames cannot be sent by this plug-in, or empty.
std::string why_not(const wire::Plugin& plugin) {
  if (plugin.path.empty()) return "it was not built";
  if (!plugin.problem.empty()) return plugin.problem;
  return !plugin.mpi.empty() && find_launcher(plugin.mpi).empty() ? "its launcher is missing" : "";
}

void choose_cores(std::vector<ProbeTarget>& targets) {
  const CorePairs pairs = core_pairs(base::allowed_processors());
  std::vector<ProbeTarget> apart;
  for (ProbeTarget& target : targets) {
    if (target.pair == "host" || target.transport == "sim") continue;
    target.cores = pairs.sharing ? pairs.sharing : pairs.apart;
    if (!pairs.sharing || !pairs.apart || target.transport != "local" || target.pair != "process") continue;
    apart.push_back(target);
    apart.back().cores = pairs.apart;
  }
  targets.insert(targets.end(), apart.begin(), apart.end());
}

}  // namespace

std::vector<ProbeTarget> probe_targets(const ProbeRequest& request) {
  if (!request.command.empty()) return {by_command(request.command)};
  const auto wanted = [&](const char* pair) {
    return request.pairs.empty() || std::ranges::find(request.pairs, pair) != request.pairs.end();
  };
  const auto asked = [&](const std::string& transport) {
    return std::ranges::find(request.transports, transport) != request.transports.end();
  };
  const bool between = !request.hosts.empty() && wanted("host");
  std::vector<ProbeTarget> targets;
  if (asked("sim") && !base::has_simulation)
    throw SettingError("--transport: 'sim' is not available: this build has no simulation");
  for (const char* pair : {"thread", "process"}) {
    if (wanted(pair) && (request.transports.empty() || asked("local"))) targets.push_back(in_one_host("local", pair));
    if (wanted(pair) && asked("sim")) targets.push_back(simulated(pair, request.sim));
  }
  for (const wire::Plugin& plugin : wire::known_plugins(base::plugin_dir())) {
    if (!request.transports.empty() && !asked(plugin.name)) continue;
    if (const std::string reason = why_not(plugin); !reason.empty()) {
      if (request.transports.empty()) continue;
      throw SettingError(fmt::format("--transport: '{}' is not available: {}", plugin.name, reason));
    }
    if (wanted("process")) targets.push_back(over_wire(plugin));
    if (between && plugin.name == "ucx") targets.push_back(between_hosts(plugin, request));
  }
  choose_cores(targets);
  if (targets.empty()) {
    throw SettingError(fmt::format(
        "--pair: '{}' is not available here; allowed are thread and process of local and sim, process of {}",
        fmt::join(request.pairs, ","), "other transports, and host with --hosts over ucx"));
  }
  const auto is_there = [&](auto member, const std::string& name) {
    return std::ranges::any_of(targets, [&](const ProbeTarget& one) { return one.*member == name; });
  };
  for (const std::string& one : request.transports) {
    if (!is_there(&ProbeTarget::transport, one))
      throw SettingError(fmt::format("--transport: '{}' has no pair {}", one, fmt::join(request.pairs, ",")));
  }
  for (const std::string& one : request.pairs) {
    if (!is_there(&ProbeTarget::pair, one))
      throw SettingError(
          fmt::format("--pair: '{}' is not available with these transports; host needs --hosts and ucx", one));
  }
  if (!request.hosts.empty() && !is_there(&ProbeTarget::pair, "host"))
    throw SettingError("--hosts: no pair of hosts is measured; it needs the transport ucx");
  return targets;
}

bench::ProbeLaunch launch_probe(const ProbeTarget& target, const ProbeRequest& request, std::size_t number) {
  std::vector<std::string> command = target.command;
  const auto add = [&](const char* option, std::size_t value) {
    command.insert(command.end(), {option, std::to_string(value)});
  };
  add("--points", request.points);
  add("--bytes-max", request.bytes_max);
  add("--messages", request.messages);
  add("--repeats", request.repeats);
  std::vector<Variable> environment = target.environment;
  environment.push_back({"HEADWAY_SEED", std::to_string(request.seed + number)});
  environment.push_back({"HEADWAY_COSTS", "default"});  // results do not follow from earlier ones
  if (!request.dial.empty()) environment.push_back({"HEADWAY_DIAL", request.dial});
  std::optional<RunOn> here;
  double line = 0;
  if (target.cores) {
    here.emplace(*target.cores);
    line = line_ns(*target.cores);
  }
  const ChildResult result = run_child(command, environment, request.limit);
  const std::string label = fmt::format("{}, {}", target.transport, target.pair);
  if (result.timed_out) {
    throw LaunchFailed(fmt::format("{}: not finished within {} s (--time-limit)", label, request.limit.count()), 1);
  }
  const auto begin = result.output.find('{');
  const bench::Json record =
      begin == std::string::npos ? bench::Json() : bench::Json::parse(result.output.substr(begin), nullptr, false);
  if (result.status != 0 || !record.is_object()) {
    throw LaunchFailed(fmt::format("{}: {} ended with status {} ({})\n{}", label, command.front(), result.status,
                                   meaning(result.status), tail(result.errors, 20)),
                       result.status == 0 ? 1 : result.status);
  }
  bench::ProbeLaunch launch = bench::probe_launch_of(record);
  launch.line_ns = line;
  return launch;
}

}  // namespace headway::tools
