// SPDX-License-Identifier: BSD-3-Clause
/// The broadcasts of elements that are inserted while broadcasts run, and the elements that reductions count, on
/// networks that delay frames.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <headway/collective/allreduce.hpp>
#include <headway/launch/simulation.hpp>
#include <headway/object/checkpoint.hpp>
#include <headway/object/object.hpp>
#include <set>
#include <string>
#include <vector>

namespace headway {
namespace {

/// Runs the body with several seeds. Frames of different PEs overtake one another.
template <class Body>
void expect_runs(std::size_t pes, std::uint64_t seeds, Body body) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    launch::SimulateOptions options{.pes = pes, .seed = seed};
    options.conditions.latency_ns = 5'000;
    options.conditions.delay_ns_max = 2'000'000;
    const launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
      body(pe);
      return 0;
    });
    ASSERT_EQ(result.status, 0) << pes << " PEs, seed " << seed << ": " << result.text;
  }
}

/// An element of one PE that may start a reduction when a message arrives.
class Counted : public Element<Counted, Sparse<int>> {
 public:
  void away() { migrate_to(1 + std::size_t(index()) % (pe().size() - 1)); }
  long one() const { return 1; }
  void count(long expected) {
    all().reduce<&Counted::one>(std::plus<>()).then([expected](long counted) { EXPECT_EQ(counted, expected); });
  }
  void give(long expected) { contribute(std::pair(1L, expected), Sum(), to<&Counted::given>(all()[0])); }
  void given(std::pair<long, long> counted) {
    EXPECT_EQ(counted.first, counted.second);
    ++reductions_;
  }
  long reductions() const { return reductions_; }
  template <class A>
  void serialize(A& archive) {
    archive(reductions_);
  }

 private:
  long reductions_ = 0;
  struct Sum {
    std::pair<long, long> operator()(const std::pair<long, long>& a, const std::pair<long, long>& b) const {
      return {a.first + b.first, a.second};
    }
  };
};

TEST(Insertions, reductions_count_all_elements_as_soon_as_one_pe_has_left_done_inserting) {
  expect_runs(8, 10, [](Pe& pe) {
    SparseArray<Counted> elements(pe);
    for (int round = 0; round < 30; ++round) {
      if (pe.id() == 0) {
        elements[round].insert();
        elements[round].send<&Counted::away>();
      }
      elements.done_inserting();
      const long size = round + 1;
      EXPECT_EQ(elements.size(), std::uint64_t(size));
      if (pe.id() == std::size_t(round) % pe.size()) {
        elements[round / 2].send<&Counted::count>(size);
        EXPECT_EQ(elements.reduce<&Counted::one>(std::plus<>()).get(), size);
      }
      pe.quiesce();
    }
  });
}

TEST(Insertions, elements_contribute_from_the_next_done_inserting_on_beside_those_that_have_contributed) {
  expect_runs(8, 10, [](Pe& pe) {
    SparseArray<Counted> elements(pe);
    for (int round = 0; round < 10; ++round) {
      if (pe.id() == 0) {
        elements[round].insert();
        elements[round].send<&Counted::away>();
      }
      elements.done_inserting();
      if (pe.id() == std::size_t(round) % pe.size()) elements.broadcast<&Counted::give>(round + 1);
      pe.quiesce();
    }
    Counted* const first = elements.find_local(0);
    EXPECT_EQ(allreduce(pe, first == nullptr ? 0L : first->reductions(), std::plus<>()), 10);
  });
}

/// Reduces over an element that no done_inserting() has counted.
int contribute_uncounted(Pe& pe) {
  SparseArray<Counted> elements(pe, {.placement = place<int>([](int) { return 0u; })});
  if (pe.id() == 0) elements[0].insert();
  elements.done_inserting();
  if (pe.id() == 0) elements[1].insert(), elements[1].send<&Counted::away>();
  pe.quiesce();
  if (pe.id() == 0) elements[1].send<&Counted::give>(2);
  pe.quiesce();
  return 0;
}

TEST(Insertions, an_element_that_is_not_counted_contributes_nothing) {
  EXPECT_EXIT(  // in a process of its own: a run that fails abandons the objects on its fibers' stacks
      {
        const launch::SimulateResult result = launch::simulate({.pes = 3}, contribute_uncounted);
        std::fputs(result.text.c_str(), stderr);
        std::_Exit(result.status);
      },
      testing::ExitedWithCode(121), "does not count this element");
}

TEST(Insertions, reductions_count_all_elements_as_soon_as_one_pe_has_left_restart) {
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "headway-insertions";
  std::filesystem::remove_all(path);
  expect_runs(5, 5, [&](Pe& pe) {
    SparseArray<Counted> elements(pe), again(pe);
    for (int i = int(pe.id()); i < 12; i += int(pe.size())) elements[i].insert();
    elements.done_inserting();
    checkpoint(pe, path, elements);
    restart(pe, path, again);
    again[int(pe.id())].send<&Counted::count>(12);
    if (pe.id() == 2) again.broadcast<&Counted::give>(12);
    EXPECT_EQ(again.reduce<&Counted::one>(std::plus<>()).get(), 12);
    pe.quiesce();
  });
  std::filesystem::remove_all(path);
}

class Block : public Element<Block, Sparse<long>> {
 public:
  void split() {
    for (long child = 0; child < 2; ++child) all()[2 * index() + child].insert();
    erase();
  }
  long split_and_count() {
    split();
    return 1;
  }
  long one() const { return 1; }
};

TEST(Insertions, what_a_broadcast_inserts_does_not_get_that_broadcast) {
  expect_runs(8, 10, [](Pe& pe) {
    for (long round = 0; round < 8; ++round) {
      SparseArray<Block> blocks(pe);
      if (pe.id() == 0) blocks[1 + round].insert();
      blocks.done_inserting();
      // Each reduction is a broadcast: elements that one inserts run the next; elements that one erases do not.
      for (int level = 0; level < 4; ++level) {
        if (pe.id() == std::size_t(round) % pe.size()) blocks.broadcast<&Block::split>();
      }
      blocks.done_inserting();
      EXPECT_EQ(blocks.size(), 16u) << "round " << round;
      if (pe.id() == 1) {
        EXPECT_EQ(blocks.reduce<&Block::split_and_count>(std::plus<>()).get(), 16) << "round " << round;
      }
      blocks.done_inserting();
      EXPECT_EQ(blocks.size(), 32u) << "round " << round;
      EXPECT_EQ(blocks.reduce<&Block::one>(std::plus<>()).get(), 32) << "round " << round;
      pe.quiesce();
    }
  });
}

/// Runs all broadcasts after the one that inserted it. Some insert their successor, or move.
class Heir : public Element<Heir, Sparse<std::uint64_t>> {
 public:
  Heir() = default;
  explicit Heir(int first) : next_(first) {}
  static bool inserts(std::uint64_t index, int number) {
    return number < inserting && std::uint64_t(number) % 3 == index % 3;
  }
  static std::uint64_t child(std::uint64_t index, int number) { return index * inserting + std::uint64_t(number) + 1; }

  void hear(int number) {
    EXPECT_EQ(number, next_) << "element " << index();
    next_ = number + 1;
    if (inserts(index(), number)) {
      all()[child(index(), number)].insert(number + 1);
      if (index() != 0) erase();
    } else if (std::uint64_t(number) % 7 == index() % 7) {
      migrate_to((std::size_t(number) + index()) % pe().size());
    }
  }
  int next() const { return next_; }
  template <class A>
  void serialize(A& archive) {
    archive(next_);
  }
  static constexpr int inserting = 100;  // broadcasts

 private:
  int next_ = 0;
};

/// The elements that exist after the broadcasts.
std::set<std::uint64_t> heirs_after(int broadcasts) {
  std::set<std::uint64_t> heirs = {0};
  for (int number = 0; number < broadcasts; ++number) {
    for (const std::uint64_t index : std::vector<std::uint64_t>(heirs.begin(), heirs.end())) {
      if (!Heir::inserts(index, number)) continue;
      if (index != 0) heirs.erase(index);
      heirs.insert(Heir::child(index, number));
    }
  }
  return heirs;
}

TEST(Insertions, an_element_gets_each_broadcast_after_the_one_that_inserted_it_once_and_in_order) {
  constexpr int broadcasts = 3 * Heir::inserting;  // PEs drop their history several times meanwhile
  const std::set<std::uint64_t> expected = heirs_after(broadcasts);
  for (const std::size_t pes : {1, 2, 5, 8}) {
    expect_runs(pes, 5, [&](Pe& pe) {
      SparseArray<Heir> heirs(pe);
      if (pe.id() == 0) heirs[0].insert(0);
      heirs.done_inserting();
      if (pe.id() == 0) {
        for (int number = 0; number < broadcasts; ++number) heirs.broadcast<&Heir::hear>(number);
      }
      heirs.done_inserting();
      EXPECT_EQ(heirs.size(), expected.size());
      heirs.for_each_local([&](Heir& heir) {
        EXPECT_TRUE(expected.contains(heir.index())) << "element " << heir.index();
        EXPECT_EQ(heir.next(), broadcasts) << "element " << heir.index();
      });
      pe.quiesce();
    });
  }
}

TEST(Insertions, what_is_inserted_before_a_broadcast_on_the_same_pe_gets_it) {
  constexpr int first = Heir::inserting;
  expect_runs(8, 20, [&](Pe& pe) {
    SparseArray<Heir> heirs(pe);
    if (pe.id() == 3) {
      for (std::uint64_t i = 0; i < 12; ++i) heirs[i].insert(first);
      for (int number = 0; number < 3; ++number) heirs.broadcast<&Heir::hear>(first + number);
    }
    pe.quiesce();
    heirs.for_each_local([&](Heir& heir) { EXPECT_EQ(heir.next(), first + 3) << "element " << heir.index(); });
    pe.quiesce();
  });
}

}  // namespace
}  // namespace headway
