#include "bench_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <iostream>
#include <message/message.hpp>
#include <record/command_line.hpp>

#include "bench_limit.hpp"
#include "bench_request.hpp"
#include "settings_options.hpp"

namespace headway::tools {
namespace {

const char* const command_name = "headway bench";

/// A peer as it is asked for: "mpi-direct" on the preferred MPI, or "mpi-direct:mpich".
struct PeerChoice {
  std::string text, mode, mpi;
};

/// "available" becomes all there are, which may be none; a name that is none is refused.
std::vector<PeerChoice> expand_peers(const Request& request, const std::vector<Peer>& peers) {
  const std::vector<std::string>& modes = benchmark(request.bench).peers;
  std::vector<std::string> allowed = modes, expanded;
  allowed.emplace_back("available");
  for (const Peer& peer : peers) {
    for (const std::string& mode : modes) allowed.push_back(mode + ":" + peer.mpi);
  }
  for (const std::string& text : request.peers) {
    const std::string chosen = bench::parse_choice("--peer", text, allowed);
    if (chosen != "available")
      expanded.push_back(chosen);
    else if (!peers.empty())
      expanded.insert(expanded.end(), modes.begin(), modes.end());
  }
  std::vector<PeerChoice> choices;
  for (const std::string& text : expanded) {
    const auto colon = std::min(text.find(':'), text.size());
    choices.push_back({text, text.substr(0, colon), text.substr(std::min(colon + 1, text.size()))});
  }
  return choices;
}

const Peer& choose_mpi(const PeerChoice& choice, const std::vector<Peer>& peers) {
  if (peers.empty()) {
    throw SettingError(fmt::format(
        "--peer: '{}' needs an MPI and none was found when this was built; install one (Debian: apt install "
        "libopenmpi-dev openmpi-bin) and build again",
        choice.text));
  }
  const auto found = choice.mpi.empty() ? peers.begin() : std::ranges::find(peers, choice.mpi, &Peer::mpi);
  if (found->launcher.empty()) {
    throw SettingError(
        fmt::format("--peer: '{}' needs the mpirun of {}, which is not in PATH", choice.text, found->mpi));
  }
  return *found;
}

void check_peer(const PeerChoice& choice, const Peer& peer, const Request& request, const Settings& settings) {
  if (peer.mpi == "mpich" && settings.pes > available_cores()) {
    throw SettingError(fmt::format(
        "--peer: '{}' is not allowed with {} PEs; MPICH waits by spinning, allowed are at most the {} cores here",
        choice.text, settings.pes, available_cores()));
  }
  for (const std::string& size : request.sizes) {
    if (!size.empty() && (size == "0" || std::stoull(size) > bench::peer_bytes_max)) {
      throw SettingError(fmt::format("--peer: '{}' is not allowed with --bytes {}; allowed is 1 B to {}", choice.text,
                                     size, format_bytes(bench::peer_bytes_max)));
    }
  }
}

void print_list() {
  for (const Benchmark& one : benchmarks()) std::cout << fmt::format("{:<14} {}; verified\n", one.name, one.help);
  std::cout << fmt::format(
      "\nmodes          direct (a frame per message), 1d, 2d, 3d, ...; of {} also limit, the hand-written loop\n",
      fmt::join(names_of(&Benchmark::has_limit), ", "));
  const auto peers = find_peers();
  for (const Benchmark& one : benchmarks()) {
    std::vector<std::string> names;
    for (const Peer& peer : peers) {
      for (const std::string& mode : one.peers) {
        names.push_back(
            fmt::format("{}:{}{}", mode, peer.mpi, peer.launcher.empty() ? " (its mpirun is not in PATH)" : ""));
      }
    }
    if (!names.empty()) std::cout << fmt::format("peers of {}: {}\n", one.name, fmt::join(names, ", "));
  }
  std::cout << (peers.empty() ? "peers          none: no MPI was found when this was built\n" : "") << std::flush;
}

/// The part of the command line that all cases of a group share.
struct Work {
  std::string title;
  std::string parameter;         // what sets the groups apart: log2 of the words, or bytes of a message
  std::string updates_per_word;  // of a table
  std::vector<std::string> arguments;
};

std::vector<Work> works_of(const Request& request) {
  std::vector<Work> works;
  if (benchmark(request.bench).has_table) {
    for (const std::string& log2 : request.log2s) {
      std::string updates = request.updates_per_word;
      if (updates.empty()) updates = std::to_string(std::max(4ull, (1ull << 24) >> std::min(24, std::stoi(log2))));
      works.push_back(
          {fmt::format("2^{} words", log2), log2, updates, {"--log2", log2, "--updates-per-word", updates}});
    }
    return works;
  }
  for (const std::string& bytes : request.sizes) {
    works.push_back({fmt::format("{} bytes", bytes), bytes, "", {"--bytes", bytes}});
    if (!request.messages.empty())
      works.back().arguments.insert(works.back().arguments.end(), {"--messages", request.messages});
  }
  return works;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

BenchCase headway_case(const Request& request, const Work& work, const std::string& mode, const std::string& buffer) {
  BenchCase made;
  made.label = buffer.empty() || request.buffers.size() < 2 ? mode : mode + " " + buffer;
  made.command = {program_directory() + "/headway-" + request.bench, "--mode", mode, "--json", "-"};
  append(made.command, work.arguments);
  if (!buffer.empty()) append(made.command, {"--buffer-bytes", buffer});
  if (!request.type.empty()) append(made.command, {"--type", request.type});
  append(made.command, request.passed_on);
  return made;
}

BenchCase mpi_case(const Request& request, const Work& work, const PeerChoice& choice, const Peer& peer,
                   std::size_t pes) {
  BenchCase made;
  made.role = BenchCase::Role::peer;
  made.label = choice.text;
  made.command = launch_command(peer, pes);
  append(made.command, {request.bench, "--mode", choice.mode, "--json", "-"});
  append(made.command, work.arguments);
  made.environment = launch_environment(peer);
  if (choice.mode == "mpi-alltoallv") made.bucket_sizes = request.peer_buffers;
  return made;
}

BenchCase limit_of(const Request& request, const Work& work, const Settings& settings) {
  if (benchmark(request.bench).has_table) return limit_of_table(work.parameter, work.updates_per_word, settings);
  return limit_of_messages(request, work.parameter, settings);
}

std::vector<BenchGroup> groups_of(const Request& request, const Settings& settings) {
  if (!benchmark(request.bench).has_modes) return limit_groups(request, settings);
  const std::vector<Peer> peers = find_peers();
  const std::vector<PeerChoice> choices = expand_peers(request, peers);
  std::vector<std::string> buffers = request.buffers;
  if (buffers.empty()) buffers.emplace_back();
  std::vector<BenchGroup> groups;
  for (const Work& work : works_of(request)) {
    BenchGroup group{work.title, {}};
    for (const std::string& mode : request.modes) {
      if (mode == limit_mode) {
        group.cases.push_back(limit_of(request, work, settings));
        continue;
      }
      for (const std::string& buffer : buffers) group.cases.push_back(headway_case(request, work, mode, buffer));
    }
    for (const PeerChoice& choice : choices) {
      const Peer& peer = choose_mpi(choice, peers);
      check_peer(choice, peer, request, settings);
      group.cases.push_back(mpi_case(request, work, choice, peer, settings.pes));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

PlanOrStatus make_plan(int argc, char** argv) {
  Request request;
  CLI::App app("Runs a benchmark: one start of its program per case and repeat, interleaved; every run is verified.",
               command_name);
  add_options(app, request);
  const SettingsOptions settings_options(app);
  if (const auto status = bench::parse_command_line(app, argc, argv)) return {{}, *status};
  if (request.list) return print_list(), PlanOrStatus{};
  const auto unusable = [](const std::string& message) {
    std::cerr << command_name << ": " << message << '\n';
    return PlanOrStatus{{}, exit_status::unusable_arguments};
  };
  if (request.bench.empty())
    return unusable(fmt::format("a benchmark is needed; allowed are {}", fmt::join(all_names(), ", ")));
  const auto settings = settings_options.apply(command_name);
  if (!settings) return {{}, exit_status::unusable_arguments};
  try {
    complete(request, *settings);
    return {BenchPlan{.bench = request.bench,
                      .groups = groups_of(request, *settings),
                      .repeats = request.repeats,
                      .limit = request.limit,
                      .osu = request.osu,
                      .json = request.json},
            0};
  } catch (const SettingError& error) {
    return unusable(error.what());
  }
}

}  // namespace headway::tools
