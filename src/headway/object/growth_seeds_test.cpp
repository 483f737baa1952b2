// SPDX-License-Identifier: BSD-3-Clause
/// Random programs, by seed, on collections that are made and destroyed all the time. Elements of sparse arrays insert
/// others and erase themselves, in broadcasts and in messages. Reductions follow done_inserting() at once. A ledger
/// that all PEs share records the broadcasts of each element. A serial replay, in the order of an element that is never
/// erased, tells which elements exist and which broadcasts each has run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <headway/am/epoch.hpp>
#include <headway/base/random.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/launch/simulation.hpp>
#include <headway/object/growth_seeds_test.hpp>
#include <headway/object/object.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace headway {
namespace {

using namespace growth;

// --- what all PEs do with a collection: drawn from `shared`, which is equal on all PEs

using Actions = std::vector<std::function<void()>>;

class Plot {
 public:
  virtual ~Plot() = default;
  /// One phase: actions of this PE in its first part; then, after quiescence, settle(); then further actions.
  virtual void grow(Random& shared, Actions& actions) = 0;
  virtual void settle() {}
  virtual void count(Random& shared, Actions& actions) = 0;
  /// Waits for futures after all actions. finish() follows the next quiescence.
  virtual void wait() = 0;
  virtual void finish(Random& shared) = 0;
  /// After another quiescence: records the elements of this PE. judge() then checks everything on PE 0.
  virtual void note() {}
  virtual void judge() {}
};

class SproutPlot final : public Plot {
 public:
  SproutPlot(Pe& pe, const CollectionOptions& options, std::uint32_t serial)
      : pe_(&pe), sprouts_(pe, options), serial_(serial) {
    for (Key root = pe.id(); root < roots; root += pe.size()) sprouts_[root].insert(serial);
    sprouts_.done_inserting();
    section_ = sprouts_.section({0, 1, 2, 3});
    pe.quiesce();
  }

  void grow(Random& shared, Actions& actions) override {
    const std::uint64_t broadcasts = shared.size(0, 60), plants = shared.size(0, 20), relays = shared.below(4);
    number_ = ++phase_ * 1000;
    for (std::uint64_t i = shared.below(3); i > 0; --i) {
      actions.push_back([this] { of_roots_.push_back(section_.reduce<&Sprout::one>(std::plus<>())); });
    }
    for (std::uint64_t i = 0; i < broadcasts; ++i) {
      if (mine(shared)) actions.push_back([this, broadcast = std::uint32_t(number_ + i)] { start(broadcast); });
    }
    for (std::uint64_t i = 0; i < relays; ++i) {
      const Key root = shared.below(roots);
      if (mine(shared))
        actions.push_back([this, root, i] { sprouts_[root].send<&Sprout::relay>(std::uint32_t(number_ + 600 + i)); });
    }
    for (std::uint64_t i = 0; i < plants; ++i) {
      const Key root = shared.below(roots);
      const auto message = std::uint32_t(number_ + i);
      const bool by_message = shared.one_in(2);
      if (!mine(shared)) continue;
      if (by_message)
        actions.push_back([this, root, message] { sprouts_[root].send<&Sprout::plant>(message); });
      else
        actions.push_back([this, message] { plant(planted_by(message)); });
    }
  }
  void settle() override {
    planted_.clear();
    sprouts_.done_inserting();
  }
  void count(Random& shared, Actions& actions) override {
    const std::uint64_t gives = shared.below(4), size = sprouts_.size();
    for (std::uint64_t i = 0; i < gives; ++i) {
      if (!mine(shared)) continue;
      actions.push_back([this, size, broadcast = std::uint32_t(number_ + 900 + i)] {
        ++records().gives, ++ledger->broadcasts;
        sprouts_.broadcast<&Sprout::give>(broadcast, size);
      });
    }
    for (std::uint64_t i = shared.below(4); i > 0; --i) {
      const Key root = shared.below(roots);
      if (mine(shared)) actions.push_back([this, root, size] { sprouts_[root].send<&Sprout::count>(size); });
      if (mine(shared)) actions.push_back([this] { counts_.push_back(sprouts_.reduce<&Sprout::one>(std::plus<>())); });
    }
  }
  void wait() override {
    for (auto& counted : counts_) check(counted.get() == sprouts_.size(), "reduce() has counted another number");
    for (auto& counted : of_roots_) check(counted.get() == roots, "a section has counted another number");
    counts_.clear(), of_roots_.clear();
  }
  void finish(Random& shared) override {
    const bool grows = shared.one_in(2);
    if (!mine(shared) || !grows) return;
    ++ledger->broadcasts;
    const std::uint32_t broadcast = number_ + 800 + ((number_ + 800) % 7 == 3 ? 1 : 0);
    const std::uint64_t counted = sprouts_.reduce<&Sprout::grow_and_count>(std::plus<>(), broadcast).get();
    check(counted == sprouts_.size(), "a reduction that inserts has counted another number");
  }
  void note() override {
    sprouts_.for_each_local(
        [this](Sprout& sprout) { check(records().here.insert(sprout.index()).second, "an element is there twice"); });
  }
  void judge() override {
    replay(records());
    records().here.clear();
    records().before = records().heard.at(0).size();
  }

 private:
  Records& records() { return ledger->records[serial_]; }
  bool mine(Random& shared) const { return shared.below(pe_->size()) == pe_->id(); }
  void start(std::uint32_t broadcast) {
    for (const Key key : planted_) records().later[key].push_back(broadcast);
    Sprout::start(sprouts_, broadcast);
  }
  void plant(Key key) {
    records().planted[key] = records().before;
    records().later[key];
    planted_.push_back(key);
    sprouts_[key].insert(serial_);
    if (!stays_for_ever(key)) return;
    sprouts_[key].send<&Sprout::nudge>();
    ++records().nudges_sent;
  }

  Pe* pe_;
  SparseArray<Sprout> sprouts_;
  std::uint32_t serial_, phase_ = 0, number_ = 0;
  std::vector<Key> planted_;  // by this PE in this phase
  Section<Sprout> section_;
  std::vector<Future<std::uint64_t>> counts_, of_roots_;
};

template <class Naming>
class PostPlot final : public Plot {
 public:
  using Posts = Collection<Post<Naming>>;

  template <class... Extents>
  PostPlot(Pe& pe, const CollectionOptions& options, Extents... extents) : pe_(&pe), posts_(pe, extents..., options) {}

  void grow(Random& shared, Actions& actions) override { count(shared, actions); }
  void count(Random& shared, Actions& actions) override {
    const std::uint64_t size = posts_.size();
    for (std::uint64_t i = shared.size(0, 30); i > 0; --i) {
      const std::uint64_t value = shared.below(1000), to = shared.below(size);
      const bool to_all = shared.one_in(3);
      expected_ += value * (to_all ? size : 1);
      if (!mine(shared)) continue;
      if (to_all)
        actions.push_back([this, value] { posts_.template broadcast<&Post<Naming>::add>(value); });
      else
        actions.push_back([this, value, to] { posts_[to].template send<&Post<Naming>::add>(value); });
    }
    for (std::uint64_t i = shared.below(3); i > 0; --i) {
      ++gives_;
      const std::uint64_t to = shared.below(size);
      if (mine(shared)) actions.push_back([this, i, size] { posts_.template broadcast<&Post<Naming>::give>(i, size); });
      if (mine(shared)) actions.push_back([this, to, size] { posts_[to].template send<&Post<Naming>::count>(size); });
      if (mine(shared))
        actions.push_back([this] { counts_.push_back(posts_.template reduce<&Post<Naming>::one>(std::plus<>())); });
    }
  }
  void wait() override {
    for (auto& counted : counts_) check(counted.get() == posts_.size(), "reduce() has counted another number");
    counts_.clear();
  }
  void finish(Random& shared) override {
    if (!mine(shared)) return;
    check(posts_.template reduce<&Post<Naming>::sum>(std::plus<>()).get() == expected_,
          "messages or broadcasts are missed, or doubled");
    check(posts_.template reduce<&Post<Naming>::given_count>(std::plus<>()).get() == gives_,
          "results of contributions are missed, or doubled");
  }

 private:
  bool mine(Random& shared) const { return shared.below(pe_->size()) == pe_->id(); }

  Pe* pe_;
  Posts posts_;
  std::uint64_t expected_ = 0, gives_ = 0;
  std::vector<Future<std::uint64_t>> counts_;
};

// --- a run

AggregatorOptions random_aggregation(Random& random) {
  AggregatorOptions options;
  if (random.one_in(2)) options.topology = {unsigned(random.below(4))};
  if (random.one_in(3)) options.buffer_bytes = random.size(256, 8192);
  if (random.one_in(4)) options.flush_when_idle = false;
  return options;
}

std::unique_ptr<Plot> random_plot(Pe& pe, Random& shared, std::uint32_t serial) {
  CollectionOptions options{.aggregation = random_aggregation(shared), .measure_load = shared.one_in(4)};
  switch (shared.below(7)) {
    case 0: return std::make_unique<PostPlot<PerPe>>(pe, options);
    case 1: return std::make_unique<PostPlot<PerProcess>>(pe, options);
    case 2: return std::make_unique<PostPlot<Single>>(pe, options);
    case 3: {
      if (shared.one_in(2)) options.placement = cyclic();
      return std::make_unique<PostPlot<Index<1>>>(pe, options, Index<1>(shared.size(1, 40)));
    }
    default: break;
  }
  if (shared.one_in(3)) options.placement = place<Key>([pes = pe.size()](const Key& key) { return key % pes % 2; });
  return std::make_unique<SproutPlot>(pe, options, serial);
}

void run_actions(Pe& pe, Actions& actions, Random& own) {
  for (std::size_t i = actions.size(); i > 1; --i) std::swap(actions[i - 1], actions[own.below(i)]);
  for (const auto& action : actions) {
    action();
    if (!own.one_in(4)) continue;
    for (std::uint64_t i = own.below(60); i > 0; --i) pe.progress();
  }
  actions.clear();
}

std::uint64_t broadcasts_in_run = 0, inserted_in_run = 0;

launch::SimulateResult run_seed(std::uint64_t seed) {
  constexpr std::size_t sizes[] = {1, 2, 3, 5, 8, 13};
  Random random(seed);
  launch::SimulateOptions options{.pes = sizes[seed % std::size(sizes)], .seed = seed};
  if (seed % 4 != 0) options.conditions = sim::random_conditions(random, options.pes);
  Ledger all;
  constexpr std::uint64_t moves[] = {1, 2, 5, 30, 1'000'000};
  all.moves_one_in = moves[random.below(5)];
  ledger = &all;
  const launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
    Random shared(seed * 131 + 1), own(seed * 1000 + pe.id());
    std::vector<std::unique_ptr<Plot>> plots;
    std::uint32_t serial = 0;
    for (std::uint64_t phase = shared.between(1, 5); phase > 0; --phase) {
      for (std::uint64_t i = shared.below(4); i > 0; --i) plots.push_back(random_plot(pe, shared, ++serial));
      Actions actions;
      std::optional<Epoch> epoch;
      if (shared.one_in(3)) epoch.emplace(pe);
      for (const auto& plot : plots) plot->grow(shared, actions);
      run_actions(pe, actions, own);
      if (epoch) epoch->wait();
      for (const auto& plot : plots) plot->settle();
      for (const auto& plot : plots) plot->count(shared, actions);
      run_actions(pe, actions, own);
      for (const auto& plot : plots) plot->wait();
      pe.quiesce();
      for (const auto& plot : plots) plot->finish(shared);
      pe.quiesce();
      for (const auto& plot : plots) plot->note();
      barrier(pe);
      if (pe.id() == 0) {
        for (const auto& plot : plots) plot->judge();
      }
      barrier(pe);
      for (std::size_t i = plots.size(); i-- > 0;) {
        if (shared.one_in(2)) plots.erase(plots.begin() + std::ptrdiff_t(i));
      }
    }
    pe.quiesce();
    return 0;
  });
  broadcasts_in_run = all.broadcasts, inserted_in_run = all.inserted;
  return result;
}

TEST(GrowthSeeds, random_programs_that_insert_and_reduce_do_what_a_serial_replay_says) {
  const char* first = std::getenv("OBJECT_SEED");
  const std::uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const char* count = std::getenv("OBJECT_SEEDS");
  const std::uint64_t end = begin + (count == nullptr ? 20 : std::strtoull(count, nullptr, 10));
  std::uint64_t broadcasts = 0, inserted = 0;
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const launch::SimulateResult result = run_seed(seed);
    ASSERT_EQ(result.status, 0) << "OBJECT_SEED=" << seed << ": " << result.text;
    broadcasts += broadcasts_in_run, inserted += inserted_in_run;
  }
  std::printf("%llu broadcasts to sparse arrays, %llu elements inserted\n", static_cast<unsigned long long>(broadcasts),
              static_cast<unsigned long long>(inserted));
}

}  // namespace
}  // namespace headway
