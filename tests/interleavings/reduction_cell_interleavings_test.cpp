// SPDX-License-Identifier: BSD-3-Clause
// The cell in which contributions to a collective meet: every interleaving of members that come to it generation after
// generation.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <explorer/shared.hpp>
#include <functional>
#include <headway/collective/reduction_cell.hpp>
#include <memory>
#include <string>

#include "report.hpp"

namespace headway::collective {
namespace {

using explore::Atomic;
using explore::expect_found;
using explore::expect_no_violation;
using explore::Plain;

constexpr auto relaxed = std::memory_order_relaxed;

using TestCell = BasicReductionCell<Atomic<std::uint64_t>>;

/// Each member contributes to each generation once the cell is free; the last member to arrive reads all contributions.
class Generations : public explore::Program {
 public:
  static constexpr unsigned members_max = 3;

  Generations(unsigned members, unsigned generations) : members_(members), generations_of_each_(generations) {
    arrived_.named("arrived");
    generations_.named("generations");
    for (unsigned m = 0; m < members_max; ++m) contributions_[m].named("contribution of " + std::to_string(m));
  }

  unsigned threads() const override { return members_; }

  void thread(unsigned id) override {
    TestCell cell(arrived_, generations_, members_);
    for (unsigned generation = 0; generation < generations_of_each_; ++generation) {
      while (!cell.is_free(generation)) {
        if (!explore::wait_for_news()) return;
      }
      contributions_[id] = contribution(id, generation);
      if (!cell.arrive(generation)) continue;
      for (unsigned m = 0; m < members_; ++m) {
        explore::check(contributions_[m] == contribution(m, generation),
                       "the last finds another generation's contribution");
      }
      ++reduced_[id][generation];
      cell.end(generation);
    }
  }

  void check() override {
    for (unsigned generation = 0; generation < generations_of_each_; ++generation) {
      unsigned reduced = 0;
      for (unsigned m = 0; m < members_; ++m) reduced += reduced_[m][generation];
      explore::check(reduced == 1, "a generation is not reduced once");
    }
  }

  Atomic<std::uint64_t> arrived_, generations_;

 private:
  static unsigned contribution(unsigned id, unsigned generation) { return generation * 10 + id + 1; }

  unsigned members_, generations_of_each_;
  std::array<Plain<unsigned>, members_max> contributions_;
  std::array<std::array<unsigned, 4>, members_max> reduced_{};
};

auto generations(
    unsigned members, unsigned generations_of_each, std::function<void(Generations&)> plant = [](Generations&) {}) {
  return [=] {
    auto program = std::make_unique<Generations>(members, generations_of_each);
    plant(*program);
    return program;
  };
}

TEST(ReductionCellInterleavings, two_come_generation_after_generation) {
  expect_no_violation("reduction cell: 2 members, 3 generations", {}, generations(2, 3));
}

TEST(ReductionCellInterleavings, three_come_generation_after_generation) {
  expect_no_violation("reduction cell: 3 members, 2 generations", {}, generations(3, 2));
  expect_no_violation("reduction cell: 3 members, 3 generations", {}, generations(3, 3));
}

TEST(ReductionCellInterleavingsLong, more_generations) {
  expect_no_violation("reduction cell: 2 members, 4 generations", {}, generations(2, 4));
}

/// One member passes, the others arrive. In every interleaving at least one of them detects the difference.
class Crossing : public explore::Program {
 public:
  explicit Crossing(unsigned members) : members_(members) {
    came_.named("came");
    passed_.named("passed");
  }

  unsigned threads() const override { return members_; }

  void thread(unsigned id) override {
    using Marks = BasicCrossing<Atomic<std::uint64_t>>;
    Marks marks(came_, passed_);
    const auto nothing = [] {};
    const std::uint64_t own = Marks::mark(0, 7);
    seen_[id] = id == 0 ? marks.pass(own, nothing) : marks.arrive(own, nothing);
  }

  void check() override { explore::check(seen_[0] || seen_[1] || seen_[2], "nobody sees that they differ"); }

  Atomic<std::uint64_t> came_, passed_;

 private:
  unsigned members_;
  std::array<bool, 3> seen_{};
};

auto crossing(
    unsigned members, std::function<void(Crossing&)> plant = [](Crossing&) {}) {
  return [=] {
    auto program = std::make_unique<Crossing>(members);
    plant(*program);
    return program;
  };
}

TEST(ReductionCellInterleavings, who_comes_and_who_passes_do_not_miss_each_other) {
  expect_no_violation("reduction cell: 1 passes, 1 comes, exchanges fail for no reason", {.spurious_failures_max = 1},
                      crossing(2));
  expect_no_violation("reduction cell: 1 passes, 2 come", {}, crossing(3));
}

/// A host's own part and those of two hosts below it, generation after generation. The host that completes a generation
/// reads all parts and ends it. The hosts below go on when they learn of the end. The second one learns it from a host
/// that is ahead of this one, so a part of the next generation arrives before this one is over.
class PartsOfGenerations : public explore::Program {
 public:
  static constexpr unsigned parts = 3, generations_max = 3;
  using TestParts = BasicHostParts<Atomic<std::uint64_t>>;

  explicit PartsOfGenerations(unsigned generations) : generations_(generations) {
    for (unsigned parity = 0; parity < 2; ++parity) {
      words_[parity].named("parts of parity " + std::to_string(parity));
      for (unsigned part = 0; part < parts; ++part) {
        contents_[parity][part].named("part " + std::to_string(part) + " of parity " + std::to_string(parity));
      }
    }
    over_.named("generations that are over");
    complete_.named("generations that are complete");
  }

  unsigned threads() const override { return parts; }

  void thread(unsigned part) override {
    for (unsigned generation = 0; generation < generations_; ++generation) {
      // The host's own members come when they see the end here, the first child when it is told of it, the second when
      // it knows that all parts are there.
      Atomic<std::uint64_t>& told = part == 2 ? complete_ : over_;
      while (told.load(std::memory_order_acquire) < generation) {
        if (!explore::wait_for_news()) return;
      }
      TestParts here(words_[generation % 2]);
      if (part != 0) explore::check(here.claim(part), "a part is claimed twice in a generation");
      contents_[generation % 2][part] = content(part, generation);
      const TestParts::Parts now = here.arrive(part, part == 0 ? 0b111 : 0);
      explore::check(now.strays() == 0, "a part of a generation does not belong to it");
      if (!now.complete()) continue;
      for (unsigned other = 0; other < parts; ++other) {
        explore::check(contents_[generation % 2][other] == content(other, generation),
                       "who completes a generation finds another's part");
      }
      ++completed_[part][generation];
      complete_.store(generation + 1, std::memory_order_release);
      here.end();
      over_.store(generation + 1, std::memory_order_release);
    }
  }

  void check() override {
    for (unsigned generation = 0; generation < generations_; ++generation) {
      unsigned completed = 0;
      for (unsigned part = 0; part < parts; ++part) completed += completed_[part][generation];
      explore::check(completed == 1, "a generation is not completed once");
    }
  }

  std::array<Atomic<std::uint64_t>, 2> words_;
  Atomic<std::uint64_t> over_, complete_;

 private:
  static unsigned content(unsigned part, unsigned generation) { return generation * 10 + part + 1; }

  unsigned generations_;
  std::array<std::array<Plain<unsigned>, parts>, 2> contents_;
  std::array<std::array<unsigned, generations_max>, parts> completed_{};
};

auto parts_of_generations(
    unsigned generations, std::function<void(PartsOfGenerations&)> plant = [](PartsOfGenerations&) {}) {
  return [=] {
    auto program = std::make_unique<PartsOfGenerations>(generations);
    plant(*program);
    return program;
  };
}

TEST(ReductionCellInterleavings, parts_of_hosts_come_generation_after_generation) {
  expect_no_violation("host parts: own and 2 children, 2 generations", {}, parts_of_generations(2));
}

TEST(ReductionCellInterleavingsLong, more_generations_of_parts) {
  expect_no_violation("host parts: own and 2 children, 3 generations", {}, parts_of_generations(3));
}

// --- planted bugs

TEST(PlantedInReductionCell, a_part_comes_relaxed) {
  expect_found(
      "host parts: arrives relaxed", "while it may be", {},
      parts_of_generations(1, [](PartsOfGenerations& program) { program.words_[0].plant_exchanges(relaxed); }));
}

TEST(PlantedInReductionCell, who_comes_counts_relaxed) {
  expect_found("reduction cell: arrives relaxed", "while it may be", {},
               generations(2, 1, [](Generations& program) { program.arrived_.plant_exchanges(relaxed); }));
}

TEST(PlantedInReductionCell, the_last_frees_it_relaxed) {
  expect_found("reduction cell: freed relaxed", "while it may be", {},
               generations(2, 2, [](Generations& program) { program.generations_.plant_stores(relaxed); }));
}

TEST(PlantedInReductionCell, who_comes_looks_relaxed) {
  expect_found("reduction cell: looks relaxed", "while it may be", {},
               generations(2, 2, [](Generations& program) { program.generations_.plant_loads(relaxed); }));
}

TEST(PlantedInReductionCell, who_comes_leaves_its_mark_relaxed) {
  expect_found("reduction cell: mark relaxed", "nobody sees", {},
               crossing(2, [](Crossing& program) { program.came_.plant_stores(relaxed); }));
}

TEST(PlantedInReductionCell, who_passes_leaves_its_mark_relaxed) {
  expect_found("reduction cell: mark of who passes relaxed", "nobody sees", {},
               crossing(2, [](Crossing& program) { program.passed_.plant_exchanges(relaxed); }));
}

}  // namespace
}  // namespace headway::collective
