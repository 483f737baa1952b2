// SPDX-License-Identifier: BSD-3-Clause
// The doorbell: every interleaving of those that post and ring, and the sleeper. Futexes do not time out, so that a
// lost wake-up is a standstill.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <explorer/shared.hpp>
#include <headway/transport/local/doorbell.hpp>
#include <memory>
#include <string>

#include "report.hpp"

namespace headway::local {
namespace {

using explore::Atomic;
using explore::expect_found;
using explore::expect_no_violation;
using explore::System;
using explore::SystemWithoutFence;

constexpr auto relaxed = std::memory_order_relaxed;

/// Where the sleeper fences for both sides.
class LightDoorbell : public BasicDoorbell<System> {
 public:
  explicit LightDoorbell(System::Word& asleep) : BasicDoorbell(asleep, Fences::sleeper) {}
};

/// A planted bug: looks before it says that it sleeps.
class EarlyLookingDoorbell {
 public:
  explicit EarlyLookingDoorbell(System::Word& asleep) : asleep_(&asleep) {}
  template <class NothingThere>
  void sleep(std::int64_t ns_max, NothingThere nothing_there) {
    if (!nothing_there()) return;
    asleep_->store(1, relaxed);
    System::fence();
    System::wait(*asleep_, 1, ns_max);
    asleep_->store(0, relaxed);
  }

 private:
  System::Word* asleep_;
};

/// Poster p posts posts[p] times. The sleeper looks, and sleeps when there is nothing, until it has seen all.
template <class PostersDoorbell, class SleepersDoorbell>
class Posting : public explore::Program {
 public:
  static constexpr unsigned posters_max = 2;

  explicit Posting(std::array<unsigned, posters_max> posts) : posts_(posts) {
    asleep_.named("asleep");
    for (unsigned p = 0; p < posters_max; ++p) posted_[p].named("posted " + std::to_string(p));
  }

  unsigned threads() const override { return posters() + 1; }
  void thread(unsigned id) override { id == posters() ? receive() : post(id); }

  void check() override {
    bool all = true, death = false;
    for (unsigned p = 0; p < posters(); ++p) {
      all &= seen_[p] == posts_[p];
      death |= explore::died(p);
      explore::check(seen_[p] <= posts_[p], "a post that nobody made");
    }
    explore::check(all || death || explore::died(posters()), "the sleeper gave up");
  }

 private:
  unsigned posters() const { return posts_[1] == 0 ? 1 : 2; }

  void post(unsigned id) {
    PostersDoorbell doorbell(asleep_);
    for (unsigned i = 1; i <= posts_[id]; ++i) {
      posted_[id].store(i, std::memory_order_release);
      doorbell.ring();
    }
  }

  void receive() {
    SleepersDoorbell doorbell(asleep_);
    // More fruitless rounds than there can be rings: only a poster that died lets it come to that.
    for (unsigned fruitless = 0; fruitless < 12 && !look(std::memory_order_acquire, true); ++fruitless) {
      doorbell.sleep(1, [&] { return !look(relaxed, false); });
    }
  }

  /// Whether all has been seen, or, if nothing is to be taken, whether there is something new.
  bool look(std::memory_order order, bool take) {
    bool any = false, all = true;
    for (unsigned p = 0; p < posters(); ++p) {
      const unsigned posted = seen_[p] == posts_[p] ? seen_[p] : posted_[p].load(order);
      any |= posted != seen_[p];
      if (take) seen_[p] = posted;
      all &= posted == posts_[p];
    }
    return take ? all : any;
  }

  std::array<unsigned, posters_max> posts_;
  Atomic<std::uint32_t> asleep_;
  std::array<Atomic<unsigned>, posters_max> posted_;
  std::array<unsigned, posters_max> seen_{};
};

template <class PostersDoorbell = BasicDoorbell<System>, class SleepersDoorbell = BasicDoorbell<System>>
auto posting(std::array<unsigned, 2> posts) {
  return [=] { return std::make_unique<Posting<PostersDoorbell, SleepersDoorbell>>(posts); };
}

TEST(DoorbellInterleavings, one_poster_never_leaves_the_sleeper_asleep) {
  expect_no_violation("doorbell: 1 poster, 1 post", {}, posting({1}));
  expect_no_violation("doorbell: 1 poster, 3 posts", {}, posting({3}));
}

TEST(DoorbellInterleavings, two_posters_never_leave_the_sleeper_asleep) {
  expect_no_violation("doorbell: 2 posters, 1 post each", {}, posting({1, 1}));
}

TEST(DoorbellInterleavings, a_poster_or_the_sleeper_dies_at_any_step) {
  expect_no_violation("doorbell: 1 poster, 2 posts, either dies", {.mortal = 0b11}, posting({2}));
  expect_no_violation("doorbell: 2 posters, 1 post each, any dies", {.mortal = 0b111}, posting({1, 1}));
}

TEST(DoorbellInterleavings, a_sleeper_that_fences_for_both_is_never_left_asleep) {
  expect_no_violation("light doorbell: 1 poster, 1 post", {}, posting<LightDoorbell, LightDoorbell>({1}));
  expect_no_violation("light doorbell: 1 poster, 3 posts", {}, posting<LightDoorbell, LightDoorbell>({3}));
  expect_no_violation("light doorbell: 2 posters, 1 post each", {}, posting<LightDoorbell, LightDoorbell>({1, 1}));
  expect_no_violation("light doorbell: 1 poster, 2 posts, either dies", {.mortal = 0b11},
                      posting<LightDoorbell, LightDoorbell>({2}));
}

TEST(DoorbellInterleavings, who_rings_may_fence_though_the_sleeper_does_for_both) {
  expect_no_violation("light doorbell: 1 poster that fences, 2 posts", {},
                      posting<BasicDoorbell<System>, LightDoorbell>({2}));
}

TEST(DoorbellInterleavingsLong, two_posters_with_two_posts_and_one) {
  expect_no_violation("doorbell: 2 posters, 2 + 1 posts", {.executions_max = 100'000'000}, posting({2, 1}));
}

// --- planted bugs

TEST(PlantedInDoorbell, who_rings_does_not_fence) {
  expect_found("doorbell: no fence in ring()", "nobody will wake them", {},
               posting<BasicDoorbell<SystemWithoutFence>>({1}));
}

TEST(PlantedInDoorbell, who_rings_leaves_the_fence_to_a_sleeper_that_fences_for_itself_alone) {
  expect_found("light doorbell: the sleeper does not fence everywhere", "nobody will wake them", {},
               posting<LightDoorbell, BasicDoorbell<System>>({1}));
}

TEST(PlantedInDoorbell, the_sleeper_does_not_fence) {
  expect_found("doorbell: no fence in sleep()", "nobody will wake them", {},
               posting<BasicDoorbell<System>, BasicDoorbell<SystemWithoutFence>>({1}));
}

TEST(PlantedInDoorbell, the_sleeper_looks_before_it_says_that_it_sleeps) {
  expect_found("doorbell: looks, then says that it sleeps", "nobody will wake them", {},
               posting<BasicDoorbell<System>, EarlyLookingDoorbell>({1}));
}

}  // namespace
}  // namespace headway::local
