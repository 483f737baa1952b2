// SPDX-License-Identifier: BSD-3-Clause
/// The elements of growth_seeds_test.cpp, the ledger that all PEs share, and the serial replay of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/base/random.hpp>
#include <headway/object/object.hpp>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace headway::growth {

using Key = std::uint64_t;

inline void check(bool right, const std::string& what) {
  if (!right) throw std::logic_error(what);
}

/// The records of one sparse array, shared by all PEs.
struct Records {
  std::map<Key, std::vector<std::uint32_t>> heard;  // broadcasts of each element, in its order
  std::map<Key, std::vector<std::uint32_t>>
      later;                           // broadcasts that the main program starts after it inserts the element
  std::map<Key, std::size_t> planted;  // inserted outside of broadcasts: broadcasts before the phase
  std::size_t before = 0;              // broadcasts before this phase
  std::set<Key> here;                  // elements at the end of the phase
  std::uint64_t nudges = 0, nudges_sent = 0;
  std::uint64_t given = 0, gives = 0;
};
struct Ledger {
  std::map<std::uint32_t, Records> records;  // by the serial number of the array
  std::uint64_t moves_one_in = 2;
  std::uint64_t broadcasts = 0, inserted = 0;
};
inline Ledger* ledger = nullptr;

// --- elements of sparse arrays

inline constexpr Key roots = 4;  // inserted first, never erased

inline Random random_of(Key key, std::uint64_t what) { return Random(key * 0x9e3779b97f4a7c15 + what * 77); }
inline bool stays_for_ever(Key key) { return key < roots || key % 4 == 0; }
inline Key child_of(Key key, std::uint32_t broadcast, std::uint64_t which) {
  return random_of(key, broadcast * 8 + which).next() | Key(1) << 32;
}
inline Key planted_by(std::uint32_t message) { return random_of(message, 5).next() | Key(1) << 32; }
/// Whether the constructor of an element inserts another element.
inline bool has_twin(Key key) { return key >= roots && key % 8 == 3; }
inline Key twin_of(Key key) { return random_of(key, 1).next() / 8 * 8 | Key(1) << 32; }
/// Few, so that the array stays small.
inline std::uint64_t children_of(Key key, std::uint32_t broadcast) {
  if (key >= roots && stays_for_ever(key)) return 0;
  return random_of(key, broadcast * 8 + 7).one_in(key < roots ? 3 : 5) ? 1 + broadcast % 2 : 0;
}
inline bool erases(Key key, std::uint32_t broadcast) {
  return !stays_for_ever(key) && random_of(key, broadcast * 8 + 6).one_in(3);
}
/// Only roots wait in a broadcast: an element with a living coroutine is not erased.
inline bool ponders(Key key, std::uint32_t broadcast) { return key < roots && broadcast % 7 == 3; }
/// A broadcast that another broadcast starts.
inline std::optional<std::uint32_t> echo_of(std::uint32_t broadcast) {
  if (broadcast % 1000 < 300 && broadcast % 5 == 0) return broadcast + 300;
  return std::nullopt;
}

/// Counts values and compares the count with the expected one.
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

  // Run by broadcasts.
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

  // Run by messages to elements that are never erased.
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

/// Replays all insertions and erasures in serial order and checks the records.
inline void replay(const Records& records) {
  const std::vector<std::uint32_t>& order = records.heard.at(0);
  std::map<std::uint32_t, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) {
    check(place.emplace(order[i], i).second, "a broadcast is run twice");
  }
  struct Birth {
    std::size_t first;  // first broadcast that the element runs
    bool at_least;      // or a later broadcast is the first
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
    const std::string text = "element " + std::to_string(key) + ": it runs broadcasts from place " +
                             std::to_string(first) + " on instead of " + std::to_string(birth.first) + " of " +
                             std::to_string(order.size());
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
      for (std::uint64_t c = 0; c < children_of(key, broadcast); ++c)
        add(child_of(key, broadcast, c), {first + i + 1, false});
      erased = erases(key, broadcast);
    }
    check(erased || first + heard.size() == order.size(), "an element misses the last broadcasts");
    check(erased != records.here.contains(key), erased ? "an element is there that was erased" : "an element is lost");
    there += erased ? 0 : 1;
  }
  check(there == records.here.size() && births.size() == records.heard.size(),
        "there are elements that were never inserted");
  for (const auto& [key, later] : records.later) {
    const std::vector<std::uint32_t>& heard = records.heard.at(key);
    const std::size_t first = heard.empty() ? order.size() : place.at(heard.front());
    for (const std::uint32_t broadcast : later) {
      check(first <= place.at(broadcast), "an element misses a broadcast that its PE starts later");
    }
  }
  check(records.nudges == records.nudges_sent, "messages to elements are missed, or doubled");
  check(records.given == records.gives, "results of contributions are missed, or doubled");
}

// --- elements of other collections

/// Sums the values of its messages. Elements of arrays move.
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

}  // namespace headway::growth
