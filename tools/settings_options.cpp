// SPDX-License-Identifier: BSD-3-Clause
#include "settings_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <headway/base/error.hpp>
#include <iostream>

namespace headway::tools {
namespace {

struct Option {
  const char* names;
  const char* shown;  // in messages
  const char* variable;
  const char* value;
  const char* help;
};

constexpr std::array run_options = {
    Option{"-n,--pes", "--pes", "HEADWAY_PES", "N", "PEs in all [the cores this process may use]"},
    Option{"--pes-per-process", "--pes-per-process", "HEADWAY_PES_PER_PROCESS", "K",
           "PEs as threads of one process [1]"},
    Option{"--transport", "--transport", "HEADWAY_TRANSPORT", "NAME",
           "what carries frames: local, ucx, or sim, which simulates [local]"},
    Option{"--budget", "--budget", "HEADWAY_BUDGET", "SIZE",
           "frame memory of a PE, such as 64M [derived, see `headway doctor`]"},
    Option{"--spill", "--spill", "HEADWAY_SPILL", "SIZE",
           "memory of a PE for what its handlers send beyond the budget [derived]"},
    Option{"--bind", "--bind", "HEADWAY_BIND", "core|none", "pin PEs to cores [core, none when oversubscribed]"},
    Option{
        "--progress", "--progress", "HEADWAY_PROGRESS", "polling|helper|both|thread",
        "what moves frames between hosts: PEs; a thread of each process that sleeps in between; both; or a thread that "
        "never sleeps [polling]"},
    Option{
        "--transfer", "--transfer", "HEADWAY_TRANSFER", "auto|mapped|cma|network|frames",
        "how the content of buffers moves between PEs; network: between hosts, over UCX [auto: what has been fastest]"},
    Option{"--collectives", "--collectives", "HEADWAY_COLLECTIVES", "auto|messages|shared",
           "how reductions and barriers of all PEs go: along a tree, or in memory that they share [auto]"},
    Option{"--check", "--check", "HEADWAY_CHECK", "on|off", "find buffers that are changed before they may be [off]"},
    Option{"--stall", "--stall", "HEADWAY_STALL", "TIME", "report and end when nothing moves for so long [60s]"},
    Option{"--seed", "--seed", "HEADWAY_SEED", "N", "of what is random: data of benchmarks, all that sim decides [1]"},
    Option{
        "--sim", "--sim", "HEADWAY_SIM", "LIST",
        "the simulated network and its troubles, such as "
        "machine=summit,L=2us,o=200ns,compute=1,delay=50us,refuse=0.01,inbox=16,per-process=4,slow=3:100,stop=5@1ms"},
    Option{"--dial", "--dial", "HEADWAY_DIAL", "LIST",
           "delays that are added to the transport, such as o=5us,item_o=100ns,g=10us,L=10us,G=0.5ns,random [none]"},
    Option{"--counts", "--counts", "HEADWAY_COUNTS", "FILE",
           "write there what each PE has sent: frames, bytes, messages, bursts, waits [none]"},
    Option{
        "--trace", "--trace", "HEADWAY_TRACE", "DIR",
        "write to this folder when each PE sent, took and waited for each frame; `headway slopes DIR` reads it [none]"},
    Option{"--costs", "--costs", "HEADWAY_COSTS", "default|probed",
           "costs of a frame from which aggregators derive buffers and routes; probed: those of `headway probe --save` "
           "[default]"},
};

constexpr std::array aggregation_options = {
    Option{"--buffer-bytes", "--buffer-bytes", "HEADWAY_BUFFER_BYTES", "SIZE",
           "buffers of aggregators whose program does not fix them [derived, and adapted]"},
    Option{"--topology", "--topology", "HEADWAY_TOPOLOGY", "NAME",
           "their topology: direct, 1d, 2d, ...; of processes: wps (or pe-to-process), wps-2d, ..., "
           "pp (or process-to-process), ...; of hosts: whs (or pe-to-host), ..., hh (or host-to-host), ... [derived]"},
    Option{"--threshold", "--threshold", "HEADWAY_THRESHOLD", "FRACTION",
           "they send a buffer filled beyond this fraction [derived]"},
    Option{"--cutoff", "--cutoff", "HEADWAY_CUTOFF", "FRACTION",
           "they send a message above this fraction of a buffer by itself [derived]"},
    Option{"--timeout", "--timeout", "HEADWAY_TIMEOUT", "TIME",
           "they send a buffer whose oldest message is older, such as 100us; or none [derived]"},
};

}  // namespace

SettingsOptions::SettingsOptions(bench::CommandLine& app, bool with_aggregation) {
  auto add = [&](const Option& option) {
    app.add_value(option.names, option.value, option.help,
                  [this, variable = option.variable](const std::string& text) { given_[variable] = text; });
  };
  std::ranges::for_each(run_options, add);
  if (with_aggregation) std::ranges::for_each(aggregation_options, add);
}

std::optional<base::Settings> SettingsOptions::apply(const std::string& command) const {
  for (const auto& [variable, text] : given_) ::unsetenv(variable.c_str());
  base::Settings settings = base::Settings::from_environment();
  auto use = [&](const Option& option) {
    const auto found = given_.find(option.variable);
    if (found == given_.end()) return true;
    ::setenv(option.variable, found->second.c_str(), 1);
    try {
      settings = base::Settings::from_environment();
      return true;
    } catch (const SettingError& error) {
      std::string message = error.what();  // "VARIABLE=VALUE: allowed is ..."
      if (message.starts_with(option.variable))
        message = option.shown + message.substr(std::string(option.variable).size());
      std::cerr << fmt::format("{}: {}\n", command, message);
      return false;
    }
  };
  if (!std::ranges::all_of(run_options, use) || !std::ranges::all_of(aggregation_options, use)) return std::nullopt;
  return settings;
}

std::vector<std::string> SettingsOptions::unset_aggregation() {
  std::vector<std::string> removed;
  for (const Option& option : aggregation_options) {
    if (std::getenv(option.variable) == nullptr) continue;
    ::unsetenv(option.variable);
    removed.emplace_back(option.variable);
  }
  return removed;
}

}  // namespace headway::tools
