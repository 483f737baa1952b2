/// Random programs by seed on collections that are made and destroyed all the time. Elements of sparse arrays insert others
/// and erase themselves, in broadcasts and in messages, and reductions follow done_inserting() at once. A ledger that all PEs
/// share notes which broadcasts each element runs. A serial replay of the broadcasts, in the order of an element that is always
/// there, says which elements there are and what each has run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <headway/am/epoch.hpp>
#include <headway/launch/simulation.hpp>
#include <headway/base/random.hpp>
#include <headway/collective/allreduce.hpp>
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

using Key = std::uint64_t;

void check(bool right, const std::string& what) {
  if (!right) throw std::logic_error(what);
}

/// Of one sparse array, by all PEs.
struct Records {
  std::map<Key, std::vector<std::uint32_t>> heard;  // by each element that has ever been, in its order
  std::map<Key, std::vector<std::uint32_t>> later;  // what the PE that inserts it from its main program broadcasts after that
  std::map<Key, std::size_t> planted;               // without a broadcast, when there had been so many at the begin of the phase
  std::size_t before = 0;                           // broadcasts at the begin of this phase
  std::set<Key> here;                               // at the end of the phase
  std::uint64_t nudges = 0, nudges_sent = 0;
  std::uint64_t given = 0, gives = 0;
};
struct Ledger {
  std::map<std::uint32_t, Records> records;  // by the serial number of the array
  std::uint64_t moves_one_in = 2;
  std::uint64_t broadcasts = 0, inserted = 0;
};
Ledger* ledger = nullptr;

// --- elements of sparse arrays

constexpr Key roots = 4;  // these are inserted first, and stay

Random random_of(Key key, std::uint64_t what) { return Random(key * 0x9e3779b97f4a7c15 + what * 77); }
bool stays_for_ever(Key key) { return key < roots || key % 4 == 0; }
Key child_of(Key key, std::uint32_t broadcast, std::uint64_t which) { return random_of(key, broadcast * 8 + which).next() | Key(1) << 32; }
Key planted_by(std::uint32_t message) { return random_of(message, 5).next() | Key(1) << 32; }
/// Whether an element inserts another one when it is made.
bool has_twin(Key key) { return key >= roots && key % 8 == 3; }
Key twin_of(Key key) { return random_of(key, 1).next() / 8 * 8 | Key(1) << 32; }
/// Few enough for an array to stay small.
std::uint64_t children_of(Key key, std::uint32_t broadcast) {
  if (key >= roots && stays_for_ever(key)) return 0;
  return random_of(key, broadcast * 8 + 7).one_in(key < roots ? 3 : 5) ? 1 + broadcast % 2 : 0;
}
bool erases(Key key, std::uint32_t broadcast) { return !stays_for_ever(key) && random_of(key, broadcast * 8 + 6).one_in(3); }
/// Only roots wait in a broadcast: nothing that a coroutine lives in is erased.
bool ponders(Key key, std::uint32_t broadcast) { return key < roots && broadcast % 7 == 3; }
/// One that follows from another one.
std::optional<std::uint32_t> echo_of(std::uint32_t broadcast) {
  if (broadcast % 1000 < 300 && broadcast % 5 == 0) return broadcast + 300;
  return std::nullopt;
}

/// Counts values, and compares with what is expected.
struct Sum {
  std::pair<std::uint64_t, std::uint64_t> operator()(const std::pair<std::uint64_t, std::uint64_t>& a,
                                                     const std::pair<std::uint64_t, std::uint64_t>& b) const {
    return {a.first + b.first, a.second};
  }
};

class Sprout : public Element<Sprout, Sparse<Key>> {
 public:
  Sprout() = default;
  explicit Sprout(std::uint32_t serial) : serial_(serial) {
    const bool is_new = records().heard.try_emplace(index()).second;
    check(is_new, "an element is made twice");
    ++ledger->inserted;
    if (has_twin(index())) all()[twin_of(index())].insert(serial);
  }

  // Of broadcasts.
  void grow(std::uint32_t broadcast) { react(broadcast); }
  std::uint64_t grow_and_count(std::uint32_t broadcast) {
    react(broadcast);
    return 1;
  }
  Task<> ponder(std::uint32_t broadcast) {
    hear(broadcast);
    if (!ponders(index(), broadcast)) co_return;
    co_await all()[(index() + 1) % roots].rpc<&Sprout::one>();
    insert(child_of(index(), broadcast, 0));
  }
  void give(std::uint32_t broadcast, std::uint64_t expected) {
    hear(broadcast);
    move_on(broadcast);
    contribute(std::pair(std::uint64_t(1), expected), Sum(), to<&Sprout::given>(all()[broadcast % roots]));
  }

  // Of messages, to those that stay.
  void relay(std::uint32_t broadcast) { start(all(), broadcast); }
  void plant(std::uint32_t message) {
    records().planted[planted_by(message)] = records().before;
    insert(planted_by(message));
    move_on(message);
  }
  void nudge() { ++records().nudges; }
  void count(std::uint64_t expected) {
    move_on(expected);
    all().reduce<&Sprout::one>(std::plus<>()).then([expected](std::uint64_t counted) {
      check(counted == expected, "reduce() in a handler has counted another number");
    });
  }
  void given(std::pair<std::uint64_t, std::uint64_t> counted) {
    check(counted.first == counted.second, "contribute() has counted another number");
    ++records().given;
  }
  std::uint64_t one() const { return 1; }

  static void start(Collection<Sprout>& sprouts, std::uint32_t broadcast) {
    ++ledger->broadcasts;
    if (broadcast % 7 == 3) return sprouts.broadcast<&Sprout::ponder>(broadcast);
    sprouts.broadcast<&Sprout::grow>(broadcast);
  }

  template <class A>
  void serialize(A& archive) {
    archive(serial_);
  }
  static constexpr auto aggregation = entries(entry<&Sprout::nudge>{});

 private:
  Records& records() { return ledger->records[serial_]; }
  void hear(std::uint32_t broadcast) { records().heard[index()].push_back(broadcast); }
  void react(std::uint32_t broadcast) {
    hear(broadcast);
    for (std::uint64_t i = 0; i < children_of(index(), broadcast); ++i) insert(child_of(index(), broadcast, i));
    if (erases(index(), broadcast)) return erase();
    move_on(broadcast);
    if (const auto echo = echo_of(broadcast); echo && index() == 0) start(all(), *echo);
  }
  void insert(Key key) {
    all()[key].insert(serial_);
    if (!stays_for_ever(key)) return;
    all()[key].send<&Sprout::nudge>();
    ++records().nudges_sent;
  }
  void move_on(std::uint64_t what) {
    Random random = random_of(index(), what * 3 + 1);
    if (random.one_in(ledger->moves_one_in)) migrate_to(random.below(pe().size()));
  }

  std::uint32_t serial_ = 0;
};

/// Where elements come from, as a serial program finds it: what each inserts in which broadcast, and when each is erased.
void replay(const Records& records) {
  const std::vector<std::uint32_t>& order = records.heard.at(0);
  std::map<std::uint32_t, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) {
    check(place.emplace(order[i], i).second, "a broadcast is run twice");
  }
  struct Birth {
    std::size_t first;  // the first broadcast that it gets
    bool at_least;      // or a later one
  };
  std::map<Key, Birth> births;
  std::vector<Key> unseen;
  const auto add = [&](Key key, Birth birth) {
    if (births.emplace(key, birth).second) unseen.push_back(key);
  };
  for (Key root = 0; root < roots; ++root) add(root, {0, false});
  for (const auto& [key, before] : records.planted) add(key, {before, true});
  std::size_t there = 0;
  while (!unseen.empty()) {
    const Key key = unseen.back();
    unseen.pop_back();
    const Birth birth = births.at(key);
    const auto found = records.heard.find(key);
    check(found != records.heard.end(), "an element was never made");
    const std::vector<std::uint32_t>& heard = found->second;
    const std::size_t first = heard.empty() ? order.size() : place.at(heard.front());
    const std::string text = "element " + std::to_string(key) + ": it runs broadcasts from place " + std::to_string(first) +
                             " on instead of " + std::to_string(birth.first) + " of " + std::to_string(order.size());
    check(birth.at_least ? first >= birth.first : first == birth.first, text);
    for (std::size_t i = 0; i < heard.size(); ++i) {
      check(first + i < order.size() && heard[i] == order[first + i], "an element runs broadcasts in another order");
    }
    if (has_twin(key)) add(twin_of(key), {first, false});
    bool erased = false;
    for (std::size_t i = 0; i < heard.size(); ++i) {
      check(!erased, "an element that has erased itself runs a broadcast");
      const std::uint32_t broadcast = heard[i];
      if (broadcast % 1000 >= 900) continue;  // no insertions
      if (broadcast % 7 == 3) {
        if (ponders(key, broadcast)) add(child_of(key, broadcast, 0), {first + i + 1, true});
        continue;
      }
      for (std::uint64_t c = 0; c < children_of(key, broadcast); ++c) add(child_of(key, broadcast, c), {first + i + 1, false});
      erased = erases(key, broadcast);
    }
    check(erased || first + heard.size() == order.size(), "an element misses the last broadcasts");
    check(erased != records.here.contains(key), erased ? "an element is there that was erased" : "an element is lost");
    there += erased ? 0 : 1;
  }
  check(there == records.here.size() && births.size() == records.heard.size(), "there are elements that nobody has inserted");
  for (const auto& [key, later] : records.later) {
    const std::vector<std::uint32_t>& heard = records.heard.at(key);
    const std::size_t first = heard.empty() ? order.size() : place.at(heard.front());
    for (const std::uint32_t broadcast : later) check(first <= place.at(broadcast), "an element misses a broadcast that its PE starts later");
  }
  check(records.nudges == records.nudges_sent, "messages to elements are missed, or doubled");
  check(records.given == records.gives, "results of contributions are missed, or doubled");
}

// --- elements of other collections

/// Sums up what comes. Those of arrays move.
template <class Naming>
class Post : public Element<Post<Naming>, Naming> {
 public:
  void add(std::uint64_t value) {
    sum_ += value;
    move_on(value);
  }
  void give(std::uint64_t which, std::uint64_t expected) {
    move_on(which);
    this->contribute(std::pair(std::uint64_t(1), expected), Sum(), to<&Post::given>(this->all()[0]));
  }
  void given(std::pair<std::uint64_t, std::uint64_t> counted) {
    check(counted.first == counted.second, "contribute() has counted another number");
    ++given_;
  }
  void count(std::uint64_t expected) {
    this->all().template reduce<&Post::one>(std::plus<>()).then([expected](std::uint64_t counted) {
      check(counted == expected, "reduce() in a handler has counted another number");
    });
  }
  std::uint64_t one() const { return 1; }
  std::uint64_t sum() const { return sum_; }
  std::uint64_t given_count() const { return given_; }

  template <class A>
  void serialize(A& archive) {
    archive(sum_, given_);
  }
  static constexpr auto aggregation = entries(entry<&Post::add>{});

 private:
  void move_on(std::uint64_t what) {
    if constexpr (object::NamingOf<Naming>::moves) {
      Random random(what * 5 + this->pe().id());
      if (random.one_in(ledger->moves_one_in)) this->migrate_to(random.below(this->pe().size()));
    }
  }
  std::uint64_t sum_ = 0, given_ = 0;
};

// --- what all PEs do with a collection: drawn from `shared`, which is equal on all PEs

using Actions = std::vector<std::function<void()>>;

class Plot {
 public:
  virtual ~Plot() = default;
  /// Of a phase: what this PE does in its first part; what follows quiescence; what this PE does then, before it quiesces.
  virtual void grow(Random& shared, Actions& actions) = 0;
  virtual void settle() {}
  virtual void count(Random& shared, Actions& actions) = 0;
  /// Of futures, when all actions are done; then, when all PEs have quiesced.
  virtual void wait() = 0;
  virtual void finish(Random& shared) = 0;
  /// When all have quiesced again: what is here; then, on PE 0, whether all is right.
  virtual void note() {}
  virtual void judge() {}
};

class SproutPlot final : public Plot {
 public:
  SproutPlot(Pe& pe, const CollectionOptions& options, std::uint32_t serial) : pe_(&pe), sprouts_(pe, options), serial_(serial) {
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
      if (mine(shared)) actions.push_back([this, root, i] { sprouts_[root].send<&Sprout::relay>(std::uint32_t(number_ + 600 + i)); });
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
    sprouts_.for_each_local([this](Sprout& sprout) { check(records().here.insert(sprout.index()).second, "an element is there twice"); });
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
  std::vector<Key> planted_;  // from here, in this phase
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
      if (mine(shared)) actions.push_back([this] { counts_.push_back(posts_.template reduce<&Post<Naming>::one>(std::plus<>())); });
    }
  }
  void wait() override {
    for (auto& counted : counts_) check(counted.get() == posts_.size(), "reduce() has counted another number");
    counts_.clear();
  }
  void finish(Random& shared) override {
    if (!mine(shared)) return;
    check(posts_.template reduce<&Post<Naming>::sum>(std::plus<>()).get() == expected_, "messages or broadcasts are missed, or doubled");
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
  const std::uint64_t end = begin + (count == nullptr ? 100 : std::strtoull(count, nullptr, 10));
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
