// SPDX-License-Identifier: BSD-3-Clause
#include "bench_peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <message/message.hpp>
#include <peers/hpcc_report.hpp>
#include <record/command_line.hpp>

namespace headway::tools {
namespace {

/// The peer that is a program of its own, with an MPI of its own.
const std::string hpcc_mode = "hpcc";
/// The peer that has no MPI.
const std::string ucx_mode = "ucx";
bool is_on_mpi(const std::string& mode) { return mode != hpcc_mode && mode != ucx_mode; }

/// The MPIs that do a benchmark's work: for zerocopy Open MPI without CMA as well, for reduce MPICH with its progress
/// thread, after those that are preferred.
std::vector<Peer> peers_of(const Benchmark& one) {
  std::vector<Peer> peers = find_peers(), changed;
  if (one.has_buffers) changed = without_cma(peers);
  if (one.has_skew) changed = with_progress_thread(peers);
  peers.insert(peers.end(), changed.begin(), changed.end());
  return peers;
}

/// A peer as it is asked for: "mpi-direct" on the preferred MPI, or "mpi-direct:mpich".
struct PeerChoice {
  std::string text, mode, mpi;
  bool by_name;  // else as one of those that are available
};

bool is_here(const std::string& mode, const std::vector<Peer>& peers) {
  if (mode == hpcc_mode) return find_hpcc().is_complete();
  if (mode == ucx_mode) return !find_ucx_peer().empty();
  return !peers.empty();
}

/// Modes that only some peers have, with their requirement. A peer lists its modes without starting MPI.
struct RareMode {
  std::string mode, needs;
};
const std::vector<RareMode> rare_modes = {{"partitioned", "an MPI with version 4 of the standard"},
                                          {"petsc", "PETSc when this was built (Debian: apt install petsc-dev)"},
                                          {"tpetra",
                                           "Trilinos when this was built (Debian: apt install libtrilinos-tpetra-dev "
                                           "libtrilinos-kokkos-dev libtrilinos-teuchos-dev)"}};

const RareMode* rare_mode(const std::string& mode) {
  const auto found = std::ranges::find(rare_modes, mode, &RareMode::mode);
  return found == rare_modes.end() ? nullptr : &*found;
}

bool has_mode(const Peer& peer, const std::string& mode) {
  if (rare_mode(mode) == nullptr) return true;
  const ChildResult listed = run_child({peer.program, "halo", "--list-modes"}, {}, std::chrono::seconds(20));
  return listed.status == 0 && listed.output.find(mode) != std::string::npos;
}

/// "available" becomes all there are, which may be none; a name that is none is refused.
std::vector<PeerChoice> expand_peers(const Request& request, const std::vector<Peer>& peers) {
  const std::vector<std::string>& modes = benchmark(request.bench).peers;
  std::vector<std::string> allowed = modes;
  std::vector<PeerChoice> choices;
  const auto add = [&](std::string text, bool by_name) {
    if (const RareMode* const rare = rare_mode(text)) {
      const auto has = [&](const Peer& peer) { return has_mode(peer, text); };
      const auto found = std::ranges::find_if(peers, has);
      if (found == peers.end() && !by_name) return;
      if (found == peers.end() && !peers.empty())
        throw SettingError(fmt::format("--peer: '{}' needs {}; there is none", text, rare->needs));
      if (found != peers.end()) text += ":" + found->mpi;
    }
    const auto colon = std::min(text.find(':'), text.size());
    choices.push_back({text, text.substr(0, colon), text.substr(std::min(colon + 1, text.size())), by_name});
  };
  allowed.emplace_back("available");
  for (const Peer& peer : peers) {
    for (const std::string& mode : modes) {
      if (is_on_mpi(mode) && has_mode(peer, mode)) allowed.push_back(mode + ":" + peer.mpi);
    }
  }
  for (const std::string& text : request.peers) {
    const std::string chosen = bench::parse_choice("--peer", text, allowed);
    if (chosen != "available") add(chosen, true);
    for (const std::string& mode : modes) {
      if (chosen == "available" && is_here(mode, peers)) add(mode, false);
    }
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

void check_peer(const PeerChoice& choice, const Peer& peer, const Request& request, const Work& work,
                const base::Settings& settings) {
  if (peer.mpi.starts_with("mpich") && settings.pes > base::available_cores() && !work.of_cpu) {
    throw SettingError(fmt::format(
        "--peer: '{}' is not allowed with {}; MPICH waits by spinning, allowed are at most {}, as many as cores here{}",
        choice.text, base::counted(settings.pes, "PE"), base::available_cores(),
        benchmark(request.bench).has_skew ? ", or --measure cpu, which counts that" : ""));
  }
  for (const std::string& size : request.sizes) {
    if (size == "0" || std::stoull(size) > bench::peer_bytes_max) {
      throw SettingError(fmt::format("--peer: '{}' is not allowed with --bytes {}; allowed is 1 B to {}", choice.text,
                                     size, base::format_bytes(bench::peer_bytes_max)));
    }
  }
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

/// It makes four updates a word of 8 bytes, whatever the others do.
BenchCase hpcc_case(const Work& work, std::size_t pes) {
  if (work.bytes != "8") {
    throw SettingError(fmt::format("--peer: '{}' is not allowed with --bytes {}; allowed is 8", hpcc_mode, work.bytes));
  }
  const Peer hpcc = find_hpcc();
  if (!hpcc.is_complete()) {
    throw SettingError(
        fmt::format("--peer: '{}' needs the program hpcc and the mpirun of {}, of which {} is not in PATH (Debian: apt "
                    "install hpcc)",
                    hpcc_mode, hpcc.mpi, hpcc.program.empty() ? "the first" : "the second"));
  }
  if (std::stoul(work.log2) < peers::hpcc_log2_min) {
    throw SettingError(fmt::format("--peer: '{}' is not allowed with --log2 {}; allowed is {} or more", hpcc_mode,
                                   work.log2, peers::hpcc_log2_min));
  }
  BenchCase made;
  made.role = BenchCase::Role::peer;
  made.label = hpcc_mode;
  made.command = {program_directory() + "/headway-peer-hpcc",
                  "--log2",
                  work.log2,
                  "--pes",
                  std::to_string(pes),
                  "--json",
                  "-",
                  "--"};
  append(made.command, launch_command(hpcc, pes));
  made.environment = launch_environment(hpcc);
  return made;
}

/// Between two processes that it starts itself.
BenchCase ucx_case(const Work& work, std::size_t pes) {
  const std::string program = find_ucx_peer();
  if (program.empty()) {
    throw SettingError(fmt::format(
        "--peer: '{}' needs UCX and none was found when this was built; install it (Debian: apt install libucx-dev) "
        "and build again",
        ucx_mode));
  }
  if (pes != 2)
    throw SettingError(
        fmt::format("--peer: '{}' is not allowed with {}; allowed is 2", ucx_mode, base::counted(pes, "PE")));
  const std::uint64_t bytes = std::stoull(work.bytes);
  if (bytes > bench::peer_bytes_max) {
    throw SettingError(fmt::format("--peer: '{}' is not allowed with --bytes {}; allowed is up to {}", ucx_mode, bytes,
                                   base::format_bytes(bench::peer_bytes_max)));
  }
  BenchCase made;
  made.role = BenchCase::Role::peer;
  made.label = ucx_mode;
  made.command = {program, "--json", "-"};
  append(made.command, work.arguments);
  return made;
}

}  // namespace

std::vector<BenchCase> peer_cases(const Request& request, const Work& work, const base::Settings& settings) {
  const std::vector<Peer> peers = peers_of(benchmark(request.bench));
  std::vector<BenchCase> cases;
  for (const PeerChoice& choice : expand_peers(request, peers)) {
    if (choice.mode == hpcc_mode) {
      if (choice.by_name || work.bytes == "8") cases.push_back(hpcc_case(work, settings.pes));
      continue;
    }
    if (choice.mode == ucx_mode) {
      cases.push_back(ucx_case(work, settings.pes));
      continue;
    }
    const Peer& peer = choose_mpi(choice, peers);
    const bool spins = peer.mpi.starts_with("mpich") && settings.pes > base::available_cores();
    if (rare_mode(choice.mode) != nullptr && !choice.by_name && spins) continue;
    check_peer(choice, peer, request, work, settings);
    cases.push_back(mpi_case(request, work, choice, peer, settings.pes));
  }
  return cases;
}

std::vector<std::string> peers_here(const Benchmark& one) {
  std::vector<std::string> names;
  const std::vector<Peer> peers = peers_of(one);
  for (const std::string& mode : one.peers) {
    if (mode == ucx_mode) {
      names.push_back(find_ucx_peer().empty() ? mode + " (not built)" : mode);
      continue;
    }
    if (mode == hpcc_mode) {
      names.push_back(find_hpcc().is_complete() ? mode : mode + " (not installed)");
      continue;
    }
    for (const Peer& peer : peers) {
      if (!has_mode(peer, mode)) continue;
      names.push_back(
          fmt::format("{}:{}{}", mode, peer.mpi, peer.launcher.empty() ? " (its mpirun is not in PATH)" : ""));
    }
  }
  return names;
}

}  // namespace headway::tools
