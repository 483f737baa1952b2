// SPDX-License-Identifier: BSD-3-Clause
// get() and put() of memory that PEs name to one another.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/epoch.hpp>
#include <headway/am/task.hpp>
#include <headway/base/size_constants.hpp>
#include <headway/transfer/transfer.hpp>
#include <memory>
#include <optional>
#include <span>
#include <support/run_pes.hpp>
#include <support/transfers.hpp>
#include <utility>
#include <vector>

namespace headway {
namespace {

using testing::are_words_of;
using testing::by_every_way;
using testing::expect_run;
using testing::words_of;

constexpr std::size_t sizes[] = {0, 1, 12, 13, 100, 512, 513, 1024, 1025, 8191, 8192, 8193, 300'000};

TEST(Transfer, gets_arrive_and_their_source_is_told) {
  by_every_way([](Pe& pe) {
    Aggregator<std::size_t, RemoteSource<std::uint64_t>> offers(pe);
    std::size_t got = 0;
    std::vector<std::unique_ptr<std::vector<std::uint64_t>>> received;
    offers.on([&](PeId from, std::size_t size, const RemoteSource<std::uint64_t>& source) {
      EXPECT_EQ(source.size(), size);
      auto* const to = received.emplace_back(std::make_unique<std::vector<std::uint64_t>>(size + 3, 7)).get();
      get(pe, source, *to, [&got, to, from, size] {
        EXPECT_TRUE(are_words_of(from, std::span<const std::uint64_t>(*to).first(size)));
        EXPECT_EQ(to->back(), 7);
        ++got;
      });
    });
    std::size_t given_back = 0;
    const auto words = words_of(pe.id(), *std::ranges::max_element(sizes));
    std::vector<Source<std::uint64_t>> sources;
    for (const std::size_t size : sizes) {
      sources.emplace_back(
          pe, std::span(words).first(size), [&] { ++given_back; }, pe.size());
      for (std::size_t to = 0; to < pe.size(); ++to) offers.send(to, size, sources.back().remote());
    }
    pe.quiesce();
    EXPECT_EQ(got, std::size(sizes) * pe.size());
    EXPECT_EQ(given_back, std::size(sizes));
  });
}

TEST(Transfer, puts_have_arrived_when_their_destination_says_so) {
  by_every_way([](Pe& pe) {
    Aggregator<std::size_t, RemoteDestination<std::uint64_t>> offers(pe);
    std::size_t put_by_this = 0;
    const auto words = words_of(pe.id(), *std::ranges::max_element(sizes));
    offers.on([&](Pe& own, std::size_t size, const RemoteDestination<std::uint64_t>& to) {
      put(own, std::span(words).first(size), to, [&put_by_this] { ++put_by_this; });
    });
    std::size_t filled = 0;
    std::vector<std::unique_ptr<std::vector<std::uint64_t>>> memory;
    std::vector<Destination<std::uint64_t>> destinations;
    for (const std::size_t size : sizes) {
      for (std::size_t from = 0; from < pe.size(); ++from) {
        auto* const to = memory.emplace_back(std::make_unique<std::vector<std::uint64_t>>(size)).get();
        destinations.emplace_back(pe, *to, [&filled, to, from] {
          EXPECT_TRUE(are_words_of(from, *to));
          ++filled;
        });
        offers.send(from, size, destinations.back().remote());
      }
    }
    pe.quiesce();
    EXPECT_EQ(filled, std::size(sizes) * pe.size());
    EXPECT_EQ(put_by_this, std::size(sizes) * pe.size());
  });
}

TEST(Transfer, of_more_small_sources_at_once_than_their_names_may_hold) {
  by_every_way([](Pe& pe) {
    Aggregator<std::size_t, RemoteSource<std::uint64_t>> offers(pe);
    const base::SizeConstants& constants = pe.engine().sizes();
    const std::size_t count = constants.held_bytes_max / constants.copied_bytes_max + 100;
    const std::size_t size = constants.copied_bytes_max / sizeof(std::uint64_t);
    std::size_t got = 0, given_back = 0;
    std::vector<std::vector<std::uint64_t>> received(count, std::vector<std::uint64_t>(size));
    offers.on([&](std::size_t i, const RemoteSource<std::uint64_t>& source) {
      get(pe, source, received[i], [&got] { ++got; });
    });
    for (std::size_t round = 0; round < 3; ++round) {
      got = given_back = 0;
      std::vector<std::vector<std::uint64_t>> words;
      std::vector<Source<std::uint64_t>> sources;
      for (std::size_t i = 0; i < count; ++i) words.push_back(words_of(round * count + i, size));
      for (std::size_t i = 0; i < count; ++i) sources.emplace_back(pe, words[i], [&] { ++given_back; });
      for (std::size_t i = 0; i < count; ++i) offers.send((pe.id() + 1) % pe.size(), i, sources[i].remote());
      pe.quiesce();
      EXPECT_EQ(got, count);
      EXPECT_EQ(given_back, count);
      for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(are_words_of(round * count + i, received[i]));
    }
  });
}

/// Longer content stays with its owner, and a key names it.
TEST(Transfer, a_source_holds_a_copy_up_to_the_limit_of_its_memory) {
  struct Limits {
    std::size_t heap, pool;  // bytes, for one get
  };
  constexpr std::size_t inside = transfer::SourceContent::inside_bytes_max, mapped = 512;
  constexpr std::size_t cutoff = base::normal_sizes.copied_bytes_max;
  const auto expect = [](const testing::Shape& shape, const testing::Settings& settings, Limits limits) {
    expect_run(
        shape,
        [limits](Pe& pe) {
          const auto expect_up_to = [&](std::size_t bytes, std::span<const std::byte> memory, std::uint64_t gets) {
            const auto is_copied = [&](std::size_t n) {
              const Source<std::byte> source(
                  pe, memory.first(n), [] {}, gets);
              return source.remote().is_short();
            };
            EXPECT_TRUE(is_copied(bytes)) << bytes << " for " << gets;
            EXPECT_FALSE(is_copied(bytes + 1)) << bytes << " for " << gets;
          };
          const std::vector<std::byte> heap(cutoff + 1);
          const PooledArray<std::byte> pool(pe, cutoff + 1);
          expect_up_to(limits.heap, heap, 1);
          expect_up_to(limits.pool, {pool.data(), pool.size()}, 1);
          expect_up_to(inside, heap, 2);
          expect_up_to(inside, {pool.data(), pool.size()}, 2);
          pe.quiesce();
        },
        settings);
  };
  expect({2, 1}, {}, {cutoff, mapped});
  expect({4, 2}, {}, {cutoff, mapped});
  expect({2, 2}, {}, {mapped, mapped});  // one process has all memory mapped
  expect({2, 1}, {{"HEADWAY_TRANSFER", "frames"}}, {cutoff, cutoff});
  expect({2, 1}, {{"HEADWAY_TRANSFER", "mapped"}}, {inside, inside});
  expect({2, 1}, {{"HEADWAY_TRANSFER", "cma"}}, {inside, inside});
  expect({2, 1}, {{"HEADWAY_CHECK", "on"}}, {inside, inside});
}

/// More than the ring holds; a third of them, and one that stays until the end, is never got.
TEST(Transfer, of_large_sources_of_which_some_are_never_got) {
  by_every_way([](Pe& pe) {
    constexpr std::size_t count = 60;
    const auto size_of = [](std::size_t i) { return std::size_t(2500) << i % 6; };  // 20 KB to 640 KB
    Aggregator<std::size_t, RemoteSource<std::uint64_t>> offers(pe);
    std::size_t got = 0, given_back = 0;
    std::vector<std::vector<std::uint64_t>> received(count);
    offers.on([&](std::size_t i, const RemoteSource<std::uint64_t>& source) {
      received[i].resize(source.size());
      get(pe, source, received[i], [&got] { ++got; });
    });
    const auto never_got = words_of(1, 20'000);
    const Source<std::uint64_t> stays(pe, never_got, [] { ADD_FAILURE(); });
    for (std::size_t round = 0; round < 3; ++round) {
      got = given_back = 0;
      std::vector<std::vector<std::uint64_t>> words;
      std::vector<std::optional<Source<std::uint64_t>>> sources(count);
      for (std::size_t i = 0; i < count; ++i) words.push_back(words_of(round * count + i, size_of(i)));
      for (std::size_t i = 0; i < count; ++i) {
        sources[i].emplace(pe, words[i], [&] { ++given_back; });
        if (i % 3 == 2) continue;
        offers.send((pe.id() + 1) % pe.size(), i, sources[i]->remote());
        if (i % 7 == 0) pe.progress();
      }
      for (std::size_t i = 2; i < count; i += 3) sources[i].reset();
      pe.quiesce();
      EXPECT_EQ(got, count * 2 / 3);
      EXPECT_EQ(given_back, count * 2 / 3);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(i % 3 == 2 || are_words_of(round * count + i, received[i])) << i;
      }
    }
  });
}

/// The getter is idle while the owner does not answer.
TEST(Transfer, of_a_large_source_whose_owner_does_something_else) {
  for (const char* way : {"auto", "mapped"}) {
    expect_run({2, 1},
               [](Pe& pe) {
                 Aggregator<std::size_t, RemoteSource<std::uint64_t>> offers(pe, {.topology = direct()});
                 std::vector<std::uint64_t> received(30'000);
                 std::size_t got = 0, rounds_idle = 0;
                 offers.on([&](std::size_t, const RemoteSource<std::uint64_t>& source) {
                   get(pe, source, received, [&got] { ++got; });
                 });
                 const auto words = words_of(1, received.size());
                 for (std::size_t round = 0; round < 20; ++round) {
                   std::optional<Source<std::uint64_t>> source;
                   pe.quiesce();
                   if (pe.id() == 0) {
                     source.emplace(pe, words, [] {});
                     offers.send(1, round, source->remote());
                     const std::int64_t until = pe.engine().now() + 5'000'000;
                     while (pe.engine().now() < until) continue;
                   } else {
                     while (got == round) rounds_idle += !pe.progress();
                     EXPECT_TRUE(are_words_of(1, received));
                     std::ranges::fill(received, 0);
                   }
                   pe.quiesce();
                 }
                 EXPECT_TRUE(pe.id() == 0 || rounds_idle > 0);
               },
               {{"HEADWAY_TRANSFER", way}});
  }
}

TEST(Transfer, done_may_be_a_callable_that_cannot_be_copied) {
  by_every_way([](Pe& pe) {
    Aggregator<RemoteSource<std::uint64_t>, RemoteDestination<std::uint64_t>> offers(pe);
    std::size_t told = 0;
    const auto teller = [&told] { return [&told, once = std::make_unique<int>(1)] { told += std::size_t(*once); }; };
    std::vector<std::uint64_t> received(40'000);
    offers.on([&](const RemoteSource<std::uint64_t>& from, const RemoteDestination<std::uint64_t>& to) {
      get(pe, from, received, teller());
      put(pe, received, to, teller());
    });
    for (const std::size_t size : {10u, 100u, 1000u, 40'000u}) {
      const auto words = words_of(pe.id(), size);
      std::vector<std::uint64_t> put_here(received.size());
      const Source<std::uint64_t> source(pe, words, teller());
      const Destination<std::uint64_t> destination(pe, put_here, teller());
      offers.send((pe.id() + 1) % pe.size(), source.remote(), destination.remote());
      pe.quiesce();
      EXPECT_EQ(std::exchange(told, 0), 4u) << size;
    }
  });
}

/// Inside, and, where pieces would have to be asked for, in memory of its own.
TEST(Transfer, a_short_source_keeps_its_content_after_its_end) {
  const auto expect_of = [](std::size_t size, const testing::Settings& settings) {
    expect_run(
        {2, 1},
        [size](Pe& pe) {
          using Words = std::vector<std::uint64_t>;
          const Words expected = words_of(pe.id(), size);
          Words of_stays = expected, of_moved = expected, of_assigned = expected, of_gone = expected;
          int done = 0;
          const auto count = [&done] { ++done; };
          const Source<std::uint64_t> stays(pe, of_stays, count);
          Source<std::uint64_t> before(pe, of_moved, count), assigned(pe, of_assigned, count);
          const Source<std::uint64_t> moved(std::move(before));
          const RemoteSource<std::uint64_t> copied = moved.remote();
          assigned = Source<std::uint64_t>(pe, of_assigned, count);
          std::optional<Source<std::uint64_t>> gone(std::in_place, pe, of_gone, count);
          const RemoteSource<std::uint64_t> of_one_that_is_gone = gone->remote();
          gone.reset();
          EXPECT_EQ(done, 0);
          pe.quiesce();
          EXPECT_EQ(done, 5);
          for (Words* const words : {&of_stays, &of_moved, &of_assigned, &of_gone}) std::ranges::fill(*words, 0);
          for (const RemoteSource<std::uint64_t>& remote :
               {stays.remote(), moved.remote(), copied, assigned.remote(), of_one_that_is_gone}) {
            EXPECT_TRUE(remote.is_short());
            Words to(size);
            get(pe, remote, to).get();
            EXPECT_EQ(to, expected);
          }
          pe.quiesce();
        },
        settings);
  };
  expect_of(transfer::SourceContent::inside_bytes_max / sizeof(std::uint64_t), {});
  expect_of(base::normal_sizes.copied_bytes_max / sizeof(std::uint64_t), {{"HEADWAY_TRANSFER", "frames"}});
}

TEST(Transfer, copies_that_sources_hold_are_bounded_and_given_back) {
  expect_run({2, 1}, [](Pe& pe) {
    const base::SizeConstants& constants = pe.engine().sizes();
    const std::size_t most = constants.held_bytes_max / constants.copied_bytes_max;
    const std::vector<std::byte> memory(constants.copied_bytes_max);
    const auto is_copied = [&](std::uint64_t gets = 1) {
      return Source<std::byte>(
                 pe, memory, [] {}, gets)
          .remote()
          .is_short();
    };
    std::deque<Source<std::byte>> sources;
    for (std::size_t i = 0; i < most; ++i) {
      sources.emplace_back(pe, memory, [] {});
      EXPECT_TRUE(sources.back().remote().is_short()) << i;
    }
    EXPECT_FALSE(is_copied());
    Source<std::byte> moved = std::move(sources.front());
    sources.pop_front();
    EXPECT_FALSE(is_copied()) << "one that has moved holds it";
    moved = std::move(sources.front());
    sources.pop_front();
    EXPECT_TRUE(is_copied()) << "what it was assigned to has given its own back";
    sources.clear();
    EXPECT_FALSE(is_copied(2)) << "for several gets";
    EXPECT_TRUE(is_copied());
    pe.quiesce();
  });
}

/// A PE keeps the name of a Source after its message and passes it on. A PE that the source's owner does not know gets
/// by it.
TEST(Transfer, of_names_that_were_kept_and_passed_on) {
  by_every_way([](Pe& pe) {
    using Remote = RemoteSource<std::uint64_t>;
    Aggregator<Remote> blocks(pe);
    std::vector<Remote> kept;
    blocks.on([&](const Remote& remote) {
      Remote mine = remote;
      kept.push_back(std::move(mine));
    });
    const std::size_t next = (pe.id() + 1) % pe.size();
    std::vector<std::vector<std::uint64_t>> words;
    for (const std::size_t size : {0u, 1u, 24u, 25u, 125u, 256u, 257u, 3000u})
      words.push_back(words_of(pe.id() + size, size));
    std::vector<Source<std::uint64_t>> sources;
    for (const auto& of_source : words) sources.emplace_back(pe, of_source, [] {});
    for (const auto& source : sources) blocks.send(next, source.remote());
    pe.quiesce();
    for (const Remote& remote : std::exchange(kept, {})) blocks.send(next, remote);
    pe.quiesce();
    const std::size_t before = (pe.id() + 2 * pe.size() - 2) % pe.size();
    ASSERT_EQ(kept.size(), words.size());
    for (const Remote& remote : kept) {
      std::vector<std::uint64_t> to(remote.size());
      get(pe, remote, to).get();
      EXPECT_EQ(to, words_of(before + to.size(), to.size()));
    }
    pe.quiesce();
  });
}

TEST(Transfer, a_remote_source_of_another_length_than_stated) {
  transfer::SourceContent content;
  const std::vector<std::byte> bytes(64);
  EXPECT_NO_THROW(content.view_message(transfer::SourceContent::Header::of(0, 64), bytes));
  EXPECT_NO_THROW(content.view_message(transfer::SourceContent::Header::of(0, ~0u), bytes));
  EXPECT_THROW(content.view_message(transfer::SourceContent::Header::of(0, 63), bytes), FormatError);
  EXPECT_THROW(content.view_message(transfer::SourceContent::Header::of(0, 65), bytes), FormatError);
  EXPECT_THROW(content.view_message(transfer::SourceContent::Header::of(0, ~0u), std::span(bytes).first(63)),
               FormatError);
}

TEST(Transfer, of_pooled_memory_both_ways_from_the_main_program) {
  by_every_way([](Pe& pe) {
    const std::size_t n = 50'000, next = (pe.id() + 1) % pe.size(), before = (pe.id() + pe.size() - 1) % pe.size();
    PooledArray<std::uint64_t> mine(pe, n), copy(pe, n), back(pe, n);
    std::ranges::copy(words_of(pe.id(), n), mine.begin());
    Aggregator<RemoteSource<std::uint64_t>, RemoteDestination<std::uint64_t>> offers(pe);
    std::optional<std::pair<RemoteSource<std::uint64_t>, RemoteDestination<std::uint64_t>>> offer;
    offers.on([&](const auto& source, const auto& destination) { offer.emplace(source, destination); });
    bool given_back = false, came_back = false;
    const Source<std::uint64_t> source(pe, {mine.data(), n}, [&] { given_back = true; });
    const Destination<std::uint64_t> destination(pe, {back.data(), n}, [&] { came_back = true; });
    offers.send(next, source.remote(), destination.remote());
    pe.quiesce();
    get(pe, offer->first, {copy.data(), n}).get();
    EXPECT_TRUE(are_words_of(before, {copy.data(), n}));
    put(pe, {copy.data(), n}, offer->second).get();
    pe.quiesce();
    EXPECT_TRUE(given_back);
    EXPECT_TRUE(came_back);
    EXPECT_TRUE(are_words_of(pe.id(), {back.data(), n}));
  });
}

TEST(Transfer, is_awaited_and_holds_its_epoch_open) {
  by_every_way([](Pe& pe) {
    const std::size_t n = 200'000;
    const auto words = words_of(pe.id(), n);
    std::vector<std::uint64_t> to(n);
    Aggregator<RemoteSource<std::uint64_t>> offers(pe);
    bool got = false;
    offers.on([&](Pe& own, RemoteSource<std::uint64_t> source) -> Task<> {
      co_await get(own, source, to);
      got = true;
    });
    bool given_back = false;
    std::optional<Source<std::uint64_t>> source;
    {
      Epoch epoch(pe);
      source.emplace(pe, words, [&] { given_back = true; });
      offers.send((pe.id() + 1) % pe.size(), source->remote());
      epoch.wait();
      EXPECT_TRUE(got);
      EXPECT_TRUE(given_back);
    }
    EXPECT_TRUE(are_words_of((pe.id() + pe.size() - 1) % pe.size(), to));
    pe.quiesce();
  });
}

TEST(Transfer, waits_behind_others_in_its_own_epoch) {
  by_every_way([](Pe& pe) {
    const std::size_t next = (pe.id() + 1) % pe.size(), before = (pe.id() + pe.size() - 1) % pe.size(), n = 250'000;
    const auto words = words_of(pe.id(), n);
    std::vector<std::uint64_t> got[2], put_here[2];
    for (int i = 0; i < 2; ++i) got[i].resize(n), put_here[i].resize(n);
    Aggregator<RemoteSource<std::uint64_t>> sources_there(pe);
    Aggregator<RemoteDestination<std::uint64_t>, std::uint32_t> destinations_there(pe);
    std::optional<RemoteSource<std::uint64_t>> from;
    std::optional<RemoteDestination<std::uint64_t>> to[2];
    sources_there.on([&](const RemoteSource<std::uint64_t>& source) { from = source; });
    destinations_there.on([&](const auto& destination, std::uint32_t i) { to[i] = destination; });
    int filled = 0;
    const Source<std::uint64_t> source(
        pe, words, [] {}, 2);
    std::vector<Destination<std::uint64_t>> destinations;
    for (std::uint32_t i = 0; i < 2; ++i) {
      destinations.emplace_back(pe, put_here[i], [&] { ++filled; });
      destinations_there.send(before, destinations.back().remote(), i);
    }
    sources_there.send(next, source.remote());
    pe.quiesce();
    bool first = false, second = false, third = false, fourth = false;
    get(pe, *from, got[0], [&] { first = true; });
    put(pe, words, *to[0], [&] { third = true; });
    {
      Epoch epoch(pe);
      get(pe, *from, got[1], [&] { second = true; });
      put(pe, words, *to[1], [&] { fourth = true; });
      epoch.wait();
      EXPECT_TRUE(second);
      EXPECT_TRUE(fourth);
      EXPECT_TRUE(are_words_of(before, got[1]));
      EXPECT_TRUE(are_words_of(before, put_here[1]));
    }
    pe.quiesce();
    EXPECT_TRUE(first);
    EXPECT_TRUE(third);
    EXPECT_EQ(filled, 2);
    EXPECT_TRUE(are_words_of(before, got[0]));
    EXPECT_TRUE(are_words_of(before, put_here[0]));
  });
}

}  // namespace
}  // namespace headway
