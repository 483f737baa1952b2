// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <headway/base/error.hpp>
#include <optional>
#include <set>

namespace headway::tools {
namespace {

using mpi_report::Partner;
using mpi_report::RankFile;

/// Empty for a rank that ended while it made its file.
std::optional<MpiRank> read_rank(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  RankFile head{};
  in.read(reinterpret_cast<char*>(&head), sizeof head);
  if (in && head.version == 0 && head.size == 0) return std::nullopt;
  const bool whole = bool(in) && head.size > 0 && head.rank >= 0 && head.rank < head.size;
  if (!whole || head.version != mpi_report::rank_file_version)
    throw SettingError(fmt::format("'{}' is no rank file of this version of Headway", path.string()));
  const std::size_t bytes = RankFile::bytes_of(std::size_t(head.size));
  if (std::filesystem::file_size(path) != bytes)
    throw SettingError(
        fmt::format("'{}' has {} bytes; expected are {}", path.string(), std::filesystem::file_size(path), bytes));
  MpiRank rank{std::size_t(head.size)};
  in.seekg(0);
  in.read(reinterpret_cast<char*>(&rank.file()), std::streamsize(bytes));
  if (!in) throw SystemError(fmt::format("'{}' cannot be read", path.string()));
  return rank;
}

void add(std::uint64_t* to, const std::uint64_t* from, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] += from[i];
}

void add_counters(RankFile& to, const RankFile& from) {
  for (std::size_t kind = 0; kind < mpi_report::kinds; ++kind)
    add(to.sizes[kind], from.sizes[kind], mpi_report::size_classes);
  add(to.messages, from.messages, mpi_report::kinds);
  add(to.bytes, from.bytes, mpi_report::kinds);
  add(to.layout_messages, from.layout_messages, mpi_report::layouts);
  add(to.layout_bytes, from.layout_bytes, mpi_report::layouts);
  for (std::uint64_t RankFile::*const counter :
       {&RankFile::any_source, &RankFile::failed_tests, &RankFile::blocks, &RankFile::empty_blocks, &RankFile::reduced,
        &RankFile::reduced_small, &RankFile::reduced_bytes, &RankFile::exchanges, &RankFile::exchange_messages,
        &RankFile::exchange_partners, &RankFile::exchange_sources, &RankFile::exchange_both, &RankFile::repeated,
        &RankFile::repeated_partners, &RankFile::repeated_messages, &RankFile::closed_by_collective})
    to.*counter += from.*counter;
}

void add_functions(MpiTotals& totals, const MpiWorld& world) {
  for (int i = 0; i < mpi_report::function_count; ++i) {
    MpiFunction one{std::string("MPI_") + mpi_report::functions[i].name, mpi_report::functions[i].group};
    one.seconds_min = 1e300;
    for (const MpiRank& rank : world.ranks) {
      const mpi_report::FunctionRow& row = rank.file().functions[i];
      one.calls += row.calls;
      one.bytes += row.bytes;
      const double seconds = rank.seconds(row.ticks);
      one.seconds += seconds;
      one.seconds_min = std::min(one.seconds_min, seconds);
      one.seconds_max = std::max(one.seconds_max, seconds);
    }
    if (one.calls == 0) continue;
    totals.calls += one.calls;
    totals.mpi_seconds += one.seconds;
    if (mpi_report::waits(one.group)) totals.waiting_seconds += one.seconds;
    totals.functions.push_back(one);
  }
  std::ranges::stable_sort(totals.functions, std::greater<>(), &MpiFunction::seconds);
}

}  // namespace

MpiRank::MpiRank(std::size_t size) : words_((RankFile::bytes_of(size) + 7) / 8) {
  file().size = std::int32_t(size);
  file().ticks_per_second = 1e9;
}

std::vector<MpiWorld> read_mpi_worlds(const std::filesystem::path& folder) {
  std::map<std::uint64_t, MpiWorld> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".rank") continue;
    std::optional<MpiRank> rank = read_rank(entry.path());
    if (!rank) continue;
    MpiWorld& world = found[rank->file().world];
    world.size = std::size_t(rank->file().size);
    world.ranks.push_back(std::move(*rank));
  }
  std::vector<MpiWorld> worlds;
  for (auto& [number, world] : found) {
    std::ranges::sort(world.ranks, std::less<>(), [](const MpiRank& rank) { return rank.file().rank; });
    worlds.push_back(std::move(world));
  }
  std::ranges::sort(worlds, std::less<>(), [](const MpiWorld& one) { return one.ranks.front().file().start_ns; });
  return worlds;
}

double MpiTotals::share_below(mpi_report::Kind kind, std::size_t log2) const {
  std::uint64_t below = 0;
  for (std::size_t c = 0; c <= log2 && c < mpi_report::size_classes; ++c) below += sums.sizes[kind][c];
  return sums.messages[kind] == 0 ? 0 : double(below) / double(sums.messages[kind]);
}

MpiTotals totals_of(const MpiWorld& world) {
  MpiTotals totals;
  totals.size = world.size;
  totals.ranks = world.ranks.size();
  totals.host_of.assign(world.size, 0);
  std::set<std::pair<int, int>> sent;
  for (const MpiRank& rank : world.ranks) {
    const RankFile& file = rank.file();
    totals.mpi = file.mpi;
    totals.program = file.program;
    totals.ended += file.finalized != 0;
    auto host = std::ranges::find(totals.hosts, file.host);
    if (host == totals.hosts.end()) host = totals.hosts.insert(host, file.host);
    totals.host_of[std::size_t(file.rank)] = std::size_t(host - totals.hosts.begin());
    const double seconds = rank.seconds(file.last_ticks - file.start_ticks);
    totals.seconds = std::max(totals.seconds, seconds);
    totals.rank_seconds += seconds;
    add_counters(totals.sums, file);
    std::size_t partners = 0;
    for (std::size_t i = 0; i < world.size; ++i) {
      const Partner& partner = rank.to(i);
      partners += partner.messages > 0;
      totals.frames += partner.frames;
      totals.pair_exchanges += partner.exchanges;
      totals.answers += partner.answers;
      totals.answers_to_any += partner.answers_to_any;
      if (partner.messages > 0) sent.emplace(file.rank, int(i));
    }
    totals.senders += partners > 0;
    totals.partners_max = std::max(totals.partners_max, partners);
  }
  totals.pairs = sent.size();
  for (const auto& [from, to] : sent) totals.mutual_pairs += sent.contains({to, from});
  add_functions(totals, world);
  return totals;
}

MessagesBetweenHosts messages_between_hosts(const MpiWorld& world, const std::vector<std::size_t>& host_of) {
  MessagesBetweenHosts all;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> streams;  // the most exchanges of any pair of ranks
  for (const MpiRank& rank : world.ranks) {
    for (std::size_t i = 0; i < world.size; ++i) {
      const std::size_t from = host_of[std::size_t(rank.file().rank)];
      const Partner& partner = rank.to(i);
      if (from == host_of[i] || partner.messages == 0) continue;
      all.now += partner.messages;
      all.by_partner += partner.exchanges;
      std::uint64_t& stream = streams[{from, host_of[i]}];
      stream = std::max(stream, partner.exchanges);
    }
  }
  for (const auto& [hosts, exchanges] : streams) all.by_host += exchanges;
  return all;
}

}  // namespace headway::tools
