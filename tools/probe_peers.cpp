// SPDX-License-Identifier: BSD-3-Clause
#include "probe_peers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "outcome.hpp"
#include "peers.hpp"

namespace headway::tools {
namespace {

using bench::Json;

constexpr std::size_t short_bytes = 8, long_bytes = 1 << 20;
constexpr std::size_t short_trips = 20'000, long_trips = 200, messages = 200'000;

ProbedPeer headway_itself() {
  const std::string directory = program_directory();
  ProbedPeer peer{"headway", "", directory + "/headway-pingpong", directory + "/headway-stream", {}, {}};
  peer.environment = {{"HEADWAY_PES", "2"}, {"HEADWAY_PES_PER_PROCESS", "1"}, {"HEADWAY_TRANSPORT", "local"}};
  for (const std::string& program : {peer.one_way, peer.rate}) {
    if (::access(program.c_str(), X_OK) != 0) peer.missing = fmt::format("{} was not built", program);
  }
  return peer;
}

ProbedPeer on_mpi(const std::string& mpi, const std::vector<Peer>& built) {
  ProbedPeer peer{mpi, "", "pingpong", "stream", {}, {}};
  const auto found = std::ranges::find(built, mpi, &Peer::mpi);
  if (found == built.end()) {
    peer.missing = fmt::format("it was not found when this was built (Debian: apt install {})",
                               mpi == "openmpi" ? "libopenmpi-dev openmpi-bin" : "libmpich-dev mpich");
  } else if (found->launcher.empty()) {
    peer.missing = "its mpirun is not in PATH";
  } else {
    peer.launch = launch_command(*found, 2);
    peer.environment = launch_environment(*found);
  }
  return peer;
}

Json run_once(const ProbedPeer& peer, const std::string& program, const char* mode, std::size_t bytes,
              std::size_t count, std::chrono::seconds limit) {
  std::vector<std::string> command = peer.launch;
  const std::string chosen = peer.launch.empty() ? "direct" : mode;
  for (const std::string& word :
       {program, std::string("--mode"), chosen, std::string("--bytes"), std::to_string(bytes),
        std::string("--messages"), std::to_string(count), std::string("--json"), std::string("-")})
    command.push_back(word);
  const ChildResult result = run_child(command, peer.environment, limit);
  if (result.timed_out)
    throw std::runtime_error(fmt::format("{} did not end within {} s (--time-limit)", program, limit.count()));
  const auto begin = result.output.find('{');
  Json record = begin == std::string::npos ? Json() : Json::parse(result.output.substr(begin), nullptr, false);
  if (result.status != 0 || !record.is_object() || !record.value("verified", false)) {
    throw std::runtime_error(
        fmt::format("{} ended with status {} ({})", program, result.status, meaning(result.status)));
  }
  return record;
}

double one_way_us(const Json& record) { return record.at("one_way_us").at("median").get<double>(); }

void measure(ProbedPeer& peer, std::chrono::seconds limit) {
  const double short_us = one_way_us(run_once(peer, peer.one_way, "mpi", short_bytes, short_trips, limit));
  const double rate =
      run_once(peer, peer.rate, "mpi-direct", short_bytes, messages, limit).at("messages_per_second").get<double>();
  const double long_us = one_way_us(run_once(peer, peer.one_way, "mpi", long_bytes, long_trips, limit));
  peer.one_way_us.push_back(short_us);
  peer.messages_per_second.push_back(rate);
  peer.gigabytes_per_second.push_back(double(long_bytes) / long_us * 1e-3);
}

struct Row {
  const char* name;
  std::vector<double> ProbedPeer::*values;
  double unit;
};
const Row rows[] = {{"one way, 8 bytes, us", &ProbedPeer::one_way_us, 1},
                    {"8 bytes, both ways, million messages/s", &ProbedPeer::messages_per_second, 1e6},
                    {"one way, 1 MiB, GB/s", &ProbedPeer::gigabytes_per_second, 1}};

}  // namespace

std::vector<ProbedPeer> probed_peers() {
  const std::vector<Peer> built = find_peers();
  return {headway_itself(), on_mpi("openmpi", built), on_mpi("mpich", built)};
}

void measure_peers(std::vector<ProbedPeer>& peers, const std::optional<CorePair>& cores, std::chrono::seconds limit,
                   const std::function<void(const std::string&)>& step) {
  std::optional<RunOn> here;
  if (cores) here.emplace(*cores);
  for (ProbedPeer& peer : peers) {
    step(peer.name);
    if (!peer.missing.empty()) continue;
    try {
      measure(peer, limit);
    } catch (const std::exception& error) {
      peer.missing = error.what();
    }
  }
}

std::string peer_table(const std::vector<ProbedPeer>& peers) {
  std::string text = fmt::format("two processes of this host, {:<20}", "each message alone");
  for (const ProbedPeer& peer : peers) text += fmt::format(" {:>10}", peer.name);
  text += "\n";
  for (const Row& row : rows) {
    text += fmt::format("  {:<46}", row.name);
    for (const ProbedPeer& peer : peers) {
      text += peer.missing.empty() ? fmt::format(" {:>10.4g}", bench::spread_of(peer.*row.values).median / row.unit)
                                   : fmt::format(" {:>10}", "missing");
    }
    text += "\n";
  }
  for (const ProbedPeer& peer : peers) {
    if (!peer.missing.empty()) text += fmt::format("  {} is missing: {}\n", peer.name, peer.missing);
  }
  return text;
}

std::vector<Json> peer_records(const std::vector<ProbedPeer>& peers) {
  std::vector<Json> records;
  for (const ProbedPeer& peer : peers) {
    Json& record = records.emplace_back(Json{{"bench", "probe"}, {"pair", "process"}, {"peer", peer.name}});
    if (!peer.missing.empty()) {
      record["missing"] = peer.missing;
      continue;
    }
    record["rounds"] = peer.one_way_us.size();
    record["one_way_us"] = bench::to_json(bench::spread_of(peer.one_way_us));
    record["messages_per_second"] = bench::to_json(bench::spread_of(peer.messages_per_second));
    record["gigabytes_per_second"] = bench::to_json(bench::spread_of(peer.gigabytes_per_second));
  }
  return records;
}

}  // namespace headway::tools
