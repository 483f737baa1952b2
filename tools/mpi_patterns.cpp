// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_patterns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <headway/base/counted.hpp>
#include <map>
#include <set>

namespace headway::tools {
namespace {

using bench::Json;
using mpi_report::Group;
using mpi_report::Partner;

// Bounds of the rules.
constexpr double mostly = 0.8;            // of exchanges, pairs or bytes
constexpr double same_bytes = 0.98;       // in both directions; ranks that were ended differ by a step
constexpr double in_turns_share = 0.95;   // of the messages of a pair
constexpr double answers_share = 0.25;    // of messages, that answer one from any source
constexpr double gaps_share = 0.1;        // of bytes in datatypes with gaps
constexpr double empty_share = 0.5;       // of the blocks of MPI_Alltoallv
constexpr double tests_a_message = 4;     // that find nothing
constexpr std::size_t all_ranks_min = 8;  // with fewer, partners in a halo are nearly all ranks, too
constexpr double saving_min = 1.5;        // messages for each frame; with fewer an aggregator saves little
constexpr double time_share = 0.01;       // of the run: below, a pattern is not worth a line
constexpr std::uint64_t small_one_sided_bytes = 1024;

double ratio(std::uint64_t a, std::uint64_t b) { return b == 0 ? 0 : double(a) / double(b); }
double percent(double share) { return 100 * share; }

/// A whole number where it is one.
std::string number(double value) {
  return std::abs(value - std::round(value)) < 0.05 ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
}

struct Shape {
  bool fits_grid = false;  // few distances between ranks, and as many bytes in both directions
  std::size_t distances = 0;
  double symmetric = 0;  // share of pairs with as many bytes in both directions
};

Shape shape_of(const MpiWorld& world, const MpiTotals& totals) {
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> bytes;
  std::set<std::size_t> distances;
  for (const MpiRank& rank : world.ranks) {
    const auto from = std::size_t(rank.file().rank);
    for (std::size_t to = 0; to < world.size; ++to) {
      if (rank.to(to).messages == 0) continue;
      bytes[{from, to}] = rank.to(to).bytes;
      distances.insert((to + world.size - from) % world.size);
    }
  }
  std::size_t symmetric = 0;
  for (const auto& [pair, n] : bytes) {
    const auto back = bytes.find({pair.second, pair.first});
    symmetric += back != bytes.end() && double(back->second) >= same_bytes * double(n) &&
                 double(n) >= same_bytes * double(back->second);
  }
  Shape shape;
  shape.distances = distances.size();
  shape.symmetric = bytes.empty() ? 0 : double(symmetric) / double(bytes.size());
  shape.fits_grid = shape.symmetric >= mostly && distances.size() <= 2 * totals.partners_max;
  return shape;
}

std::vector<std::size_t> blocks_of_ranks(std::size_t size, std::size_t ranks_per_host) {
  std::vector<std::size_t> hosts(size);
  for (std::size_t i = 0; i < size; ++i) hosts[i] = i / ranks_per_host;
  return hosts;
}

std::string small_share(const MpiTotals& totals) {
  return fmt::format("{:.0f} % of messages below 1 KiB", percent(totals.share_below(mpi_report::point_to_point, 10)));
}

/// Whether ranks in pairs send in turns, the one side always first: the other one answers.
bool alternates(const MpiWorld& world, const MpiTotals& totals) {
  if (totals.partners_max != 1) return false;
  std::uint64_t in_turns = 0;
  for (const MpiRank& rank : world.ranks) {
    for (std::size_t to = 0; to < world.size; ++to) {
      const Partner& partner = rank.to(to);
      if (partner.messages > 2 && double(partner.answers + 1) >= in_turns_share * double(partner.messages))
        in_turns += partner.messages;
    }
  }
  // Ranks that all send first exchange.
  const auto first_of = [&](std::uint32_t first) {
    return std::ranges::any_of(world.ranks, [&](const MpiRank& rank) {
      for (std::size_t to = 0; to < world.size; ++to)
        if (rank.to(to).messages > 0 && rank.to(to).first == first) return true;
      return false;
    });
  };
  return ratio(in_turns, totals.messages(mpi_report::point_to_point)) >= mostly && first_of(1) && first_of(2);
}

MpiPattern request_reply(const MpiTotals& totals) {
  const std::uint64_t messages = totals.messages(mpi_report::point_to_point);
  MpiPattern pattern{"request-reply", std::nullopt, "", "", {}};
  pattern.evidence = fmt::format(
      "{:.0f} % of messages follow a message from the same rank, {:.0f} % one that any rank "
      "could send; {}",
      percent(ratio(totals.answers, messages)), percent(ratio(totals.answers_to_any, messages)), small_share(totals));
  pattern.advice = fmt::format(
      "use rpc, whose handler answers without a posted receive; expected messages: {} where frames of 16 KiB hold what "
      "is sent between two waits",
      fraction_text(totals.frames, messages));
  pattern.figures = {
      {"answers", totals.answers}, {"answers_to_any", totals.answers_to_any}, {"expected_messages", totals.frames}};
  return pattern;
}

MpiPattern halo(const MpiWorld& world, const MpiTotals& totals, bool stable, std::size_t ranks_per_host) {
  const Shape shape = shape_of(world, totals);
  const std::uint64_t messages = totals.messages(mpi_report::point_to_point);
  const double partners = ratio(totals.sums.exchange_partners, totals.sums.exchanges);
  const double to_neighbour = ratio(totals.sums.exchange_messages, totals.pair_exchanges);
  MpiPattern pattern{shape.fits_grid ? "regular halo" : "irregular halo", stable, "", "", {}};
  pattern.evidence =
      fmt::format("{} in a step ({} in all), {}, {} in {:.0f} % of {}; {} {} to a neighbour and step",
                  number(partners) + (partners < 1.05 ? " neighbour" : " neighbours"), totals.partners_max,
                  small_share(totals), stable ? "the same lists" : "the same neighbours with other lengths",
                  percent(ratio(stable ? totals.sums.repeated : totals.sums.repeated_partners, totals.sums.exchanges)),
                  base::counted(totals.sums.exchanges, "exchange"), number(to_neighbour),
                  to_neighbour < 1.05 ? "message" : "messages");
  pattern.advice = stable ? "use a plan" : "use a plan that is rebuilt when the lists change";
  if (shape.fits_grid) pattern.advice += " (halo::Grid makes that of a regular grid)";
  pattern.advice += fmt::format("; expected messages: {} with one to each neighbour in a step",
                                fraction_text(totals.pair_exchanges, messages));
  const auto hosts = ranks_per_host == 0 ? totals.host_of : blocks_of_ranks(world.size, ranks_per_host);
  const MessagesBetweenHosts between = messages_between_hosts(world, hosts);
  if (between.now > 0) {
    pattern.advice +=
        fmt::format("; between hosts {}, or {} with one stream for each pair of hosts",
                    fraction_text(between.by_partner, between.now), fraction_text(between.by_host, between.now));
  } else {
    pattern.advice += "; between ranks of one host none, the sender copies into the receiver's memory";
  }
  pattern.figures = {
      {"neighbours", partners},
      {"neighbours_max", totals.partners_max},
      {"exchanges", totals.sums.exchanges},
      {"same_lists", ratio(totals.sums.repeated, totals.sums.exchanges)},
      {"same_neighbours", ratio(totals.sums.repeated_partners, totals.sums.exchanges)},
      {"distances", shape.distances},
      {"symmetric_pairs", shape.symmetric},
      {"expected_messages", totals.pair_exchanges},
      {"between_hosts", {{"messages", between.now}, {"expected", between.by_partner}, {"streams", between.by_host}}}};
  return pattern;
}

MpiPattern with_frames(std::string name, std::optional<bool> stable, const MpiTotals& totals) {
  const std::uint64_t messages = totals.messages(mpi_report::point_to_point);
  MpiPattern pattern{std::move(name), stable, "", "", {}};
  pattern.evidence = fmt::format("{} partners of a rank on average ({} at most), {}, the same lists in {:.0f} % of {}",
                                 number(totals.partners_mean()), totals.partners_max, small_share(totals),
                                 percent(ratio(totals.sums.repeated, totals.sums.exchanges)),
                                 base::counted(totals.sums.exchanges, "exchange"));
  if (ratio(messages, totals.frames) >= saving_min) {
    pattern.advice = fmt::format(
        "use an Aggregator; expected messages: {} where frames of 16 KiB hold what is sent to a rank between two waits",
        fraction_text(totals.frames, messages));
  } else {
    pattern.advice = fmt::format(
        "an Aggregator saves little here: {} messages between two waits to the same rank; larger content is worth "
        "send_buffer or Source",
        number(std::max(1.0, ratio(messages, totals.frames))));
  }
  pattern.figures = {{"partners", totals.partners_mean()},
                     {"partners_max", totals.partners_max},
                     {"exchanges", totals.sums.exchanges},
                     {"same_lists", ratio(totals.sums.repeated, totals.sums.exchanges)},
                     {"expected_messages", totals.frames}};
  return pattern;
}

/// At most one pattern for the point-to-point messages.
std::optional<MpiPattern> point_to_point(const MpiWorld& world, const MpiTotals& totals, std::size_t ranks_per_host) {
  const std::uint64_t messages = totals.messages(mpi_report::point_to_point);
  if (messages == 0) return std::nullopt;
  if (ratio(totals.answers_to_any, messages) >= answers_share || alternates(world, totals))
    return request_reply(totals);
  const bool same_lists = ratio(totals.sums.repeated, totals.sums.exchanges) >= mostly;
  const bool same_partners = ratio(totals.sums.repeated_partners, totals.sums.exchanges) >= mostly;
  const bool mutual = ratio(totals.mutual_pairs, totals.pairs) >= mostly &&
                      ratio(totals.sums.exchange_both, totals.sums.exchange_partners) >= mostly;
  const double partners = ratio(totals.sums.exchange_partners, totals.sums.exchanges);
  if (totals.size >= all_ranks_min && partners >= mostly * double(totals.size - 1))
    return with_frames("all-to-all by messages", same_lists, totals);
  // Messages of any lengths to all ranks have the same partners whatever their pattern.
  const bool some_ranks = totals.partners_max + 1 < totals.size;
  if (mutual && (same_lists || (same_partners && some_ranks))) return halo(world, totals, same_lists, ranks_per_host);
  if (same_lists) return with_frames("fixed one-way messages", true, totals);
  return with_frames("irregular messages", false, totals);
}

struct Share {
  std::uint64_t calls = 0, bytes = 0;
  double seconds = 0, uneven = 0;  // of all ranks; beyond the rank that spent the least in the function
  double of(const MpiTotals& totals) const { return totals.rank_seconds > 0 ? seconds / totals.rank_seconds : 0; }
};

template <class Is>
Share share_of(const MpiTotals& totals, Is is) {
  Share share;
  for (const MpiFunction& one : totals.functions) {
    if (!is(one)) continue;
    share.calls += one.calls;
    share.bytes += one.bytes;
    share.seconds += one.seconds;
    share.uneven += one.seconds - one.seconds_min * double(totals.ranks);
  }
  return share;
}

bool has(const std::string& name, std::string_view part) { return name.find(part) != name.npos; }

void add_all_to_all(std::vector<MpiPattern>& patterns, const MpiTotals& totals) {
  const Share share = share_of(totals, [](const MpiFunction& one) {
    return (one.group == Group::collective || one.group == Group::collective_start) && has(one.name, "lltoall");
  });
  if (share.calls == 0) return;
  const double empty = ratio(totals.sums.empty_blocks, totals.sums.blocks);
  MpiPattern pattern{empty >= empty_share ? "sparse all-to-all" : "all-to-all", std::nullopt, "", "", {}};
  pattern.evidence =
      fmt::format("{} with {} blocks, {:.0f} % of them empty, {:.0f} % of the run time",
                  base::counted(share.calls, "call"), totals.sums.blocks, percent(empty), percent(share.of(totals)));
  const std::uint64_t full = totals.sums.blocks - totals.sums.empty_blocks;
  pattern.advice = empty >= empty_share
                       ? fmt::format(
                             "use an Aggregator and quiesce(), or a plan if the blocks stay the same: counts are not "
                             "exchanged; expected messages: {} of the blocks",
                             fraction_text(full, totals.sums.blocks))
                       : "use all_to_all, or one send for each item and quiesce(): no counts, no sorting into blocks";
  pattern.figures = {{"calls", share.calls},
                     {"blocks", totals.sums.blocks},
                     {"empty_blocks", totals.sums.empty_blocks},
                     {"share_of_time", share.of(totals)}};
  patterns.push_back(pattern);
}

void add_reductions(std::vector<MpiPattern>& patterns, const MpiTotals& totals) {
  const Share share = share_of(totals, [](const MpiFunction& one) {
    return has(one.name, "educe") || has(one.name, "can") ? one.name != "MPI_Cancel" : false;
  });
  if (totals.sums.reduced == 0) return;
  MpiPattern pattern{"reductions", std::nullopt, "", "", {}};
  const double small = ratio(totals.sums.reduced_small, totals.sums.reduced);
  pattern.evidence = fmt::format(
      "{}, {:.0f} % of at most 8 KiB, {:.0f} % of the run time, of which {:.0f} % is more than the rank with the least",
      base::counted(share.calls, "call"), percent(small), percent(share.of(totals)),
      percent(share.seconds > 0 ? share.uneven / share.seconds : 0));
  pattern.advice = share.of(totals) < time_share ? "they take little time: nothing to change"
                   : small >= mostly
                       ? "use allreduce_async and compute until the future is ready; on one host the ranks "
                         "reduce in shared memory"
                       : "use allreduce_async in segments and compute meanwhile";
  pattern.figures = {{"calls", share.calls},
                     {"small", small},
                     {"bytes", totals.sums.reduced_bytes},
                     {"share_of_time", share.of(totals)},
                     {"uneven_seconds", share.uneven}};
  patterns.push_back(pattern);
}

void add_one_sided(std::vector<MpiPattern>& patterns, const MpiTotals& totals) {
  const std::uint64_t accesses = totals.messages(mpi_report::one_sided_kind);
  if (accesses == 0) return;
  const double small = totals.share_below(mpi_report::one_sided_kind, 10);
  MpiPattern pattern{"one-sided access", std::nullopt, "", "", {}};
  pattern.evidence = fmt::format("{}, {:.0f} % below {} bytes", base::counted(accesses, "access"), percent(small),
                                 small_one_sided_bytes);
  pattern.advice = small >= mostly ? "use GlobalMemory: load and store on one host, aggregated messages between hosts"
                                   : "use Source and get, or Destination and put, for content of this size";
  pattern.figures = {
      {"accesses", accesses}, {"small", small}, {"bytes", totals.sums.bytes[mpi_report::one_sided_kind]}};
  patterns.push_back(pattern);
}

void add_polling(std::vector<MpiPattern>& patterns, const MpiTotals& totals) {
  const std::uint64_t messages = std::max<std::uint64_t>(totals.messages(mpi_report::point_to_point), 1);
  const double tests = ratio(totals.sums.failed_tests, messages);
  if (tests < tests_a_message) return;
  MpiPattern pattern{"polling", std::nullopt, "", "", {}};
  pattern.evidence =
      fmt::format("{} that found nothing, {} for each message",
                  base::counted(totals.sums.failed_tests, "test or probe", "tests and probes"), number(tests));
  pattern.advice = "use handlers: they run when a message arrives, and quiesce() tells the end";
  pattern.figures = {{"failed_tests", totals.sums.failed_tests}};
  patterns.push_back(pattern);
}

void add_layouts(std::vector<MpiPattern>& patterns, const MpiTotals& totals) {
  const double gaps =
      ratio(totals.sums.layout_bytes[mpi_report::with_gaps], totals.sums.bytes[mpi_report::point_to_point]);
  const Share packs = share_of(totals, [](const MpiFunction& one) { return has(one.name, "ack"); });
  if (gaps < gaps_share && packs.calls == 0) return;
  MpiPattern pattern{"packing", std::nullopt, "", "", {}};
  pattern.evidence = fmt::format("{:.0f} % of bytes in datatypes with gaps; {} of MPI_Pack and MPI_Unpack",
                                 percent(gaps), base::counted(packs.calls, "call"));
  pattern.advice = "use field(array) of an exchange: it copies from array to array, or packs compiled lists";
  pattern.figures = {{"share_with_gaps", gaps}, {"pack_calls", packs.calls}};
  patterns.push_back(pattern);
}

}  // namespace

std::string fraction_text(std::uint64_t part, std::uint64_t whole) {
  if (part == 0) return "0";
  const double times = double(whole) / double(part);
  return times < 1.05 ? "as many" : "1/" + number(times);
}

std::vector<MpiPattern> patterns_of(const MpiWorld& world, const MpiTotals& totals, std::size_t ranks_per_host) {
  std::vector<MpiPattern> patterns;
  if (auto pattern = point_to_point(world, totals, ranks_per_host)) patterns.push_back(std::move(*pattern));
  add_all_to_all(patterns, totals);
  add_reductions(patterns, totals);
  add_one_sided(patterns, totals);
  add_layouts(patterns, totals);
  add_polling(patterns, totals);
  return patterns;
}

}  // namespace headway::tools
