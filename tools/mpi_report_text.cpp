// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_report_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <headway/base/counted.hpp>

namespace headway::tools {
namespace {

using bench::Json;
using mpi_report::kinds;
using mpi_report::size_classes;

constexpr std::size_t functions_shown = 12;

std::string title_of(const std::string& mpi) {
  return mpi == "openmpi" ? "Open MPI" : mpi == "mpich" ? "MPICH" : "an MPI of the standard ABI";
}

double percent_of(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// "0", "64 B", "1 KiB", "2 MiB": 2^(c-1) bytes.
std::string bytes_text(std::size_t log2) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return fmt::format("{} {}", std::uint64_t(1) << log2 % 10, units[std::min<std::size_t>(log2 / 10, 4)]);
}

std::string class_text(std::size_t c) {
  return c == 0 ? "empty" : c == 1 ? "1 B" : fmt::format("{} to below {}", bytes_text(c - 1), bytes_text(c));
}

std::string functions_text(const MpiTotals& totals) {
  std::string text = fmt::format("{:<28} {:>12} {:>16} {:>10} {:>7}   {}\n", "calls of all ranks", "calls", "bytes",
                                 "seconds", "% run", "seconds of a rank");
  for (std::size_t i = 0; i < totals.functions.size() && i < functions_shown; ++i) {
    const MpiFunction& one = totals.functions[i];
    text += fmt::format("{:<28} {:>12} {:>16} {:>10.3g} {:>7.1f}   {:.3g} to {:.3g}\n", one.name, one.calls, one.bytes,
                        one.seconds, percent_of(one.seconds, totals.rank_seconds), one.seconds_min, one.seconds_max);
  }
  if (totals.functions.size() > functions_shown) {
    double seconds = 0;
    std::uint64_t calls = 0;
    std::vector<std::string> names;
    for (std::size_t i = functions_shown; i < totals.functions.size(); ++i) {
      calls += totals.functions[i].calls;
      seconds += totals.functions[i].seconds;
      names.push_back(totals.functions[i].name.substr(4));
    }
    text += fmt::format("{:<28} {:>12} {:>16} {:>10.3g} {:>7.1f}   {}\n", fmt::format("{} others", names.size()), calls,
                        "", seconds, percent_of(seconds, totals.rank_seconds), fmt::join(names, ", "));
  }
  return text;
}

std::string sizes_text(const MpiTotals& totals) {
  std::string text =
      fmt::format("{:<28} {:>16} {:>16} {:>16}\n", "messages by size", "point to point", "in collectives", "one-sided");
  for (std::size_t c = 0; c < size_classes; ++c) {
    const auto& sizes = totals.sums.sizes;
    if (sizes[0][c] + sizes[1][c] + sizes[2][c] == 0) continue;
    text += fmt::format("{:<28} {:>16} {:>16} {:>16}\n", class_text(c), sizes[0][c], sizes[1][c], sizes[2][c]);
  }
  text += fmt::format("{:<28} {:>16} {:>16} {:>16}\n", "all", totals.messages(mpi_report::point_to_point),
                      totals.messages(mpi_report::in_collectives), totals.messages(mpi_report::one_sided_kind));
  return text;
}

std::string partners_text(const MpiTotals& totals) {
  if (totals.pairs == 0) return "";
  const std::uint64_t messages = totals.messages(mpi_report::point_to_point);
  const auto share = [&](mpi_report::Layout layout) {
    return percent_of(double(totals.sums.layout_messages[layout]), double(messages));
  };
  return fmt::format(
      "partners: {:.3g} of a rank on average, {} at most; {} of ranks\n"
      "datatypes of messages: {:.0f} % named, {:.0f} % contiguous, {:.0f} % with gaps\n",
      totals.partners_mean(), totals.partners_max, base::counted(totals.pairs, "pair"), share(mpi_report::named),
      share(mpi_report::contiguous), share(mpi_report::with_gaps));
}

Json sizes_json(const std::uint64_t (&sizes)[size_classes]) {
  Json all = Json::array();
  for (std::size_t c = 0; c < size_classes; ++c) {
    if (sizes[c] == 0) continue;
    all.push_back({{"from_bytes", c == 0 ? 0 : std::uint64_t(1) << (c - 1)},
                   {"below_bytes", std::uint64_t(1) << c},
                   {"messages", sizes[c]}});
  }
  return all;
}

Json rank_json(const MpiWorld& world, const MpiRank& rank) {
  const mpi_report::RankFile& file = rank.file();
  Json one = {{"rank", file.rank},
              {"host", file.host},
              {"ended", file.finalized != 0},
              {"seconds", rank.seconds(file.last_ticks - file.start_ticks)}};
  double seconds = 0, waiting = 0;
  for (int i = 0; i < mpi_report::function_count; ++i) {
    seconds += rank.seconds(file.functions[i].ticks);
    if (mpi_report::waits(mpi_report::functions[i].group)) waiting += rank.seconds(file.functions[i].ticks);
  }
  one["mpi_seconds"] = seconds;
  one["waiting_seconds"] = waiting;
  one["exchanges"] = file.exchanges;
  one["partners"] = Json::array();
  for (std::size_t i = 0; i < world.size; ++i) {
    const mpi_report::Partner& to = rank.to(i);
    if (to.messages + to.received + to.one_sided + to.block_bytes == 0) continue;
    one["partners"].push_back({{"rank", i},
                               {"messages", to.messages},
                               {"bytes", to.bytes},
                               {"received", to.received},
                               {"exchanges", to.exchanges},
                               {"frames", to.frames},
                               {"answers", to.answers},
                               {"one_sided", to.one_sided},
                               {"one_sided_bytes", to.one_sided_bytes},
                               {"block_bytes", to.block_bytes}});
  }
  return one;
}

}  // namespace

std::string to_text(const MpiTotals& totals, const std::vector<MpiPattern>& patterns) {
  std::string text = fmt::format(
      "{} of {} on {}, {}, {:.3g} s: MPI {:.1f} % of the time, waiting in it {:.1f} %\n",
      base::counted(totals.size, "rank"), std::filesystem::path(totals.program).filename().string(),
      base::counted(totals.hosts.size(), "host"), title_of(totals.mpi), totals.seconds,
      percent_of(totals.mpi_seconds, totals.rank_seconds), percent_of(totals.waiting_seconds, totals.rank_seconds));
  if (totals.ranks < totals.size) {
    text += fmt::format("only {} of {} left counts; on several hosts name a folder that all share: --files DIR\n",
                        totals.ranks, base::counted(totals.size, "rank"));
  }
  if (totals.ended < totals.ranks)
    text += fmt::format("{} did not call MPI_Finalize: counts until its last call\n",
                        base::counted(totals.ranks - totals.ended, "rank"));
  if (totals.calls == 0) return text + "It called none of the functions that are counted.\n";
  text += "\n" + functions_text(totals) + "\n" + sizes_text(totals) + "\n" + partners_text(totals);
  for (const MpiPattern& pattern : patterns) {
    text += fmt::format("\n{}{}: {}\n  -> {}\n", pattern.name,
                        !pattern.stable   ? ""
                        : *pattern.stable ? ", stable"
                                          : ", not stable",
                        pattern.evidence, pattern.advice);
  }
  if (patterns.empty()) text += "\nno pattern that Headway would change\n";
  return text;
}

Json to_json(const MpiWorld& world, const MpiTotals& totals, const std::vector<MpiPattern>& patterns) {
  Json record = {{"bench", "mpi-report"},
                 {"mpi", totals.mpi},
                 {"program", totals.program},
                 {"pes", totals.size},
                 {"ranks_with_counts", totals.ranks},
                 {"ranks_ended", totals.ended},
                 {"hosts", totals.hosts},
                 {"seconds", totals.seconds},
                 {"rank_seconds", totals.rank_seconds},
                 {"mpi_seconds", totals.mpi_seconds},
                 {"waiting_seconds", totals.waiting_seconds}};
  record["functions"] = Json::array();
  for (const MpiFunction& one : totals.functions) {
    record["functions"].push_back({{"name", one.name},
                                   {"calls", one.calls},
                                   {"bytes", one.bytes},
                                   {"seconds", one.seconds},
                                   {"seconds_min", one.seconds_min},
                                   {"seconds_max", one.seconds_max}});
  }
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    record["messages"][mpi_report::kind_names[kind]] = {{"messages", totals.sums.messages[kind]},
                                                        {"bytes", totals.sums.bytes[kind]},
                                                        {"sizes", sizes_json(totals.sums.sizes[kind])}};
  }
  for (std::size_t layout = 0; layout < mpi_report::layouts; ++layout) {
    record["datatypes"][mpi_report::layout_names[layout]] = {{"messages", totals.sums.layout_messages[layout]},
                                                             {"bytes", totals.sums.layout_bytes[layout]}};
  }
  record["exchanges"] = {{"exchanges", totals.sums.exchanges},
                         {"messages", totals.sums.exchange_messages},
                         {"partners", totals.sums.exchange_partners},
                         {"with_same_list", totals.sums.repeated},
                         {"with_same_partners", totals.sums.repeated_partners}};
  record["any_source"] = totals.sums.any_source;
  record["failed_tests"] = totals.sums.failed_tests;
  record["patterns"] = Json::array();
  for (const MpiPattern& pattern : patterns) {
    record["patterns"].push_back({{"name", pattern.name},
                                  {"stable", pattern.stable ? Json(*pattern.stable) : Json()},
                                  {"evidence", pattern.evidence},
                                  {"advice", pattern.advice},
                                  {"figures", pattern.figures}});
  }
  record["ranks"] = Json::array();
  for (const MpiRank& rank : world.ranks) record["ranks"].push_back(rank_json(world, rank));
  return record;
}

}  // namespace headway::tools
