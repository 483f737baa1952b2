// SPDX-License-Identifier: BSD-3-Clause
/// Each rule of the patterns on counts that it applies to, and on similar ones that it does not.
#include "mpi_patterns.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "mpi_report_text.hpp"

namespace headway::tools {
namespace {

using mpi_report::Function;
using mpi_report::RankFile;

/// Ranks that each did `steps` exchanges of the same list.
struct World {
  MpiWorld world;

  explicit World(std::size_t size) {
    world.size = size;
    for (std::size_t i = 0; i < size; ++i) {
      MpiRank& rank = world.ranks.emplace_back(size);
      rank.file().rank = std::int32_t(i);
      rank.file().finalized = 1;
      rank.file().last_ticks = 1'000'000'000;
      std::copy_n("host", 5, rank.file().host);
      std::copy_n("mpich", 6, rank.file().mpi);
    }
  }
  RankFile& file(std::size_t rank) { return world.ranks[rank].file(); }

  /// `each` messages of `bytes` in each of `steps` exchanges.
  void send(std::size_t from, std::size_t to, std::uint64_t steps, std::uint64_t each, std::uint64_t bytes) {
    mpi_report::Partner& partner = world.ranks[from].to(to);
    partner.messages += steps * each;
    partner.bytes += steps * each * bytes;
    partner.exchanges += steps;
    partner.frames += steps;
    file(from).messages[mpi_report::point_to_point] += steps * each;
    file(from).bytes[mpi_report::point_to_point] += steps * each * bytes;
    file(from).sizes[mpi_report::point_to_point][mpi_report::size_class(bytes)] += steps * each;
    file(from).exchange_messages += steps * each;
    file(from).exchange_partners += steps;
    file(from).exchange_both += steps;
    partner.first = 1;
  }
  void exchanges(std::uint64_t steps, std::uint64_t same_lists, std::uint64_t same_partners) {
    for (MpiRank& rank : world.ranks) {
      rank.file().exchanges = steps;
      rank.file().repeated = same_lists;
      rank.file().repeated_partners = same_partners;
    }
  }
  void call(Function function, std::uint64_t calls, double seconds) {
    for (MpiRank& rank : world.ranks) rank.file().functions[int(function)] = {calls, 0, std::uint64_t(seconds * 1e9)};
  }
  std::vector<MpiPattern> patterns(std::size_t ranks_per_host = 0) const {
    return patterns_of(world, totals_of(world), ranks_per_host);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const MpiPattern& pattern : patterns()) all.push_back(pattern.name);
    return all;
  }
};
using Names = std::vector<std::string>;

/// A ring of ranks with `each` messages to both neighbours.
World ring(std::uint64_t each = 1, std::uint64_t same_lists = 99, std::uint64_t same_partners = 99) {
  World world(6);
  for (std::size_t i = 0; i < 6; ++i)
    for (const std::size_t distance : {1, 5}) world.send(i, (i + distance) % 6, 100, each, 800);
  world.exchanges(100, same_lists, same_partners);
  return world;
}

TEST(MpiPatterns, a_ring_with_the_same_lists_is_a_stable_regular_halo) {
  const MpiPattern halo = ring(7).patterns().at(0);
  EXPECT_EQ(halo.name, "regular halo");
  EXPECT_EQ(halo.stable, true);
  EXPECT_NE(
      halo.evidence.find("2 neighbours in a step (2 in all), 100 % of messages below 1 KiB, the same lists in 99 %"),
      std::string::npos)
      << halo.evidence;
  EXPECT_NE(halo.advice.find("use a plan"), std::string::npos) << halo.advice;
  EXPECT_NE(halo.advice.find("expected messages: 1/7 "), std::string::npos) << halo.advice;
  EXPECT_NE(halo.advice.find("between ranks of one host none"), std::string::npos) << halo.advice;
}

TEST(MpiPatterns, expected_messages_follow_from_the_counts_and_the_hosts) {
  EXPECT_NE(ring(2).patterns()[0].advice.find("expected messages: 1/2 "), std::string::npos);
  EXPECT_NE(ring(1).patterns()[0].advice.find("expected messages: as many "), std::string::npos);
  // Hosts of three ranks: ranks 2 and 3, 5 and 0 are neighbours; in each direction 2 pairs, one stream.
  const MpiPattern halo = ring(2).patterns(3)[0];
  EXPECT_EQ(halo.figures["between_hosts"]["messages"], 800);
  EXPECT_EQ(halo.figures["between_hosts"]["expected"], 400);
  EXPECT_EQ(halo.figures["between_hosts"]["streams"], 200);
  EXPECT_NE(halo.advice.find("between hosts 1/2, or 1/4 with one stream"), std::string::npos) << halo.advice;
}

TEST(MpiPatterns, a_halo_whose_lengths_change_is_not_stable_and_one_whose_partners_change_is_none) {
  const MpiPattern halo = ring(1, 10, 99).patterns().at(0);
  EXPECT_EQ(halo.name, "regular halo");
  EXPECT_EQ(halo.stable, false);
  EXPECT_NE(halo.advice.find("rebuilt"), std::string::npos) << halo.advice;
  EXPECT_EQ(ring(1, 10, 10).names(), Names{"irregular messages"});
}

TEST(MpiPatterns, lengths_that_change_between_all_ranks_are_irregular) {
  World world(4);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j) world.send(i, j, 100, 25, 16);
  world.exchanges(100, 10, 99);
  EXPECT_EQ(world.names(), Names{"irregular messages"});
  world.exchanges(100, 99, 99);
  EXPECT_EQ(world.names(), Names{"regular halo"});
}

TEST(MpiPatterns, lists_of_other_lengths_in_each_direction_make_a_halo_irregular) {
  World world = ring();
  for (std::size_t i = 0; i < 6; ++i) world.send(i, (i + 1) % 6, 0, 0, 0);
  EXPECT_EQ(world.names(), Names{"regular halo"});
  for (std::size_t i = 0; i < 6; ++i) world.world.ranks[i].to((i + 1) % 6).bytes += 5000 * i + 5000;
  EXPECT_EQ(world.names(), Names{"irregular halo"});
}

TEST(MpiPatterns, messages_that_nobody_sends_back_are_no_halo) {
  World world(6);
  for (std::size_t i = 0; i < 5; ++i) world.send(i, i + 1, 100, 20, 16);
  world.exchanges(100, 99, 99);
  for (MpiRank& rank : world.world.ranks) rank.file().exchange_both = 0;
  const MpiPattern one_way = world.patterns().at(0);
  EXPECT_EQ(one_way.name, "fixed one-way messages");
  EXPECT_NE(one_way.advice.find("use an Aggregator; expected messages: 1/20 "), std::string::npos) << one_way.advice;
}

TEST(MpiPatterns, an_aggregator_is_not_recommended_where_frames_hold_one_message) {
  World world = ring(1, 10, 10);
  EXPECT_NE(world.patterns()[0].advice.find("saves little"), std::string::npos) << world.patterns()[0].advice;
  World many = ring(20, 10, 10);
  EXPECT_NE(many.patterns()[0].advice.find("use an Aggregator; expected messages: 1/20 "), std::string::npos);
}

TEST(MpiPatterns, answers_to_any_source_are_request_and_reply) {
  World world = ring();
  world.world.ranks[0].to(1).answers = world.world.ranks[0].to(1).answers_to_any = 600;
  EXPECT_EQ(world.names(), Names{"request-reply"});
  world.world.ranks[0].to(1).answers_to_any = 60;
  EXPECT_EQ(world.names(), Names{"regular halo"});
}

TEST(MpiPatterns, a_pair_that_sends_in_turns_is_request_and_reply_and_one_that_sends_at_once_is_not) {
  World world(2);
  world.send(0, 1, 100, 1, 8);
  world.send(1, 0, 100, 1, 8);
  world.exchanges(100, 99, 99);
  world.world.ranks[0].to(1).answers = 99;
  world.world.ranks[1].to(0).answers = 99;
  EXPECT_EQ(world.names(), Names{"regular halo"});  // both send first
  world.world.ranks[1].to(0).answers = 100;
  world.world.ranks[1].to(0).first = 2;
  EXPECT_EQ(world.names(), Names{"request-reply"});
}

TEST(MpiPatterns, messages_to_all_of_many_ranks_are_all_to_all_and_to_all_of_few_a_halo) {
  for (const std::size_t size : {4, 9}) {
    World world(size);
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j)
        if (i != j) world.send(i, j, 100, 1, 800);
    world.exchanges(100, 99, 99);
    EXPECT_EQ(world.names(), Names{size == 4 ? "regular halo" : "all-to-all by messages"});
  }
}

TEST(MpiPatterns, empty_blocks_make_an_all_to_all_sparse) {
  World world(4);
  world.call(Function::Alltoallv, 10, 0.1);
  for (MpiRank& rank : world.world.ranks) {
    rank.file().blocks = 40;
    rank.file().empty_blocks = 10;
  }
  EXPECT_EQ(world.names(), Names{"all-to-all"});
  for (MpiRank& rank : world.world.ranks) rank.file().empty_blocks = 30;
  EXPECT_EQ(world.names(), Names{"sparse all-to-all"});
  EXPECT_NE(world.patterns()[0].advice.find("expected messages: 1/4 of the blocks"), std::string::npos)
      << world.patterns()[0].advice;
}

TEST(MpiPatterns, reductions_that_take_time_get_advice_by_their_length) {
  World world(4);
  world.call(Function::Allreduce, 10, 0.001);
  for (MpiRank& rank : world.world.ranks) rank.file().reduced = rank.file().reduced_small = 10;
  EXPECT_NE(world.patterns().at(0).advice.find("nothing to change"), std::string::npos);
  world.call(Function::Allreduce, 10, 0.2);
  EXPECT_EQ(world.names(), Names{"reductions"});
  EXPECT_NE(world.patterns()[0].advice.find("shared memory"), std::string::npos);
  for (MpiRank& rank : world.world.ranks) rank.file().reduced_small = 1;
  EXPECT_NE(world.patterns()[0].advice.find("segments"), std::string::npos);
}

TEST(MpiPatterns, polling_packing_and_one_sided_access_are_named_from_their_bounds_on) {
  World world = ring();
  EXPECT_EQ(world.names(), Names{"regular halo"});
  world.file(0).failed_tests = 3 * 1200;
  EXPECT_EQ(world.names(), Names{"regular halo"});
  world.file(0).failed_tests = 5 * 1200;
  EXPECT_EQ(world.names(), (Names{"regular halo", "polling"}));
  world.file(0).layout_bytes[mpi_report::with_gaps] = 6 * 2 * 100 * 800 / 20;
  EXPECT_EQ(world.names(), (Names{"regular halo", "polling"}));
  world.file(0).layout_bytes[mpi_report::with_gaps] *= 4;
  EXPECT_EQ(world.names(), (Names{"regular halo", "packing", "polling"}));
  world.file(0).messages[mpi_report::one_sided_kind] = 10;
  world.file(0).sizes[mpi_report::one_sided_kind][4] = 10;
  EXPECT_EQ(world.names(), (Names{"regular halo", "one-sided access", "packing", "polling"}));
}

TEST(MpiPatterns, a_program_that_does_nothing_has_none) { EXPECT_EQ(World(4).names(), Names{}); }

TEST(MpiPatterns, the_text_names_ranks_without_counts_and_ranks_that_did_not_end) {
  World world = ring();
  world.file(1).finalized = 0;
  world.world.ranks.pop_back();
  world.call(Function::Isend, 200, 0.1);
  const MpiTotals totals = totals_of(world.world);
  const std::string text = to_text(totals, patterns_of(world.world, totals));
  for (const char* part : {"only 5 of 6 ranks left counts", "--files DIR", "1 rank did not call MPI_Finalize"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(MpiPatterns, a_file_that_is_no_rank_file_is_refused_by_name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("mpi_patterns_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(read_mpi_worlds(folder).empty());
  std::ofstream(folder / "a.rank") << "something else";
  try {
    (void)read_mpi_worlds(folder);
    ADD_FAILURE() << "it was read";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("a.rank' is no rank file of this version"), std::string::npos)
        << error.what();
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headway::tools
