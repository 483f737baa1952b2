// SPDX-License-Identifier: BSD-3-Clause
// get() and put() that the network itself does, between processes that are as on hosts of their own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/epoch.hpp>
#include <headway/base/bytes.hpp>
#include <headway/transfer/transfer.hpp>
#include <headway/transport/wire/endpoint.hpp>
#include <optional>
#include <string>
#include <support/run_pes.hpp>
#include <support/transfers.hpp>
#include <vector>

namespace headway {
namespace {

using namespace literals;
using testing::are_words_of;
using testing::catch_run;
using testing::expect_run;
using testing::Outcome;
using testing::Settings;
using testing::Shape;
using testing::words_of;

/// Every process by itself, over UCX; `tls` are its ways, by default what there is.
Settings over_ucx(const std::string& way, const std::string& tls = "") {
  Settings settings{{"HEADWAY_TRANSPORT", "ucx"},
                    {"HEADWAY_SHARE", "process"},
                    {"HEADWAY_PLUGIN_DIR", HEADWAY_PLUGINS},
                    {"HEADWAY_TRANSFER", way}};
  if (!tls.empty()) settings.push_back({"UCX_TLS", tls});
  return settings;
}

/// Of the wire; all 0 where there is one process.
wire::Port::Counts counts_of(Pe& pe) {
  const auto* const endpoint = dynamic_cast<wire::WireEndpoint*>(&pe.engine().endpoint());
  return endpoint == nullptr ? wire::Port::Counts() : endpoint->port().counts();
}

/// Each PE gets from the next and puts to it, `times` times, in an epoch. Returns what its process sent and read
/// meanwhile.
wire::Port::Counts get_and_put(Pe& pe, std::size_t words, int times) {
  const std::size_t next = (pe.id() + 1) % pe.size(), before = (pe.id() + pe.size() - 1) % pe.size();
  const auto mine = words_of(pe.id(), words);
  std::vector<std::uint64_t> got(words), received(words);
  Aggregator<RemoteSource<std::uint64_t>, RemoteDestination<std::uint64_t>> offers(pe);
  std::optional<std::pair<RemoteSource<std::uint64_t>, RemoteDestination<std::uint64_t>>> offer;
  offers.on([&](const auto& source, const auto& destination) { offer.emplace(source, destination); });
  int given_back = 0, filled = 0, gets = 0, puts = 0;
  const auto begin = counts_of(pe);
  for (int i = 0; i < times; ++i) {
    std::ranges::fill(got, 0);
    std::ranges::fill(received, 0);
    const Source<std::uint64_t> source(pe, mine, [&] { ++given_back; });
    const Destination<std::uint64_t> destination(pe, received, [&] { ++filled; });
    offers.send(before, source.remote(), destination.remote());
    pe.quiesce();
    Epoch epoch(pe);
    get(pe, offer->first, got, [&] { ++gets; });
    put(pe, mine, offer->second, [&] { ++puts; });
    epoch.wait();
    EXPECT_EQ(gets, i + 1) << "the epoch has not waited";
    EXPECT_EQ(puts, i + 1);
    EXPECT_EQ(given_back, i + 1);
    EXPECT_EQ(filled, i + 1);
    EXPECT_TRUE(are_words_of(next, got));
    EXPECT_TRUE(are_words_of(before, received));
    pe.quiesce();
  }
  auto end = counts_of(pe);
  end.bytes_sent -= begin.bytes_sent;
  end.reads -= begin.reads;
  return end;
}

TEST(TransferByNetwork, moves_content_in_no_frame) {
  constexpr std::size_t words = 200'000;
  for (const char* tls : {"", "tcp,self"}) {
    for (const Shape shape : {Shape{2, 1}, Shape{3, 1}}) {
      expect_run(
          shape,
          [](Pe& pe) {
            const auto counts = get_and_put(pe, words, 3);
            EXPECT_EQ(counts.reads, 6u) << "those that it got, and those that were put to it";
            EXPECT_LT(counts.bytes_sent, 64_KiB);
          },
          over_ucx("network", tls));
    }
    expect_run(
        {2, 1},
        [](Pe& pe) {
          const auto counts = get_and_put(pe, words, 3);
          EXPECT_EQ(counts.reads, 0u);
          EXPECT_GT(counts.bytes_sent, 6 * words * sizeof(std::uint64_t));
        },
        over_ucx("frames", tls));
  }
}

TEST(TransferByNetwork, is_used_only_with_its_setting) {
  expect_run(
      {2, 1}, [](Pe& pe) { EXPECT_EQ(get_and_put(pe, 50'000, 12).reads, 0u); }, over_ucx("auto"));
}

TEST(TransferByNetwork, within_a_process_it_goes_by_frames) {
  expect_run(
      {5, 2}, [](Pe& pe) { get_and_put(pe, 50'000, 3); }, over_ucx("network"));
  expect_run(
      {3, 3}, [](Pe& pe) { EXPECT_EQ(get_and_put(pe, 50'000, 3).reads, 0u); }, over_ucx("network"));
}

TEST(TransferByNetwork, a_thread_that_moves_frames_moves_it_as_well) {
  Settings settings = over_ucx("network");
  settings.push_back({"HEADWAY_PROGRESS", "thread"});
  expect_run(
      {2, 1}, [](Pe& pe) { EXPECT_EQ(get_and_put(pe, 50'000, 3).reads, 6u); }, settings);
}

TEST(TransferByNetwork, of_many_at_once_all_come) {
  expect_run(
      {3, 1},
      [](Pe& pe) {
        const auto mine = words_of(pe.id(), 30'000);
        constexpr std::size_t times = 40;
        std::vector<std::vector<std::uint64_t>> got(times * pe.size(), std::vector<std::uint64_t>(mine.size()));
        std::size_t done = 0, given_back = 0, at = 0;
        Aggregator<RemoteSource<std::uint64_t>> offers(pe);
        offers.on([&](PeId from, const RemoteSource<std::uint64_t>& source) {
          for (std::size_t i = 0; i < times; ++i, ++at) {
            get(pe, source, got[at], [&, at, from] {
              EXPECT_TRUE(are_words_of(from, got[at]));
              ++done;
            });
          }
        });
        const Source<std::uint64_t> source(
            pe, mine, [&] { ++given_back; }, times * pe.size());
        for (std::size_t to = 0; to < pe.size(); ++to) offers.send(to, source.remote());
        pe.quiesce();
        EXPECT_EQ(done, times * pe.size());
        EXPECT_EQ(given_back, 1u);
      },
      over_ucx("network"));
}

/// PE 1's part of a run with a Source of PE 0.
template <class Meanwhile>
Outcome get_from_pe_0(const std::string& way, Meanwhile meanwhile) {
  return catch_run(
      {2, 1},
      [&](Pe& pe) {
        std::vector<std::uint64_t> words = words_of(1, 2'000'000);
        std::optional<Source<std::uint64_t>> source;
        std::optional<RemoteSource<std::uint64_t>> remote;
        Aggregator<RemoteSource<std::uint64_t>> offers(pe);
        offers.on([&](const RemoteSource<std::uint64_t>& offered) { remote = offered; });
        if (pe.id() == 0) {
          source.emplace(
              pe, words, [] {}, 1000);
          offers.send(1, source->remote());
        }
        pe.quiesce();
        meanwhile(pe, source, words);
        for (int i = 0; pe.id() == 1 && i < 1000; ++i) get(pe, *remote, words).get();
        pe.quiesce();
      },
      over_ucx(way, "tcp,self"));
}

TEST(TransferByNetwork, from_a_destroyed_source_is_an_error_that_says_so) {
  const Outcome outcome = get_from_pe_0("network", [](Pe&, auto& source, auto&) { source.reset(); });
  EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
  EXPECT_NE(outcome.text.find("PE 1 gets from a Source of PE 0 that is gone"), std::string::npos) << outcome.text;
}

TEST(TransferByNetwork, from_a_process_that_dies_in_the_middle_ends_the_run) {
  const Outcome outcome = get_from_pe_0("network", [](Pe& pe, auto&, auto&) {
    if (pe.id() != 0) return;
    const std::int64_t end = pe.engine().now() + 100'000'000;
    while (pe.engine().now() < end) pe.progress();
    _exit(7);
  });
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.text.find("process 0 ended with status 7 in the middle of the run"), std::string::npos)
      << outcome.text;
}

}  // namespace
}  // namespace headway
