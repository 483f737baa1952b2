// SPDX-License-Identifier: BSD-3-Clause
/// Owners of ids in ranges, gathered and from a directory, on the simulated transport.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <headway/am/epoch.hpp>
#include <headway/base/error.hpp>
#include <headway/base/random.hpp>
#include <headway/c/ranges.hpp>
#include <headway/launch/simulation.hpp>
#include <span>
#include <string>
#include <vector>

namespace headway {
namespace {

constexpr std::size_t gathered = c::Ranges::gathered_pes_max, directory = 0;

/// The first id of each PE's range, and the end of the range.
struct Owned {
  std::vector<std::uint64_t> first, end;
  std::uint64_t highest = 0;
};

/// Ranges in random order, with gaps, of very different lengths; about a fourth of the PEs owns nothing.
Owned random_ranges(std::size_t pes, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::size_t> order(pes);
  for (std::size_t i = 0; i != pes; ++i) std::swap(order[i] = i, order[random.between(0, i)]);
  Owned made{std::vector<std::uint64_t>(pes), std::vector<std::uint64_t>(pes), 0};
  std::uint64_t next = random.between(0, 1) == 0 ? 0 : std::uint64_t(1) << 40;
  for (const std::size_t pe : order) {
    const bool is_empty = random.between(0, 3) == 0;
    const std::uint64_t length = is_empty ? 0 : std::uint64_t(1) << random.between(0, random.between(1, 14));
    made.first[pe] = next;
    made.end[pe] = next + length;
    if (length != 0) made.highest = next + length - 1;
    next += length + (random.between(0, 2) == 0 ? random.between(0, 9) : 0);
  }
  return made;
}

std::size_t owner_of(const Owned& owned, std::uint64_t id) {
  for (std::size_t pe = 0; pe != owned.first.size(); ++pe) {
    if (owned.first[pe] <= id && id < owned.end[pe]) return pe;
  }
  return owned.first.size();
}

std::string error_of(const c::Ranges& ranges, std::uint64_t id) {
  try {
    ranges.find(id);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

void simulate(std::size_t pes, std::uint64_t seed, const std::function<void(Pe&)>& body) {
  Random random(seed * 31 + pes);
  launch::SimulateOptions options{.pes = pes, .seed = seed};
  if (seed % 3 != 0) options.conditions = sim::random_conditions(random, pes);
  const launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
    body(pe);
    pe.quiesce();
    return 0;
  });
  ASSERT_EQ(result.status, 0) << pes << " PEs, seed " << seed << ": " << result.text;
}

TEST(Ranges, a_directory_and_gathered_ranges_name_the_owner_of_each_id) {
  for (const std::size_t pes : {1, 2, 3, 5, 8, 13, 33}) {
    for (std::uint64_t seed = 1; seed != 9; ++seed) {
      for (const std::size_t pes_max : {gathered, directory}) {
        const Owned owned = random_ranges(pes, seed);
        simulate(pes, seed, [&](Pe& pe) {
          const std::size_t me = pe.id();
          Random random(seed * 1000 + me);
          std::vector<std::uint64_t> ids;
          for (std::uint64_t i = 0; i != (me % 4 == 1 ? 0 : 40 * seed % 67); ++i) {
            const std::size_t of = random.between(0, pes - 1);
            if (owned.first[of] == owned.end[of]) continue;
            ids.push_back(random.between(owned.first[of], owned.end[of] - 1));
            if (i % 5 == 0) ids.push_back(ids.back());
          }
          ids.push_back(owned.highest + 1);  // of no PE
          for (int repeat = 0; repeat != 2; ++repeat) {
            const c::Ranges ranges(pe, owned.first[me], owned.end[me] - owned.first[me], ids, pes_max);
            for (const std::uint64_t id : ids) {
              const std::size_t owner = owner_of(owned, id);
              if (owner == pes) {
                EXPECT_NE(error_of(ranges, id).find(fmt::format("id {} has no owner", id)), std::string::npos);
                continue;
              }
              const halo::Place place = ranges.find(id);
              EXPECT_EQ(place.pe.value, owner);
              EXPECT_EQ(place.index, id - owned.first[owner]);
            }
            const std::span<const std::uint64_t> with_owner(ids.data(), ids.size() - 1);
            const halo::Plan plan = halo::Plan::needed(pe, owned.end[me] - owned.first[me], with_owner,
                                                       [&](std::uint64_t id) { return ranges.find(id); });
            EXPECT_EQ(plan.received(), with_owner.size());
          }
        });
      }
    }
  }
}

TEST(Ranges, an_overlap_is_an_error_on_all_pes_that_names_both_owners) {
  for (const std::size_t pes_max : {gathered, directory}) {
    simulate(7, 3, [&](Pe& pe) {
      // PE 5 also owns the last id of PE 4, which owns 100 ids as all do.
      const std::uint64_t first = 100 * pe.id().value - (pe.id() == 5 ? 1 : 0);
      try {
        const c::Ranges ranges(pe, first, 100, {}, pes_max);
        ADD_FAILURE() << "no error on PE " << pe.id().value;
      } catch (const UsageError& error) {
        EXPECT_STREQ(error.what(),
                     "PE 4 owns ids 400 to 499, and PE 5 owns ids from 499 on: expected ranges without common ids");
      }
    });
  }
}

TEST(Ranges, the_highest_ids_have_an_owner_and_ids_above_are_refused) {
  for (const std::size_t pes_max : {gathered, directory}) {
    simulate(4, 2, [&](Pe& pe) {
      const std::uint64_t first = pe.id() == 3 ? UINT64_MAX - 9 : 10 * pe.id().value;
      const std::uint64_t ids[] = {UINT64_MAX, 0, 29, 30};
      const c::Ranges ranges(pe, first, 10, ids, pes_max);
      EXPECT_EQ(ranges.find(UINT64_MAX).pe.value, 3U);
      EXPECT_EQ(ranges.find(UINT64_MAX).index, 9U);
      EXPECT_EQ(ranges.find(0).pe.value, 0U);
      EXPECT_EQ(ranges.find(29).pe.value, 2U);
      EXPECT_NE(error_of(ranges, 30).find("id 30 has no owner"), std::string::npos);
      EXPECT_THROW(c::Ranges(pe, UINT64_MAX - 9, 11, {}, pes_max), UsageError);
    });
    simulate(4, 2, [&](Pe& pe) {
      const std::uint64_t id = 5;
      const c::Ranges ranges(pe, 7, 0, {&id, 1}, pes_max);
      EXPECT_EQ(error_of(ranges, id), "id 5 has no owner: no PE owns an id");
    });
  }
}

/// The ranges that a PE learns, and the messages for each PE, do not depend on the number of PEs.
TEST(Ranges, a_directory_takes_messages_to_homes_of_partners_alone) {
  constexpr std::uint64_t owned = 100, neighbours = 2;
  for (const std::size_t pes : {8, 32, 100, 200}) {
    simulate(pes, 3, [&](Pe& pe) {
      const std::uint64_t first = owned * pe.id().value, all = owned * pes;
      const std::uint64_t ids[] = {(first + owned) % all, (first + all - 1) % all};
      Epoch epoch(pe);
      const c::Ranges ranges(pe, first, owned, ids, directory);
      // To each of at most two homes of this PE's range and of the two ids, and as many answers as there are ids.
      const std::uint64_t messages = epoch.wait();
      EXPECT_GE(messages, pes * 2);
      EXPECT_LE(messages, pes * (2 + 2 * neighbours));
      EXPECT_EQ(ranges.size(), 1 + neighbours);
    });
  }
}

}  // namespace
}  // namespace headway
