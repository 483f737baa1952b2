// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/base/format_error.hpp>
#include <probe/samples.hpp>

namespace headway::bench {
namespace {

template <class Value>
void read(const Json& json, const char* name, Value& value) {
  try {
    value = json.at(name).get<Value>();
  } catch (const Json::exception& error) {
    throw FormatError(fmt::format("samples of a probe: {}: {}", name, error.what()));
  }
}

}  // namespace

Json to_json(const ProbeLaunch& launch) {
  Json samples = Json::array(), costs = Json::array();
  for (const ProbeSample& one : launch.samples) {
    samples.push_back({{"bytes", one.bytes},
                       {"messages", one.messages},
                       {"one_ns", one.one_ns},
                       {"burst_ns", one.burst_ns},
                       {"delay_ns", one.delay_ns},
                       {"delayed_ns", one.delayed_ns},
                       {"receive_ns", one.receive_ns}});
  }
  for (const CostSample& one : launch.costs) {
    costs.push_back(
        {{"bytes", one.bytes}, {"aggregated", one.aggregated}, {"pack_ns", one.pack_ns}, {"handle_ns", one.handle_ns}});
  }
  return {{"bench", "probe"}, {"samples", samples}, {"costs", costs}};
}

ProbeLaunch probe_launch_of(const Json& json) {
  ProbeLaunch launch;
  Json samples, costs;
  read(json, "samples", samples);
  read(json, "costs", costs);
  for (const Json& from : samples) {
    ProbeSample& to = launch.samples.emplace_back();
    read(from, "bytes", to.bytes);
    read(from, "messages", to.messages);
    read(from, "one_ns", to.one_ns);
    read(from, "burst_ns", to.burst_ns);
    read(from, "delay_ns", to.delay_ns);
    read(from, "delayed_ns", to.delayed_ns);
    read(from, "receive_ns", to.receive_ns);
  }
  for (const Json& from : costs) {
    CostSample& to = launch.costs.emplace_back();
    read(from, "bytes", to.bytes);
    read(from, "aggregated", to.aggregated);
    read(from, "pack_ns", to.pack_ns);
    read(from, "handle_ns", to.handle_ns);
  }
  return launch;
}

std::string csv_head() {
  return "transport,pair,cores,launch,bytes,messages,one_ns,burst_ns,delay_ns,delayed_ns,receive_ns\n";
}

std::string csv_of(const LaunchName& name, const ProbeLaunch& launch) {
  std::string lines;
  for (const ProbeSample& one : launch.samples) {
    lines += fmt::format("{},{},{},{},{},{},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f}\n", name.transport, name.pair,
                         name.cores, name.number, one.bytes, one.messages, one.one_ns, one.burst_ns, one.delay_ns,
                         one.delayed_ns, one.receive_ns);
  }
  return lines;
}

}  // namespace headway::bench
