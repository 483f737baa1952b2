// The cell in which contributions to a collective meet: every interleaving of members that come to it lap after lap.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <explorer/shared.hpp>
#include <functional>
#include <headway/collective/fold_cell.hpp>
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

using TestCell = BasicFoldCell<Atomic<std::uint64_t>>;

/// Each member comes to each lap with a contribution of its own, once the cell is free; who comes last reads all.
class Laps : public explore::Program {
 public:
  static constexpr unsigned members_max = 3;

  Laps(unsigned members, unsigned laps) : members_(members), laps_of_each_(laps) {
    arrived_.named("arrived");
    laps_.named("laps");
    for (unsigned m = 0; m < members_max; ++m) contributions_[m].named("contribution of " + std::to_string(m));
  }

  unsigned threads() const override { return members_; }

  void thread(unsigned id) override {
    TestCell cell(arrived_, laps_, members_);
    for (unsigned lap = 0; lap < laps_of_each_; ++lap) {
      while (!cell.is_free(lap)) {
        if (!explore::wait_for_news()) return;
      }
      contributions_[id] = contribution(id, lap);
      if (!cell.come(lap)) continue;
      for (unsigned m = 0; m < members_; ++m) {
        explore::check(contributions_[m] == contribution(m, lap), "the last finds another lap's contribution");
      }
      ++folded_[id][lap];
      cell.end(lap);
    }
  }

  void check() override {
    for (unsigned lap = 0; lap < laps_of_each_; ++lap) {
      unsigned folded = 0;
      for (unsigned m = 0; m < members_; ++m) folded += folded_[m][lap];
      explore::check(folded == 1, "a lap is not folded once");
    }
  }

  Atomic<std::uint64_t> arrived_, laps_;

 private:
  static unsigned contribution(unsigned id, unsigned lap) { return lap * 10 + id + 1; }

  unsigned members_, laps_of_each_;
  std::array<Plain<unsigned>, members_max> contributions_;
  std::array<std::array<unsigned, 4>, members_max> folded_{};
};

auto laps(
    unsigned members, unsigned laps_of_each, std::function<void(Laps&)> plant = [](Laps&) {}) {
  return [=] {
    auto program = std::make_unique<Laps>(members, laps_of_each);
    plant(*program);
    return program;
  };
}

TEST(FoldCellInterleavings, two_come_lap_after_lap) {
  expect_no_violation("fold cell: 2 members, 3 laps", {}, laps(2, 3));
}

TEST(FoldCellInterleavings, three_come_lap_after_lap) {
  expect_no_violation("fold cell: 3 members, 2 laps", {}, laps(3, 2));
  expect_no_violation("fold cell: 3 members, 3 laps", {}, laps(3, 3));
}

TEST(FoldCellInterleavingsLong, more_laps) {
  expect_no_violation("fold cell: 2 members, 4 laps", {}, laps(2, 4));
}

/// One member passes, the others come: whatever they see of each other, somebody sees that they differ.
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
    seen_[id] = id == 0 ? marks.pass(own, nothing) : marks.come(own, nothing);
  }

  void check() override {
    explore::check(seen_[0] || seen_[1] || seen_[2], "nobody sees that they differ");
  }

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

TEST(FoldCellInterleavings, who_comes_and_who_passes_do_not_miss_each_other) {
  expect_no_violation("fold cell: 1 passes, 1 comes, exchanges fail for no reason", {.spurious_failures_max = 1},
                      crossing(2));
  expect_no_violation("fold cell: 1 passes, 2 come", {}, crossing(3));
}

/// A host's own part and those of two hosts below it, lap after lap: whoever completes a lap reads all, and ends it.
/// Those below go on when they hear of the end, the second one by a host that is ahead of this one, so that a part of
/// the next lap comes before this one is over.
class PartsOfLaps : public explore::Program {
 public:
  static constexpr unsigned parts = 3, laps_max = 3;
  using TestParts = BasicHostParts<Atomic<std::uint64_t>>;

  explicit PartsOfLaps(unsigned laps) : laps_(laps) {
    for (unsigned parity = 0; parity < 2; ++parity) {
      words_[parity].named("parts of parity " + std::to_string(parity));
      for (unsigned part = 0; part < parts; ++part) {
        contents_[parity][part].named("part " + std::to_string(part) + " of parity " + std::to_string(parity));
      }
    }
    over_.named("laps that are over");
    complete_.named("laps that are complete");
  }

  unsigned threads() const override { return parts; }

  void thread(unsigned part) override {
    for (unsigned lap = 0; lap < laps_; ++lap) {
      // The host's own members come when they see the end here, the first child when it is told of it, the second when
      // it knows that all parts are there.
      Atomic<std::uint64_t>& told = part == 2 ? complete_ : over_;
      while (told.load(std::memory_order_acquire) < lap) {
        if (!explore::wait_for_news()) return;
      }
      TestParts here(words_[lap % 2]);
      if (part != 0) explore::check(here.claim(part), "a part is claimed twice in a lap");
      contents_[lap % 2][part] = content(part, lap);
      const TestParts::Parts now = here.come(part, part == 0 ? 0b111 : 0);
      explore::check(now.strays() == 0, "a part of a lap does not belong to it");
      if (!now.complete()) continue;
      for (unsigned other = 0; other < parts; ++other) {
        explore::check(contents_[lap % 2][other] == content(other, lap), "who completes a lap finds another's part");
      }
      ++completed_[part][lap];
      complete_.store(lap + 1, std::memory_order_release);
      here.end();
      over_.store(lap + 1, std::memory_order_release);
    }
  }

  void check() override {
    for (unsigned lap = 0; lap < laps_; ++lap) {
      unsigned completed = 0;
      for (unsigned part = 0; part < parts; ++part) completed += completed_[part][lap];
      explore::check(completed == 1, "a lap is not completed once");
    }
  }

  std::array<Atomic<std::uint64_t>, 2> words_;
  Atomic<std::uint64_t> over_, complete_;

 private:
  static unsigned content(unsigned part, unsigned lap) { return lap * 10 + part + 1; }

  unsigned laps_;
  std::array<std::array<Plain<unsigned>, parts>, 2> contents_;
  std::array<std::array<unsigned, laps_max>, parts> completed_{};
};

auto parts_of_laps(
    unsigned laps, std::function<void(PartsOfLaps&)> plant = [](PartsOfLaps&) {}) {
  return [=] {
    auto program = std::make_unique<PartsOfLaps>(laps);
    plant(*program);
    return program;
  };
}

TEST(FoldCellInterleavings, parts_of_hosts_come_lap_after_lap) {
  expect_no_violation("host parts: own and 2 children, 2 laps", {}, parts_of_laps(2));
}

TEST(FoldCellInterleavingsLong, more_laps_of_parts) {
  expect_no_violation("host parts: own and 2 children, 3 laps", {}, parts_of_laps(3));
}

// --- planted bugs

TEST(PlantedInFoldCell, a_part_comes_relaxed) {
  expect_found("host parts: comes relaxed", "while it may be", {},
               parts_of_laps(1, [](PartsOfLaps& program) { program.words_[0].plant_exchanges(relaxed); }));
}

TEST(PlantedInFoldCell, who_comes_counts_relaxed) {
  expect_found("fold cell: comes relaxed", "while it may be", {},
               laps(2, 1, [](Laps& program) { program.arrived_.plant_exchanges(relaxed); }));
}

TEST(PlantedInFoldCell, the_last_frees_it_relaxed) {
  expect_found("fold cell: freed relaxed", "while it may be", {},
               laps(2, 2, [](Laps& program) { program.laps_.plant_stores(relaxed); }));
}

TEST(PlantedInFoldCell, who_comes_looks_relaxed) {
  expect_found("fold cell: looks relaxed", "while it may be", {},
               laps(2, 2, [](Laps& program) { program.laps_.plant_loads(relaxed); }));
}

TEST(PlantedInFoldCell, who_comes_leaves_its_mark_relaxed) {
  expect_found("fold cell: mark relaxed", "nobody sees", {},
               crossing(2, [](Crossing& program) { program.came_.plant_stores(relaxed); }));
}

TEST(PlantedInFoldCell, who_passes_leaves_its_mark_relaxed) {
  expect_found("fold cell: mark of who passes relaxed", "nobody sees", {},
               crossing(2, [](Crossing& program) { program.passed_.plant_exchanges(relaxed); }));
}

}  // namespace
}  // namespace headway::collective
