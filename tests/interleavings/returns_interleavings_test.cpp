// SPDX-License-Identifier: BSD-3-Clause
// The stack of returned frames: every interleaving of threads that push, and the owner, which takes all and reuses
// them.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <explorer/shared.hpp>
#include <functional>
#include <headway/transport/local/returns.hpp>
#include <memory>
#include <string>

#include "report.hpp"

namespace headway::local {
namespace {

using explore::Atomic;
using explore::expect_found;
using explore::expect_no_violation;
using explore::Plain;
using explore::ThreadSet;

constexpr auto relaxed = std::memory_order_relaxed;

using TestReturns = BasicReturns<Atomic<std::uint64_t>>;

struct TestFrame {
  Plain<std::uint64_t> link;
  Plain<std::uint64_t> content;  // written by the owner, read by the receiver that holds the frame
};

/// The owner lends receiver r its frame, offset r + 1, lent[r] times, anew whenever it has come back.
class Lending : public explore::Program {
 public:
  static constexpr unsigned receivers_max = 2;

  explicit Lending(std::array<unsigned, receivers_max> lent) : lent_(lent) {
    top_.named("top");
    for (unsigned r = 0; r < receivers_max; ++r) {
      frames_[r].link.named("link " + std::to_string(r + 1));
      frames_[r].content.named("content " + std::to_string(r + 1));
      turn_[r].named("turn " + std::to_string(r));
    }
  }

  unsigned threads() const override { return receivers() + 1; }
  void thread(unsigned id) override { id == receivers() ? own() : receive(id); }

  void check() override {
    const bool owner_died = explore::died(receivers());
    for (unsigned r = 0; r < receivers(); ++r) {
      explore::check(returned_[r] <= pushed_[r] + (explore::died(r) ? 1u : 0u), "a frame came back that nobody pushed");
      explore::check(owner_died || returned_[r] >= pushed_[r], "a frame that was pushed did not come back");
      explore::check(owner_died || explore::died(r) || pushed_[r] == lent_[r], "a frame was never lent");
    }
  }

  Atomic<std::uint64_t> top_;

 private:
  unsigned receivers() const { return lent_[1] == 0 ? 1 : 2; }

  void own() {
    TestReturns returns(top_);
    unsigned left = 0;
    for (unsigned r = 0; r < receivers(); ++r) {
      left += lent_[r];
      lend(r, 0);
    }
    while (left > 0) {
      const unsigned before = left;
      returns.take_all([&](std::uint64_t at) {
        explore::check(at == 1 || (at == 2 && receivers() == 2), "no frame lies there");
        const unsigned r = unsigned(at - 1);
        explore::check(away_[r], "a frame came back that was not away");
        away_[r] = false;
        const std::uint64_t below = frames_[r].link;
        --left;
        if (++returned_[r] < lent_[r]) lend(r, returned_[r]);
        return below;
      });
      if (left == before && !explore::wait_for_news()) return;
    }
  }

  void lend(unsigned r, unsigned turn) {
    away_[r] = true;
    frames_[r].link = ~0ull;  // the frame is the owner's until it is lent
    frames_[r].content = turn;
    turn_[r].store(turn + 1, std::memory_order_release);
  }

  void receive(unsigned r) {
    TestReturns returns(top_);
    for (unsigned turn = 0; turn < lent_[r]; ++turn) {
      while (turn_[r].load(std::memory_order_acquire) != turn + 1) {
        if (!explore::wait_for_news()) return;
      }
      explore::check(frames_[r].content == turn, "a frame changed while it was lent");
      returns.push(frames_[r].link, r + 1);
      ++pushed_[r];
    }
  }

  std::array<unsigned, receivers_max> lent_;
  std::array<TestFrame, receivers_max> frames_;
  std::array<Atomic<unsigned>, receivers_max> turn_;
  std::array<unsigned, receivers_max> returned_{}, pushed_{};
  std::array<bool, receivers_max> away_{};
};

auto lending(
    std::array<unsigned, 2> lent, std::function<void(Lending&)> plant = [](Lending&) {}) {
  return [=] {
    auto program = std::make_unique<Lending>(lent);
    plant(*program);
    return program;
  };
}

TEST(ReturnsInterleavings, one_receiver_gives_back_one_frame_again_and_again) {
  expect_no_violation("returns: 1 receiver, 4 times", {.spurious_failures_max = 1}, lending({4}));
}

TEST(ReturnsInterleavings, a_frame_comes_back_a_second_time_under_a_slow_pusher) {
  expect_no_violation("returns: 2 receivers, 1 + 2 times", {.spurious_failures_max = 1}, lending({1, 2}));
}

TEST(ReturnsInterleavings, a_receiver_or_the_owner_dies_at_any_step) {
  expect_no_violation("returns: 1 receiver, 3 times, either dies", {.mortal = 0b11}, lending({3}));
  expect_no_violation("returns: 2 receivers, 1 + 2 times, any dies", {.mortal = 0b111}, lending({1, 2}));
}

TEST(ReturnsInterleavingsLong, two_receivers_give_back_three_and_two_times) {
  expect_no_violation("returns: 2 receivers, 2 + 2 times", {}, lending({2, 2}));
  expect_no_violation("returns: 2 receivers, 3 + 2 times", {.executions_max = 100'000'000}, lending({3, 2}));
  expect_no_violation("returns: 2 receivers, 2 + 2 times, any dies", {.mortal = 0b111, .executions_max = 100'000'000},
                      lending({2, 2}));
}

// --- planted bugs

TEST(PlantedInReturns, a_push_is_relaxed) {
  expect_found("returns: push relaxed", "link 1 is read while it may be written", {},
               lending({1}, [](Lending& program) { program.top_.plant_exchanges(relaxed, 0b01); }));
}

TEST(PlantedInReturns, the_owner_takes_relaxed) {
  expect_found("returns: taken relaxed", "link 1 is read while it may be written", {},
               lending({1}, [](Lending& program) { program.top_.plant_exchanges(relaxed, 0b10); }));
}

/// Two threads that take one frame at a time, by compare-and-swap alone. Only an owner that takes all frames at
/// once, and takes alone, is safe from their error.
class TakenOneByOne : public explore::Program {
 public:
  TakenOneByOne() {
    top_.named("top").store(1, relaxed);
    links_[1].named("link 1").store(2, relaxed);
    links_[2].named("link 2").store(0, relaxed);
  }

  unsigned threads() const override { return 2; }
  void thread(unsigned id) override {
    held_[id] = take();
    if (id == 0) return;
    also_held_ = take();
    if (held_[1] != 0) {
      TestReturns(top_).push(static_cast<Link&>(links_[held_[1]]), held_[1]);
      held_[1] = 0;
    }
  }
  void check() override {
    explore::check(held_[0] == 0 || held_[0] != also_held_, "two hold the same frame");
    const std::uint64_t top = top_.load(relaxed);
    explore::check(top == 0 || (top != held_[0] && top != also_held_), "a frame that is held lies in the stack");
  }

 private:
  struct Link : Atomic<std::uint64_t> {
    void operator=(std::uint64_t below) { store(below, relaxed); }
  };

  std::uint64_t take() {
    std::uint64_t at = top_.load(std::memory_order_acquire);
    while (at != 0 && !top_.compare_exchange_strong(at, links_[at].load(relaxed), std::memory_order_acq_rel)) {
    }
    return at;
  }

  Atomic<std::uint64_t> top_;
  std::array<Link, 3> links_;
  std::array<std::uint64_t, 2> held_{};
  std::uint64_t also_held_ = 0;
};

TEST(PlantedInReturns, two_take_one_frame_at_a_time) {
  expect_found("returns: two take one at a time (ABA)", "a frame that is held lies in the stack", {},
               [] { return std::make_unique<TakenOneByOne>(); });
}

}  // namespace
}  // namespace headway::local
