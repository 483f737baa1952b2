// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/error.hpp>
#include <headway/model/argument.hpp>
#include <headway/model/simgrid_platform.hpp>

namespace headway::model {

namespace {

// SMPI adds so many bytes to each message. Their time is taken off L, or off o where L is shorter.
constexpr double envelope_bytes = 16;

void require_counts(std::size_t pes, std::size_t pes_per_host) {
  require_between("PEs", double(pes), 1, double(platform_pes_max));
  require_between("PEs of a host", double(pes_per_host), 1, double(platform_pes_max));
}

std::string host_name(const Machine& machine, std::size_t host) { return fmt::format("{}-{}", machine.name, host); }

}  // namespace

LogGP network_of(const Machine& machine) {
  if (machine.loggp) return *machine.loggp;
  const AlphaBeta costs = costs_of(machine);
  return {.overhead_ns = costs.alpha_ns / 2, .gap_per_byte_ns = costs.beta_ns_per_byte};
}

std::string simgrid_platform(const Machine& machine, const LogGP& network, std::size_t pes, std::size_t pes_per_host) {
  require_counts(pes, pes_per_host);
  require_at_least("L (ns)", network.latency_ns, 0);
  require_at_least("o (ns)", network.overhead_ns, 0);
  require_positive("G (ns/B)", network.gap_per_byte_ns);
  const std::size_t hosts = (pes + pes_per_host - 1) / pes_per_host;
  const std::string bandwidth = fmt::format("{:.9g}Bps", 1e9 / network.gap_per_byte_ns);
  const double envelope_ns = envelope_bytes * network.gap_per_byte_ns;
  const double of_latency_ns = std::min(envelope_ns, network.latency_ns);
  const double latency_ns = network.latency_ns - of_latency_ns;
  const double overhead_ns = std::max(0.0, network.overhead_ns - (envelope_ns - of_latency_ns) / 2);
  // A message crosses the links of two hosts; within a host it crosses the loopback.
  const std::string link = fmt::format("{:.9g}ns", latency_ns / 2);
  const std::string loopback = fmt::format("{:.9g}ns", latency_ns);
  const std::string overhead = fmt::format("0:{:.9g}:0", overhead_ns * 1e-9);
  std::string text = fmt::format(
      "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform "
      "version=\"4.1\">\n  <!-- {}: o = {:.9g} ns, L = {:.9g} ns, G = {:.9g} ns/B -->\n  <config id=\"General\">\n",
      machine.name, network.overhead_ns, network.latency_ns, network.gap_per_byte_ns);
  // Factors and windows that SimGrid fits to a machine of its own are off. Tests for a message take a little time, so
  // that loops of them end. All messages leave without waiting for their receiver, so that each costs its sender o.
  const std::pair<const char*, std::string> options[] = {
      {"smpi/os", overhead},
      {"smpi/ois", overhead},
      {"smpi/or", overhead},
      {"smpi/simulate-computation", "no"},
      {"smpi/host-speed", "1e9"},
      {"smpi/grow-injected-times", "no"},
      {"smpi/iprobe", "2e-7"},
      {"smpi/test", "1e-7"},
      {"smpi/async-small-thresh", "2147483647"},
      {"smpi/send-is-detached-thresh", "2147483647"},
      {"smpi/lat-factor", "0:1"},
      {"smpi/bw-factor", "0:1"},
      {"smpi/barrier", "ompi_recursivedoubling"},
      {"network/latency-factor", "1"},
      {"network/bandwidth-factor", "1"},
      {"network/crosstraffic", "0"},
      {"network/weight-S", "0"},
      {"network/TCP-gamma", "1e18"},
  };
  for (const auto& [name, value] : options) text += fmt::format("    <prop id=\"{}\" value=\"{}\"/>\n", name, value);
  text += fmt::format(
      "  </config>\n  <cluster id=\"{0}\" prefix=\"{0}-\" suffix=\"\" radical=\"0-{1}\" speed=\"1Gf\" bw=\"{2}\" "
      "lat=\"{3}\"\n           sharing_policy=\"SPLITDUPLEX\" loopback_bw=\"{2}\" "
      "loopback_lat=\"{4}\"/>\n</platform>\n",
      machine.name, hosts - 1, bandwidth, link, loopback);
  return text;
}

std::string simgrid_hosts(const Machine& machine, std::size_t pes, std::size_t pes_per_host) {
  require_counts(pes, pes_per_host);
  std::string text;
  for (std::size_t pe = 0; pe < pes; ++pe) text += host_name(machine, pe / pes_per_host) + '\n';
  return text;
}

}  // namespace headway::model
