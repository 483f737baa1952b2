// SPDX-License-Identifier: BSD-3-Clause
/// Random plans by seed, on the simulated transport, beside a serial computation of what each element must be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <headway/base/random.hpp>
#include <headway/halo/exchange.hpp>
#include <headway/launch/simulation.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace headway {
namespace {

using Triple = std::array<std::uint64_t, 3>;

/// The plan of a run: the elements of each PE, and the elements that each needs.
struct Drawing {
  std::vector<std::uint64_t> owned;
  std::vector<std::vector<halo::Place>> needed;
};

Drawing draw(Random& random, std::size_t pes) {
  Drawing drawing;
  for (std::size_t pe = 0; pe != pes; ++pe) drawing.owned.push_back(random.one_in(5) ? 0 : random.size(1, 80));
  drawing.needed.resize(pes);
  for (std::size_t pe = 0; pe != pes; ++pe) {
    if (random.one_in(5)) continue;
    const bool near = random.one_in(2);
    while (!random.one_in(12)) {  // a run, a row with a step, or single elements
      const std::size_t owner = near ? (pe + random.below(3)) % pes : random.below(pes);
      const std::uint64_t owned = drawing.owned[owner];
      if (owned == 0) continue;
      const std::uint64_t step = random.one_in(2) ? 1 : random.between(1, 5);
      std::uint64_t at = random.below(owned);
      for (std::uint64_t n = random.size(1, 30); n > 0; --n, at = (at + step) % owned)
        drawing.needed[pe].push_back({owner, at});
    }
  }
  return drawing;
}

std::uint64_t value_of(std::size_t pe, std::uint64_t index, std::uint64_t generation) {
  return Random(pe * 1000003 + index * 101 + generation).next();
}

/// The arrays of one PE.
struct Arrays {
  std::vector<double> doubles;
  std::vector<std::uint8_t> bytes;
  std::vector<Triple> triples;
  struct Cell {
    std::uint32_t unused = 7;
    std::int32_t height = 0;
  };
  std::vector<Cell> cells;

  explicit Arrays(std::size_t n) : doubles(n), bytes(n), triples(n), cells(n) {}
  std::size_t size() const { return doubles.size(); }
  std::vector<halo::FieldRef> fields() {
    return {halo::field(doubles), halo::field(bytes), halo::field(triples),
            halo::field(std::span(cells), &Cell::height)};
  }
  void set(std::size_t i, std::uint64_t value) {
    doubles[i] = double(value >> 12);
    bytes[i] = std::uint8_t(value);
    triples[i] = {value, ~value, value * 3};
    cells[i].height = std::int32_t(value >> 32);
  }
  void require(std::size_t i, std::uint64_t value, std::uint64_t generation) const {
    if (doubles[i] == double(value >> 12) && bytes[i] == std::uint8_t(value) &&
        triples[i] == Triple{value, ~value, value * 3} && cells[i].height == std::int32_t(value >> 32) &&
        cells[i].unused == 7) {
      return;
    }
    throw std::logic_error(fmt::format("element {} of {} is wrong in exchange {}", i, size(), generation));
  }
};

launch::SimulateOptions options_of(std::uint64_t seed, std::size_t pes) {
  Random random(seed * 77);
  launch::SimulateOptions options{.pes = pes, .seed = seed};
  if (seed % 4 != 0) options.conditions = sim::random_conditions(random, pes);
  options.budget_bytes = std::size_t(1) << random.between(18, 21);
  if (seed % 5 == 0) options.sizes = base::small_sizes;
  return options;
}

/// Exchanges towards the ghosts, each followed by some without a wait of all PEs, and back with a sum.
launch::SimulateResult run_seed(std::uint64_t seed) {
  constexpr std::size_t sizes[] = {1, 2, 3, 4, 5, 8, 13, 33};
  Random random(seed * 7);
  const std::size_t pes = sizes[seed % std::size(sizes)];
  const Drawing drawing = draw(random, pes);
  const std::uint64_t rounds = random.between(1, 6);
  const bool by_pair = random.one_in(2), in_order = random.one_in(2);
  return launch::simulate(options_of(seed, pes), [&](Pe& pe) {
    const std::size_t me = pe.id();
    const std::uint64_t owned = drawing.owned[me];
    const std::vector<halo::Place>& needed = drawing.needed[me];
    const auto make_plan = [&]() -> halo::Plan {
      if (by_pair) return halo::Plan::receiving(pe, owned, needed);
      // Global ids: the elements of PE 0 first.
      std::vector<std::uint64_t> first(pes + 1), ids;
      for (std::size_t p = 0; p != pes; ++p) first[p + 1] = first[p] + drawing.owned[p];
      for (const halo::Place& one : needed) ids.push_back(first[one.pe] + one.index);
      return halo::Plan::needed(pe, owned, ids, [&](std::uint64_t id) {
        const auto after = std::ranges::upper_bound(first, id);
        const auto owner = std::size_t(after - first.begin() - 1);
        return halo::Place{owner, id - first[owner]};
      });
    };
    const halo::Plan plan = make_plan();
    Arrays arrays(owned + needed.size());
    halo::Exchange exchange(pe, plan, arrays.fields());
    Random own(seed * 100 + me);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      for (std::uint64_t i = 0; i != owned; ++i) arrays.set(i, value_of(me, i, round));
      if (own.one_in(3)) {
        for (std::uint64_t i = own.below(100); i > 0; --i) pe.progress();
      }
      exchange();
      for (std::size_t i = 0; i != needed.size(); ++i)
        arrays.require(owned + i, value_of(needed[i].pe, needed[i].index, round), round);
    }

    std::vector<std::uint64_t> sums(owned + needed.size());
    for (std::size_t i = 0; i != sums.size(); ++i) sums[i] = value_of(me, i, 0);
    halo::Exchange back(pe, plan.reverse(), {halo::field(std::span(sums), std::plus<>())},
                        in_order ? halo::CombineOrder::fixed : halo::CombineOrder::any);
    Future<> sent = back.async();
    sent.get();
    std::vector<std::uint64_t> expected(owned);
    for (std::uint64_t i = 0; i != owned; ++i) expected[i] = value_of(me, i, 0);
    for (std::size_t p = 0; p != pes; ++p) {
      for (std::size_t i = 0; i != drawing.needed[p].size(); ++i) {
        const halo::Place& one = drawing.needed[p][i];
        if (one.pe == me) expected[one.index] += value_of(p, drawing.owned[p] + i, 0);
      }
    }
    for (std::uint64_t i = 0; i != owned; ++i) {
      if (sums[i] != expected[i]) throw std::logic_error(fmt::format("sum {} is {}, not {}", i, sums[i], expected[i]));
    }
    pe.quiesce();
    return 0;
  });
}

TEST(HaloSeeds, random_plans_move_what_a_serial_computation_says) {
  const char* const first = std::getenv("HALO_SEED");
  const char* const count = std::getenv("HALO_SEEDS");
  const std::uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const std::uint64_t seeds = count == nullptr ? 400 : std::strtoull(count, nullptr, 10);
  for (std::uint64_t seed = begin; seed < begin + seeds; ++seed) {
    const launch::SimulateResult result = run_seed(seed);
    ASSERT_EQ(result.status, 0) << "HALO_SEED=" << seed << " HALO_SEEDS=1: " << result.text;
  }
}

}  // namespace
}  // namespace headway
