/// Random sequences of collectives, by seed, many under way at once on overlapping teams of late and slow PEs, beside
/// what a serial program makes of the same values. On the simulated transport.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <headway/am/epoch.hpp>
#include <headway/am/simulation.hpp>
#include <headway/am/task.hpp>
#include <headway/base/random.hpp>
#include <headway/collective/gather.hpp>
#include <headway/collective/scan.hpp>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace headway {
namespace {

enum class What {
  sum,
  ordered_sum,
  bits,
  text,
  broadcast,
  barrier,
  scan,
  exclusive_scan,
  gather,
  gather_text,
  exchange,
  in_place
};
constexpr std::uint64_t whats = 12;

/// A call that all members of a team make; drawn from the seed alone.
struct Step {
  What what;
  std::size_t team, root, count;
  bool all;  // a reduction for all
  bool ordered;
  std::uint64_t number;

  std::uint64_t value(std::size_t rank, std::size_t i) const { return Random(number * 64 + rank).next() * (2 * i + 1); }
  /// Of wild magnitudes: each order of additions gives another sum.
  double real(std::size_t rank, std::size_t i) const {
    const std::uint64_t v = value(rank, i);
    return double(std::int64_t(v)) * std::exp2(double(v % 60));
  }
  std::string text(std::size_t rank) const { return std::string(value(rank, 0) % 20, char('a' + rank % 26)); }
  std::size_t block(std::size_t rank) const { return value(rank, 1) % (count + 1); }
};

struct Script {
  std::vector<std::vector<std::size_t>> teams;
  std::vector<Step> steps;
};

Script script_of(std::uint64_t seed, std::size_t pes) {
  Random random(seed * 77);
  Script script;
  for (std::uint64_t t = random.between(1, 4); t > 0; --t) {
    std::vector<std::size_t> all(pes);
    std::iota(all.begin(), all.end(), 0);
    for (std::size_t i = pes; i > 1; --i) std::swap(all[i - 1], all[random.between(0, i - 1)]);
    if (t != 1) all.resize(random.between(1, pes));
    script.teams.push_back(all);
  }
  for (std::uint64_t s = random.between(5, 40); s > 0; --s) {
    Step step{};
    step.what = What(random.between(0, whats - 1));
    step.team = random.between(0, script.teams.size() - 1);
    step.root = random.between(0, script.teams[step.team].size() - 1);
    step.count = random.between(0, 9) == 0 ? random.between(4'000, 60'000) : random.between(0, 40);
    step.all = random.between(0, 1) == 0;
    step.ordered = random.between(0, 1) == 0;
    step.number = seed * 1000 + s;
    script.steps.push_back(step);
  }
  return script;
}

/// As values are added along the tree, in the order of ranks.
double sum_in_order(const Step& step, std::size_t rank, std::size_t size, std::size_t i) {
  double sum = step.real(rank, i);
  for (std::size_t bit = 1; (rank & bit) == 0 && rank + bit < size; bit <<= 1) {
    sum += sum_in_order(step, rank + bit, size, i);
  }
  return sum;
}

struct Wrong : std::logic_error {
  Wrong(const Step& step, std::size_t rank, const char* what)
      : std::logic_error(fmt::format("step {} (kind {}, team {}, root {}, count {}), rank {}: {}", step.number % 1000,
                                     int(step.what), step.team, step.root, step.count, rank, what)) {}
};

/// One member's part of a step. Where many elements are checked, some of them are.
Task<> run_step(const Team team, const Step step, std::uint64_t& done) {
  const std::size_t rank = team.rank(), size = team.size(), n = step.count;
  const std::size_t stride = n < 100 ? 1 : 997;
  const auto check = [&](bool right, const char* what) {
    if (!right) throw Wrong(step, rank, what);
  };
  const auto elements = [&](std::size_t of_rank) {
    std::vector<std::uint64_t> own(n);
    for (std::size_t i = 0; i < n; ++i) own[i] = step.value(of_rank, i);
    return own;
  };
  const auto check_sums = [&](std::span<const std::uint64_t> got, std::size_t first, std::size_t last,
                              std::uint64_t from) {
    check(got.size() == n, "another number of elements");
    for (std::size_t i = 0; i < n; i += stride) {
      std::uint64_t sum = from;
      for (std::size_t r = first; r < last; ++r) sum += step.value(r, i);
      check(got[i] == sum, "another sum");
    }
  };
  switch (step.what) {
    case What::sum:
    case What::in_place: {
      std::vector<std::uint64_t> own = elements(rank);
      if (step.what == What::in_place) {
        if (step.all)
          co_await allreduce_in_place(team, std::span(own), std::plus<>(), {.ordered = step.ordered});
        else
          co_await reduce_in_place(team, std::span(own), std::plus<>(), step.root, {.ordered = step.ordered});
        if (step.all || rank == step.root) check_sums(own, 0, size, 0);
      } else if (step.all) {
        check_sums(co_await allreduce_async(team, std::span(own), std::plus<>(), {.ordered = step.ordered}), 0, size,
                   0);
      } else {
        auto future = reduce(team, std::span(own), std::plus<>(), step.root, {.ordered = step.ordered});
        std::ranges::fill(own, 1);
        const std::vector<std::uint64_t> sums = co_await future;
        if (rank == step.root) check_sums(sums, 0, size, 0);
        check(rank == step.root || sums.empty(), "a result that is the root's");
      }
      break;
    }
    case What::ordered_sum: {
      std::vector<double> own(n);
      for (std::size_t i = 0; i < n; ++i) own[i] = step.real(rank, i);
      auto future = step.all ? allreduce_async(team, std::span(own), std::plus<>(), {.ordered = true})
                             : reduce(team, std::span(own), std::plus<>(), step.root, {.ordered = true});
      const std::vector<double> sums = co_await future;
      check(sums.size() == (step.all || rank == step.root ? n : 0), "another number of elements");
      for (std::size_t i = 0; i < sums.size(); i += stride) {
        check(sums[i] == sum_in_order(step, 0, size, i), "not the same to the bit");
      }
      break;
    }
    case What::bits: {
      const auto either = [](std::uint32_t a, std::uint32_t b) { return a | b; };
      std::uint32_t expected = 0;
      for (std::size_t r = 0; r < size; ++r) expected |= std::uint32_t(step.value(r, 2));
      check(co_await allreduce_async(team, std::uint32_t(step.value(rank, 2)), either) == expected, "other bits");
      break;
    }
    case What::text: {
      const auto join = [](const std::string& a, const std::string& b) { return a + b; };
      std::string expected;
      for (std::size_t r = 0; r < size; ++r) expected += step.text(r);
      const std::string own = step.text(rank);
      if (step.all) {
        check(co_await allreduce_async(team, own, join, {.ordered = true}) == expected, "another text");
      } else {
        const std::optional<std::string> got = co_await reduce(team, own, join, step.root, {.ordered = true});
        check(got.has_value() == (rank == step.root) && got.value_or(expected) == expected, "another text");
      }
      break;
    }
    case What::broadcast: {
      const bool is_root = rank == step.root;
      const std::vector<std::uint64_t> own = elements(step.root);
      if (step.all) {
        const auto given = is_root ? std::span(own) : std::span(own).first(0);
        const std::string text = is_root ? step.text(rank) : "not looked at";
        auto elements_to_come = broadcast(team, given, step.root);
        auto text_to_come = broadcast(team, text, step.root);
        check(co_await elements_to_come == own, "other elements");
        check(co_await text_to_come == step.text(step.root), "another text");
      } else {
        std::vector<std::uint64_t> here = is_root ? own : std::vector<std::uint64_t>(n);
        co_await broadcast_in_place(team, std::span(here), step.root);
        check(here == own, "other elements");
      }
      break;
    }
    case What::barrier: co_await barrier_async(team); break;
    case What::scan: {
      const std::vector<std::uint64_t> own = elements(rank);
      const auto join = [](const std::string& a, const std::string& b) { return a + b; };
      const std::string text = step.text(rank);
      auto sums_to_come = scan(team, std::span(own), std::plus<>());
      auto text_to_come = scan(team, text, join);
      std::string expected;
      for (std::size_t r = 0; r <= rank; ++r) expected += step.text(r);
      check_sums(co_await sums_to_come, 0, rank + 1, 0);
      check(co_await text_to_come == expected, "another text");
      break;
    }
    case What::exclusive_scan: {
      const std::vector<std::uint64_t> own = elements(rank);
      check_sums(co_await exclusive_scan(team, std::span(own), 5, std::plus<>()), 0, rank, 5);
      break;
    }
    case What::gather: {
      const auto block = [&](std::size_t r) {
        std::vector<std::uint64_t> values = elements(r);
        values.resize(step.block(r));
        return values;
      };
      const std::vector<std::uint64_t> own = block(rank);
      const std::vector<std::vector<std::uint64_t>> blocks = co_await gather(team, std::span(own), step.root);
      check(blocks.size() == (rank == step.root ? size : 0), "another number of blocks");
      for (std::size_t r = 0; r < blocks.size(); ++r) check(blocks[r] == block(r), "another block");
      break;
    }
    case What::gather_text: {
      const std::string own = step.text(rank);
      const std::vector<std::string> texts = co_await gather(team, own, step.root);
      check(texts.size() == (rank == step.root ? size : 0), "another number of texts");
      for (std::size_t r = 0; r < texts.size(); ++r) check(texts[r] == step.text(r), "another text");
      break;
    }
    case What::exchange: {
      const std::size_t block = n / size;
      const auto value = [&](std::size_t from, std::size_t to, std::size_t i) {
        return step.value(from, to * 100 + i);
      };
      std::vector<std::uint64_t> own(block * size);
      for (std::size_t at = 0; at < own.size(); ++at) own[at] = value(rank, at / block, at % block);
      const std::vector<std::uint64_t> got = co_await all_to_all(team, std::span(own));
      check(got.size() == own.size(), "another number of elements");
      for (std::size_t at = 0; at < got.size(); ++at)
        check(got[at] == value(at / block, rank, at % block), "another block");
      break;
    }
  }
  ++done;
}

am::SimulateResult run_seed(std::uint64_t seed) {
  constexpr std::size_t sizes[] = {1, 2, 3, 5, 8, 13, 33};
  Random random(seed);
  am::SimulateOptions options{.pes = sizes[seed % std::size(sizes)], .seed = seed};
  if (seed % 4 != 0) options.conditions = sim::random_conditions(random, options.pes);
  options.budget_bytes = std::size_t(1) << random.between(18, 21);
  const Script script = script_of(seed, options.pes);
  return simulate(options, [&](Pe& pe) {
    Random own(seed * 100 + pe.id());  // how late it is
    std::vector<std::unique_ptr<Team>> teams;
    std::uint64_t done = 0, mine = 0;
    for (const std::vector<std::size_t>& list : script.teams) {
      const bool is_member = std::ranges::count(list, std::size_t(pe.id())) != 0;
      teams.push_back(is_member ? std::make_unique<Team>(pe, list) : nullptr);
    }
    std::optional<Epoch> epoch;
    if (seed % 3 == 0) epoch.emplace(pe);
    for (const Step& step : script.steps) {
      if (own.between(0, 4) == 0) {
        for (std::uint64_t i = own.between(0, 200); i > 0; --i) pe.progress();
      }
      if (!teams[step.team]) continue;
      ++mine;
      // It makes all its calls before it waits for any, so that they are in the same order on all members.
      if (own.between(0, 2) == 0)
        run_task(pe, run_step(*teams[step.team], step, done));
      else
        spawn(pe, run_step(*teams[step.team], step, done));
    }
    if (epoch)
      epoch->wait();
    else
      pe.quiesce();
    if (done != mine) throw std::logic_error(fmt::format("{} of {} are done", done, mine));
    const collective::Collectives& all = collective::Collectives::of(pe);
    if (all.size() != 0 || all.early() != 0) throw std::logic_error("descriptors or messages are left");
    return 0;
  });
}

TEST(CollectiveSeeds, random_collectives_give_what_a_serial_program_does) {
  const char* first = std::getenv("COLLECTIVE_SEED");
  const std::uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const char* count = std::getenv("COLLECTIVE_SEEDS");
  const std::uint64_t end = begin + (count == nullptr ? 150 : std::strtoull(count, nullptr, 10));
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const am::SimulateResult result = run_seed(seed);
    ASSERT_EQ(result.status, 0) << "seed " << seed << ": " << result.text;
  }
}

}  // namespace
}  // namespace headway
