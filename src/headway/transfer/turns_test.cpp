// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/transfer/transfer.hpp>
#include <headway/transfer/turns.hpp>
#include <optional>
#include <support/run_pes.hpp>
#include <support/transfers.hpp>
#include <vector>

namespace headway::transfer {
namespace {

using testing::are_words_of;
using testing::expect_run;
using testing::words_of;

using Number = std::optional<std::uint64_t>;

std::uint64_t ten(std::uint64_t /*number*/) { return 10; }

TEST(Turns, one_pe_gets_half_of_the_window_and_the_others_continue) {
  Turns turns(100);
  for (std::uint64_t number = 0; number < 20; ++number) turns.add(number, number < 10 ? 0 : 1);
  for (std::uint64_t number : {0, 1, 2, 3, 4, 10, 11, 12, 13, 14}) {
    ASSERT_EQ(turns.first(ten), Number(number));
    turns.begin(10, true);
  }
  EXPECT_EQ(turns.first(ten), Number());
  EXPECT_EQ(turns.on_way(), 100u);
  turns.end(1, 10);
  EXPECT_EQ(turns.first(ten), Number(15)) << "that which waits longest of the same PE";
  turns.begin(10, true);
  for (std::uint64_t number = 16; number < 20; ++number) {
    turns.end(1, 10);
    EXPECT_EQ(turns.first(ten), Number(number));
    turns.begin(10, true);
  }
  for (int i = 0; i < 5; ++i) turns.end(0, 10);
  for (std::uint64_t number : {5, 6, 7, 8, 9}) {
    EXPECT_EQ(turns.first(ten), Number(number));
    turns.begin(10, true);
  }
}

TEST(Turns, a_transfer_longer_than_the_window_starts_alone) {
  Turns turns(100);
  const auto bytes = [](std::uint64_t number) { return number; };
  turns.add(500, 3);
  turns.add(1, 3);
  turns.add(2, 4);
  EXPECT_EQ(turns.first(bytes), Number(500));
  turns.begin(500, true);
  EXPECT_EQ(turns.first(bytes), Number());
  turns.end(3, 500);
  EXPECT_EQ(turns.first(bytes), Number(2));
  turns.begin(2, true);
  EXPECT_EQ(turns.first(bytes), Number(1));
}

TEST(Turns, a_transfer_stays_first_until_its_pe_has_its_share) {
  Turns turns(100);
  turns.add(7, 0);
  turns.add(8, 1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(turns.first(ten), Number(7));
    turns.begin(10, false);
  }
  EXPECT_EQ(turns.first(ten), Number(8));
  turns.begin(10, true);
  EXPECT_EQ(turns.first(ten), Number());
  turns.end(0, 10);
  EXPECT_EQ(turns.first(ten), Number(7));
}

#if defined(HEADWAY_SIM)
/// PE 0 is silent for 100 ms. In that time PE 1 first asks PE 0 for much content, and then PE 2. offer() makes the
/// Remotes of a PE; use() moves their content.
template <template <class> class Remote, class Offer, class Use>
void expect_that_others_do_not_wait_for_a_silent_pe(Offer offer, Use use) {
  constexpr std::int64_t awake_ns = 105'000'000;
  expect_run({3, 3, "stop=0@5ms+100ms"},
             [&](Pe& pe) {
               constexpr std::size_t n = 100'000, times = 10;
               Aggregator<std::size_t, Remote<std::uint64_t>> offers(pe);
               std::vector<Remote<std::uint64_t>> offered(2 * times);
               offers.on([&](PeId from, std::size_t i, const Remote<std::uint64_t>& remote) {
                 offered[from / 2 * times + i] = remote;
               });
               std::vector<std::vector<std::uint64_t>> memory(2 * times, words_of(pe.id(), n));
               auto kept = offer(pe, memory);
               if (pe.id() != 1) {
                 for (std::size_t i = 0; i < times; ++i) offers.send(1, i, kept[i].remote());
               }
               pe.quiesce();
               EXPECT_LT(pe.engine().now(), 5'000'000) << "it begins before PE 0 is silent";
               if (pe.id() == 1) {
                 while (pe.engine().now() < 6'000'000) pe.engine().endpoint().sleep(1'000'000);
                 std::size_t done = 0;
                 std::int64_t last_ns = 0;
                 for (std::size_t i = 0; i < 2 * times; ++i) {
                   use(pe, offered[i], memory[i], [&, i] {
                     if (i < times) return;
                     ++done;
                     last_ns = pe.engine().now();
                   });
                 }
                 while (done < times) pe.progress() ? void() : pe.engine().endpoint().sleep(100'000);
                 EXPECT_LT(last_ns, awake_ns) << "they have waited for PE 0";
               }
               pe.quiesce();
               EXPECT_GT(pe.engine().now(), awake_ns) << "PE 0 was not silent";
             },
             {{"HEADWAY_TRANSFER", "frames"}});
}

TEST(Turns, gets_do_not_wait_for_a_silent_owner_of_others) {
  expect_that_others_do_not_wait_for_a_silent_pe<RemoteSource>(
      [](Pe& pe, auto& memory) {
        std::vector<Source<std::uint64_t>> sources;
        for (auto& words : memory) sources.emplace_back(pe, words, [] {});
        return sources;
      },
      [](Pe& pe, const auto& remote, auto& memory, auto done) { get(pe, remote, memory, std::move(done)); });
}

TEST(Turns, puts_do_not_wait_for_a_silent_owner_of_others) {
  expect_that_others_do_not_wait_for_a_silent_pe<RemoteDestination>(
      [](Pe& pe, auto& memory) {
        std::vector<Destination<std::uint64_t>> destinations;
        for (auto& words : memory) destinations.emplace_back(pe, words, [] {});
        return destinations;
      },
      [](Pe& pe, const auto& remote, auto& memory, auto done) { put(pe, memory, remote, std::move(done)); });
}
#endif

}  // namespace
}  // namespace headway::transfer
