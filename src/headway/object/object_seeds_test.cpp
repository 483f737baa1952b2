// SPDX-License-Identifier: BSD-3-Clause
/// Random programs on elements, by seed, on the simulated transport: messages that send others, broadcasts, steps,
/// coroutines, reductions, sections, insertions and erasures. Elements may move at any message. A serial program
/// computes the expected ledger from the seed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <headway/am/epoch.hpp>
#include <headway/base/random.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/collective/reduce.hpp>
#include <headway/launch/simulation.hpp>
#include <headway/object/object.hpp>
#include <headway/object/object_seeds_test.hpp>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace headway {
namespace {

using namespace object_seeds;

/// The actions of all PEs in one phase, drawn from the seed alone.
struct Phase {
  struct Shout {
    std::size_t pe;
    std::uint64_t id;
  };
  std::vector<std::vector<Message>> roots;  // by PE
  std::vector<Shout> shouts;
  std::uint64_t gives = 0, reduces = 0, collectives = 0, member_shouts = 0;
  bool walks = false;
  int walked = 0;                                           // steps at the end of the phase
  std::vector<std::string> inserted, erased;                // of items
  std::map<std::string, std::vector<std::uint64_t>> added;  // to items that exist or are inserted meanwhile
  std::map<std::string, std::uint64_t> sums;                // of items at the end of the phase
};

constexpr int steps_each = 3;

struct Script {
  std::size_t elements = 1;
  std::vector<Phase> phases;
  std::vector<std::vector<Index<1>>> members;  // of sections, by PE
};

Script script_of(std::uint64_t seed, std::size_t pes) {
  Random random(seed * 7919);
  Script script;
  script.elements = random.size(1, 60);
  for (std::size_t pe = 0; pe < pes; ++pe) {
    std::vector<Index<1>> members;
    for (std::size_t i = 0; i < script.elements; ++i) {
      if (random.one_in(pe + 2)) members.push_back(i);
    }
    script.members.push_back(members);
  }
  std::map<std::string, std::uint64_t> items;
  int walked = 0;
  std::uint64_t id = seed << 32;
  for (std::uint64_t p = random.between(1, 4); p > 0; --p) {
    Phase phase;
    phase.roots.resize(pes);
    for (std::uint64_t m = random.size(0, 400); m > 0; --m) {
      phase.roots[random.below(pes)].push_back({Random(++id).next(), std::uint32_t(random.below(9))});
    }
    for (std::uint64_t s = random.size(0, 200); s > 0; --s) phase.shouts.push_back({random.below(pes), ++id});
    phase.gives = random.below(4);
    phase.reduces = random.below(4);
    phase.collectives = random.below(4);
    phase.member_shouts = random.below(4);
    phase.walks = random.one_in(2);
    if (phase.walks) walked += steps_each;
    phase.walked = walked;
    const std::map<std::string, std::uint64_t> before = items;
    for (int i = 0; i < 12; ++i) {
      const std::string name(std::size_t(1 + i * 3), char('a' + i));
      if (!items.contains(name) && random.one_in(2)) {
        phase.inserted.push_back(name);
        items[name] = 0;
      }
    }
    for (auto& [name, sum] : items) {
      if (before.contains(name) && random.one_in(3)) {
        phase.erased.push_back(name);
        continue;
      }
      for (std::uint64_t m = random.below(6); m > 0; --m) {
        phase.added[name].push_back(random.below(1000));
        sum += phase.added[name].back();
      }
    }
    for (const std::string& name : phase.erased) items.erase(name);
    phase.sums = items;
    script.phases.push_back(std::move(phase));
  }
  return script;
}

void expect_of(const Message& message, std::unordered_map<std::uint64_t, unsigned>& expected) {
  ++expected[message.id];
  for (const Message& child : message.children()) expect_of(child, expected);
}

AggregatorOptions random_aggregation(Random& random) {
  AggregatorOptions options;
  if (random.one_in(2)) options.topology = {unsigned(random.below(4))};
  if (random.one_in(3)) options.buffer_bytes = random.size(256, 8192);
  if (random.one_in(4)) options.threshold = random.fraction() * 0.5, options.cutoff = random.fraction() * 0.5;
  if (random.one_in(4)) options.flush_when_idle = false;
  return options;
}

void run_phase(Pe& pe, const Phase& phase, std::size_t number, std::uint64_t seed, Collection<Cell>& cells,
               Collection<Item>& items, const Section<Cell>& section) {
  Random own(seed * 1000 + number * 64 + pe.id());
  const auto breathe = [&] {
    if (own.one_in(4)) {
      for (std::uint64_t i = own.below(60); i > 0; --i) pe.progress();
    }
  };
  const std::uint64_t n = cells.size();
  std::vector<Future<std::uint64_t>> sums, of_pes;
  const int first = int(number) * steps_each;
  std::vector<std::function<void()>> actions;
  for (const Message& message : phase.roots[pe.id()]) actions.push_back([&] { Cell::send(cells, message); });
  for (std::uint64_t i = 0; i < phase.reduces; ++i)
    actions.push_back([&] { sums.push_back(cells.reduce<&Cell::own>(std::plus<>())); });
  for (std::uint64_t i = 0; i < phase.member_shouts; ++i)
    actions.push_back([&] { section.broadcast<&Cell::member_shout>(1u); });
  if (section.size() != 0)
    actions.push_back([&] {
      const std::uint64_t size = section.size();
      section.reduce<&Cell::plus_own>([](std::uint64_t a, std::uint64_t b) { return std::min(a, b) / 3 * 3; }, 0u)
          .then([n, size](std::uint64_t least) { check(size <= n && least < 3 * n, "a section's reduction"); });
    });
  if (pe.id() == number % pe.size()) {
    for (std::uint64_t i = 0; i < phase.gives; ++i) actions.push_back([&, i] { cells.broadcast<&Cell::give>(i); });
    actions.push_back([&] { cells.broadcast<&Cell::kick>(first, first + steps_each); });
    if (phase.walks) {
      actions.push_back([&] { cells.broadcast<&Cell::walk>(phase.walked - steps_each, phase.walked); });
    }
    for (const std::string& name : phase.erased) {
      if (own.one_in(2))
        actions.push_back([&] { items[name].erase(); });
      else
        actions.push_back([&] { items[name].send<&Item::leave>(); });
    }
  }
  if (pe.id() == (number + 1) % pe.size()) {
    for (const std::string& name : phase.inserted) actions.push_back([&] { items[name].insert(name); });
  }
  for (const auto& [name, values] : phase.added) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if ((values[i] + i) % pe.size() != pe.id()) continue;
      if (values[i] % 2 == 0)
        actions.push_back([&, value = values[i]] { items[name].send<&Item::add>(value); });
      else
        actions.push_back([&, value = values[i]] { items[name].send<&Item::add_typed>(value); });
    }
  }
  for (std::size_t i = actions.size(); i > 1; --i) std::swap(actions[i - 1], actions[own.below(i)]);
  for (std::uint64_t i = 0; i < phase.collectives; ++i) {  // in the same order on all PEs
    actions.insert(actions.begin() + std::ptrdiff_t(own.below(actions.size() + 1)),
                   [&] { of_pes.push_back(allreduce_async(pe, std::uint64_t(pe.id()), std::plus<>())); });
  }
  for (const Phase::Shout& shout : phase.shouts) {  // broadcasts of one PE keep their order, at random moments
    if (shout.pe == pe.id())
      actions.insert(actions.begin() + std::ptrdiff_t(own.below(actions.size() + 1)),
                     [&] { cells.broadcast<&Cell::shout>(shout.id); });
  }
  for (const auto& action : actions) action(), breathe();
  for (auto& sum : of_pes) check(sum.get() == pe.size() * (pe.size() - 1) / 2, "a collective of the program is wrong");
  for (auto& sum : sums) check(sum.get() == 3 * n * (n - 1) / 2, "reduce() is wrong");
}

/// On each PE, after the phase has ended on all PEs, and before the PE takes part in the next one.
void check_phase(const Script& script, std::size_t number, Collection<Cell>& cells, Collection<Item>& items) {
  const Phase& phase = script.phases[number];
  std::vector<std::uint64_t> shouts;
  for (std::size_t p = 0; p <= number; ++p) {
    for (const Phase::Shout& shout : script.phases[p].shouts) shouts.push_back(shout.id);
  }
  std::vector<std::uint64_t> member_shouts(cells.size());
  for (const auto& members : script.members) {
    for (std::size_t p = 0; p <= number; ++p) {
      for (const Index<1>& member : members) member_shouts[std::size_t(member[0])] += script.phases[p].member_shouts;
    }
  }
  std::vector<std::uint64_t>& heard = ledger->heard[number];
  cells.for_each_local([&](Cell& cell) {
    if (++ledger->heard_by[number] == 1) {
      heard = cell.heard();
      std::vector<std::uint64_t> sorted = heard;
      std::ranges::sort(sorted), std::ranges::sort(shouts);
      check(sorted == shouts, "broadcasts are missed, or doubled");
    }
    check(cell.heard() == heard, "elements have got broadcasts in different orders");
    check(cell.member_heard() == member_shouts[std::size_t(cell.index()[0])],
          "broadcasts of sections are missed, or doubled");
    check(cell.steps() == int(number + 1) * steps_each && cell.walked() == phase.walked, "steps are missed");
  });
  items.for_each_local([&](const Item& item) {
    const auto found = phase.sums.find(item.index());
    check(found != phase.sums.end(), "an item is there that was erased");
    check(item.sum() == found->second, "messages to an item are missed, or doubled");
  });
  const std::uint64_t local[2] = {cells.local_size(), items.local_size()};
  if (cells.pe().id() == 0) {
    std::unordered_map<std::uint64_t, unsigned> expected;
    for (const auto& roots : phase.roots) {
      for (const Message& root : roots) expect_of(root, expected);
    }
    for (const auto& [id, times] : expected) {
      const auto found = ledger->handled.find(id);
      check(found != ledger->handled.end(), "a message is lost");
      check(found->second == times, "a message is handled twice");
    }
  }
  const auto both =
      allreduce(cells.pe(), std::array<std::uint64_t, 2>{local[0], local[1]}, [](const auto& a, const auto& b) {
        return std::array<std::uint64_t, 2>{a[0] + b[0], a[1] + b[1]};
      });
  check(both[0] == cells.size() && both[1] == phase.sums.size(), "elements are lost, or doubled");
}

std::uint64_t moved_in_run = 0, handled_in_run = 0;

launch::SimulateResult run_seed(std::uint64_t seed) {
  constexpr std::size_t sizes[] = {1, 2, 3, 5, 8, 13};
  Random random(seed);
  launch::SimulateOptions options{.pes = sizes[seed % std::size(sizes)], .seed = seed};
  if (seed % 4 != 0) options.conditions = sim::random_conditions(random, options.pes);
  options.budget_bytes = std::size_t(1) << random.between(18, 21);
  const Script script = script_of(seed, options.pes);
  CollectionOptions of_cells;
  switch (random.below(5)) {
    case 0: of_cells.placement = cyclic(); break;
    case 1: of_cells.placement = hashed(); break;
    case 2:
      of_cells.placement =
          place<Index<1>>([pes = options.pes](const Index<1>& i) { return std::size_t(i[0]) / 3 % pes; });
      break;
    default: break;
  }
  of_cells.aggregation = random_aggregation(random);
  if (random.one_in(2)) of_cells.override_all = random_aggregation(random);
  of_cells.measure_load = random.one_in(4);
  const CollectionOptions of_items{.aggregation = random_aggregation(random)};
  Ledger all;
  constexpr std::uint64_t moves[] = {1, 2, 5, 30, 1'000'000};
  all.moves_one_in = moves[random.below(5)];
  all.heard.resize(script.phases.size());
  all.heard_by.resize(script.phases.size());
  ledger = &all;
  launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
    Array<Cell> cells(pe, Index<1>(script.elements), of_cells, 3u);
    SparseArray<Item> items(pe, of_items);
    const Section<Cell> section = cells.section(script.members[pe.id()]);
    for (std::size_t p = 0; p < script.phases.size(); ++p) {
      const Phase& phase = script.phases[p];
      std::optional<Epoch> epoch;
      if (seed % 3 == 0) epoch.emplace(pe);
      run_phase(pe, phase, p, seed, cells, items, section);
      if (epoch)
        epoch->wait();
      else
        pe.quiesce();
      check_phase(script, p, cells, items);
    }
    pe.quiesce();
    std::uint64_t gives = 0;
    for (const Phase& phase : script.phases) gives += phase.gives;
    check(all.sums == gives && all.sums_of_all == gives * script.elements,
          "results of contributions are missed, or doubled");
    return 0;
  });
  moved_in_run = all.moved, handled_in_run = all.handled.size();
  return result;
}

TEST(ObjectSeeds, random_programs_on_elements_do_what_a_serial_ledger_says) {
  const char* first = std::getenv("OBJECT_SEED");
  const std::uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const char* count = std::getenv("OBJECT_SEEDS");
  const std::uint64_t end = begin + (count == nullptr ? 20 : std::strtoull(count, nullptr, 10));
  std::uint64_t moved = 0, handled = 0;
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const launch::SimulateResult result = run_seed(seed);
    ASSERT_EQ(result.status, 0) << "OBJECT_SEED=" << seed << ": " << result.text;
    moved += moved_in_run, handled += handled_in_run;
  }
  std::printf("%llu messages of the ledger, %llu moves\n", static_cast<unsigned long long>(handled),
              static_cast<unsigned long long>(moved));
}

}  // namespace
}  // namespace headway
