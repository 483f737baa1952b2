// SPDX-License-Identifier: BSD-3-Clause
// Inbox, returns and doorbell together, as LocalEndpoint composes them: a PE that others post to and give frames back
// to, and that sleeps while there is neither.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <explorer/shared.hpp>
#include <headway/transport/local/doorbell.hpp>
#include <headway/transport/local/inbox.hpp>
#include <headway/transport/local/returns.hpp>
#include <memory>
#include <string>
#include <vector>

#include "report.hpp"

namespace headway::local {
namespace {

using explore::Atomic;
using explore::expect_found;
using explore::expect_no_violation;
using explore::Plain;
using explore::System;
using explore::SystemWithoutFence;

constexpr std::size_t cell_count = 2;

struct TestCell {
  Atomic<std::uint64_t> sequence;
  Plain<std::uint64_t> frame;
};

/// The actions of a thread on the PE, once each: it posts a frame, returns one, or both.
struct Deeds {
  bool posts = false, gives_back = false;
};

template <class OthersDoorbell>
class OnePe : public explore::Program {
 public:
  explicit OnePe(std::vector<Deeds> others)
      : others_(std::move(others)), inbox_(cells_.data()), returns_(top_), doorbell_(asleep_) {
    tail_.named("tail");
    top_.named("top");
    asleep_.named("asleep");
    for (std::size_t i = 0; i < cell_count; ++i) {
      cells_[i].sequence.named("sequence " + std::to_string(i));
      cells_[i].frame.named("frame " + std::to_string(i));
    }
  }

  unsigned threads() const override { return unsigned(others_.size()) + 1; }
  void thread(unsigned id) override { id == others_.size() ? be_pe() : act(id); }

  void check() override {
    bool death = explore::died(unsigned(others_.size()));
    unsigned posted = 0, given_back = 0;
    for (unsigned t = 0; t < others_.size(); ++t) {
      death |= explore::died(t);
      posted += others_[t].posts;
      given_back += others_[t].gives_back;
    }
    explore::check(death || (arrived_ == posted && returned_ == given_back), "the PE did not get all");
    explore::check(arrived_ <= posted && returned_ <= given_back, "the PE got more than there was");
  }

 private:
  void act(unsigned id) {
    OthersDoorbell doorbell(asleep_);
    if (others_[id].posts) {
      BasicInboxSender<TestCell, cell_count> sender(cells_.data(), tail_);
      explore::check(sender.try_push([&](TestCell& cell) { cell.frame = id; }), "refused though there is room");
      doorbell.ring();
    }
    if (others_[id].gives_back) {
      BasicReturns<Atomic<std::uint64_t>>(top_).push(links_[id], id + 1);
      doorbell.ring();
    }
  }

  void be_pe() {
    unsigned left = 0;
    for (const Deeds& deeds : others_) left += deeds.posts + deeds.gives_back;
    for (unsigned fruitless = 0; left > 0 && fruitless < 12; ++fruitless) {
      for (; TestCell* cell = inbox_.front(); inbox_.pop()) {
        const std::uint64_t from = cell->frame;
        explore::check(from < others_.size() && others_[from].posts, "a frame that nobody sent");
        ++arrived_;
        --left;
      }
      returns_.take_all([&](std::uint64_t at) {
        explore::check(at - 1 < others_.size() && others_[at - 1].gives_back, "a frame came back that nobody had");
        ++returned_;
        --left;
        return std::uint64_t(links_[at - 1]);
      });
      if (left > 0) doorbell_.sleep(1, [&] { return inbox_.front() == nullptr && returns_.empty(); });
    }
  }

  std::vector<Deeds> others_;
  std::array<TestCell, cell_count> cells_;
  Atomic<std::uint64_t> tail_, top_;
  Atomic<std::uint32_t> asleep_;
  std::array<Plain<std::uint64_t>, 2> links_;
  BasicInboxReceiver<TestCell, cell_count> inbox_;
  BasicReturns<Atomic<std::uint64_t>> returns_;
  BasicDoorbell<System> doorbell_;
  unsigned arrived_ = 0, returned_ = 0;
};

template <class OthersDoorbell = BasicDoorbell<System>>
auto one_pe(std::vector<Deeds> others) {
  return [=] { return std::make_unique<OnePe<OthersDoorbell>>(others); };
}

constexpr Deeds posts{.posts = true}, gives_back{.gives_back = true}, both{.posts = true, .gives_back = true};

TEST(EndpointInterleavings, a_frame_that_arrives_and_one_that_comes_back_wake_the_pe) {
  expect_no_violation("endpoint: 1 other posts", {}, one_pe({posts}));
  expect_no_violation("endpoint: 1 other gives back", {}, one_pe({gives_back}));
  expect_no_violation("endpoint: 1 other does both", {}, one_pe({both}));
}

TEST(EndpointInterleavings, two_others_at_once) {
  expect_no_violation("endpoint: 2 others, one posts, one gives back", {}, one_pe({posts, gives_back}));
  expect_no_violation("endpoint: 2 others post", {}, one_pe({posts, posts}));
}

TEST(EndpointInterleavings, any_of_them_dies_at_any_step) {
  expect_no_violation("endpoint: 1 other does both, either dies", {.mortal = 0b11}, one_pe({both}));
}

TEST(EndpointInterleavingsLong, two_others_at_once_any_of_which_dies) {
  expect_no_violation("endpoint: 2 others, one posts, one gives back, any dies", {.mortal = 0b111},
                      one_pe({posts, gives_back}));
}

TEST(PlantedInEndpoint, others_ring_without_a_fence) {
  expect_found("endpoint: no fence after a post", "nobody will wake them", {},
               one_pe<BasicDoorbell<SystemWithoutFence>>({posts}));
  expect_found("endpoint: no fence after giving back", "nobody will wake them", {},
               one_pe<BasicDoorbell<SystemWithoutFence>>({gives_back}));
}

}  // namespace
}  // namespace headway::local
