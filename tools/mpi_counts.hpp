// SPDX-License-Identifier: BSD-3-Clause
/// What the ranks of an MPI program counted, read from their files (src/mpi_report) and added up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mpi_report/rank_file.hpp>
#include <string>
#include <utility>
#include <vector>

namespace headway::tools {

/// The counts of one rank: a copy of its file.
class MpiRank {
 public:
  explicit MpiRank(std::size_t size);
  mpi_report::RankFile& file() { return *reinterpret_cast<mpi_report::RankFile*>(words_.data()); }
  const mpi_report::RankFile& file() const { return *reinterpret_cast<const mpi_report::RankFile*>(words_.data()); }
  mpi_report::Partner& to(std::size_t rank) { return file().partners()[rank]; }
  const mpi_report::Partner& to(std::size_t rank) const { return file().partners()[rank]; }
  double seconds(std::uint64_t ticks) const { return double(ticks) / file().ticks_per_second; }

 private:
  std::vector<std::uint64_t> words_;
};

/// One MPI_COMM_WORLD; the ranks are in order.
struct MpiWorld {
  std::vector<MpiRank> ranks;  // those with a file
  std::size_t size = 0;
};

/// The worlds with rank files in the folder, in the order of their start. Throws SettingError for a file that is
/// none, or that another version has written.
std::vector<MpiWorld> read_mpi_worlds(const std::filesystem::path& folder);

struct MpiFunction {
  std::string name;
  mpi_report::Group group{};
  std::uint64_t calls = 0, bytes = 0;
  double seconds = 0, seconds_min = 0, seconds_max = 0;  // of all ranks; of one
};

/// What all ranks counted together.
struct MpiTotals {
  std::size_t size = 0, ranks = 0, ended = 0;  // `ended`: called MPI_Finalize
  std::string mpi, program;
  std::vector<std::string> hosts;                                 // each once
  std::vector<std::size_t> host_of;                               // by rank; of a rank without a file 0
  double seconds = 0;                                             // of the rank that took longest
  double rank_seconds = 0, mpi_seconds = 0, waiting_seconds = 0;  // of all ranks
  std::vector<MpiFunction> functions;                             // those that were called, longest first
  mpi_report::RankFile sums{};                                    // its counters alone
  std::uint64_t calls = 0;
  std::size_t pairs = 0;             // of ranks, by direction, with messages
  std::size_t mutual_pairs = 0;      // of these, those with messages back
  std::size_t partners_max = 0;      // of a rank
  std::size_t senders = 0;           // ranks that sent messages
  std::uint64_t frames = 0;          // aggregators' frames that would hold the messages
  std::uint64_t pair_exchanges = 0;  // messages of a plan: one to each partner in each exchange
  std::uint64_t answers = 0, answers_to_any = 0;

  std::uint64_t messages(mpi_report::Kind kind) const { return sums.messages[kind]; }
  double partners_mean() const { return senders == 0 ? 0 : double(pairs) / double(senders); }
  /// Share of the messages of a kind with fewer bytes than 2^log2.
  double share_below(mpi_report::Kind kind, std::size_t log2) const;
};

MpiTotals totals_of(const MpiWorld& world);

/// Messages between hosts if each host has `ranks_per_host` ranks; as the program sends them, by a plan with one to
/// each partner, and by a plan that sends one for each pair of hosts.
struct MessagesBetweenHosts {
  std::uint64_t now = 0, by_partner = 0, by_host = 0;
};
MessagesBetweenHosts messages_between_hosts(const MpiWorld& world, const std::vector<std::size_t>& host_of);

}  // namespace headway::tools
