// SPDX-License-Identifier: BSD-3-Clause
// The inbox ring with two cells: every interleaving of one or two senders and the receiver.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <explorer/shared.hpp>
#include <functional>
#include <headway/transport/local/inbox.hpp>
#include <memory>
#include <string>

#include "report.hpp"

namespace headway::local {
namespace {

using explore::Atomic;
using explore::expect_found;
using explore::expect_no_violation;
using explore::Plain;

constexpr std::size_t cell_count = 2;
constexpr auto relaxed = std::memory_order_relaxed;

struct TestCell {
  Atomic<std::uint64_t> sequence;
  Plain<std::uint64_t> frame, again;  // two words, so that a torn frame would show
};
using TestSender = BasicInboxSender<TestCell, cell_count>;
using TestReceiver = BasicInboxReceiver<TestCell, cell_count>;

/// A planted bug: the sender takes the ticket first, and drops it when the cell is not free.
class EagerSender {
 public:
  EagerSender(TestCell* cells, Atomic<std::uint64_t>& tail) : cells_(cells), tail_(&tail) {}

  template <class Fill>
  bool try_push(Fill fill) {
    const std::uint64_t ticket = tail_->fetch_add(1, relaxed);
    TestCell& cell = cells_[ticket % cell_count];
    const std::uint64_t free = 2 * (ticket / cell_count);
    if (cell.sequence.load(std::memory_order_acquire) != free) return false;
    fill(cell);
    cell.sequence.store(free + 1, std::memory_order_release);
    return true;
  }

 private:
  TestCell* cells_;
  Atomic<std::uint64_t>* tail_;
};

struct Shape {
  unsigned senders = 1;
  std::array<unsigned, 2> frames{1, 1};  // of each sender
  bool insist = true;                    // a refused sender tries again, else it goes on to its next frame
  std::uint64_t first_ticket = 0;

  unsigned frames_in_all() const { return senders == 1 ? frames[0] : frames[0] + frames[1]; }
};

template <class Sender>
class Traffic : public explore::Program {
 public:
  explicit Traffic(Shape shape) : shape_(shape), receiver_(cells_.data(), shape.first_ticket) {
    tail_.named("tail").store(shape.first_ticket, relaxed);
    for (std::uint64_t ticket = shape.first_ticket; ticket != shape.first_ticket + cell_count; ++ticket) {
      TestCell& cell = cells_[ticket % cell_count];
      cell.sequence.store(2 * (ticket / cell_count), relaxed);
      cell.sequence.named("sequence " + std::to_string(ticket % cell_count));
      cell.frame.named("frame " + std::to_string(ticket % cell_count));
    }
  }

  unsigned threads() const override { return shape_.senders + 1; }
  void thread(unsigned id) override { id == shape_.senders ? receive() : send(id); }

  void check() override {
    std::array<unsigned, explore::threads_max> next{};
    for (unsigned i = 0; i < received_count_; ++i) {
      const std::uint64_t sender = received_[i] / 16, frame = received_[i] % 16;
      explore::check(sender < shape_.senders && frame < shape_.frames[sender], "a frame that nobody sent");
      explore::check(frame >= next[sender], "a frame twice, or out of order");
      for (; next[sender] < frame; ++next[sender]) {
        explore::check(!accepted_[sender][next[sender]], "a frame was lost on the way");
      }
      explore::check(explore::died(unsigned(sender)) || accepted_[sender][frame], "a refused frame arrived");
      ++next[sender];
    }
    bool sender_died = false, missing = false;
    for (unsigned sender = 0; sender < shape_.senders; ++sender) {
      sender_died |= explore::died(sender);
      for (unsigned frame = next[sender]; frame < shape_.frames[sender]; ++frame) missing |= accepted_[sender][frame];
    }
    if (!missing || explore::died(shape_.senders)) return;
    explore::check(sender_died, "a frame did not arrive");
    // A missing frame lies behind a ticket of a sender that died before it published.
    const std::uint64_t head = shape_.first_ticket + received_count_;
    explore::check(tail_.load(relaxed) > head, "a frame did not arrive though all tickets did");
    explore::check(cells_[head % cell_count].sequence.load(relaxed) == 2 * (head / cell_count),
                   "a frame did not arrive though nothing stands before it");
  }

  std::array<TestCell, cell_count> cells_;
  Atomic<std::uint64_t> tail_;

 private:
  void send(unsigned id) {
    Sender sender(cells_.data(), tail_);
    for (unsigned frame = 0; frame < shape_.frames[id]; ++frame) {
      while (!(accepted_[id][frame] = sender.try_push([&](TestCell& cell) {
        cell.frame = id * 16 + frame;
        cell.again = id * 16 + frame;
      }))) {
        // As many frames as there are cells in all: none may be refused.
        explore::check(shape_.frames_in_all() > cell_count, "refused though there is room");
        if (!shape_.insist) break;
        if (!explore::wait_for_news()) return;
      }
    }
  }

  void receive() {
    while (!shape_.insist || received_count_ < shape_.frames_in_all()) {
      TestCell* cell = receiver_.front();
      if (cell == nullptr) {
        if (!explore::wait_for_news()) return;
        continue;
      }
      const std::uint64_t frame = cell->frame;
      explore::check(frame == cell->again, "a torn frame");
      receiver_.pop();
      explore::check(received_count_ < received_.size(), "more frames than were sent");
      received_[received_count_++] = frame;
    }
  }

  Shape shape_;
  TestReceiver receiver_;
  std::array<std::array<bool, 16>, explore::threads_max> accepted_{};
  std::array<std::uint64_t, 16> received_{};
  unsigned received_count_ = 0;
};

using Plant = std::function<void(Traffic<TestSender>&)>;

auto traffic(
    Shape shape, Plant plant = [](auto&) {}) {
  return [=] {
    auto program = std::make_unique<Traffic<TestSender>>(shape);
    plant(*program);
    return program;
  };
}

TEST(InboxInterleavings, one_sender_over_two_and_a_half_generations) {
  expect_no_violation("inbox: 1 sender, 5 frames", {}, traffic({.frames = {5}}));
  expect_no_violation("inbox: 1 sender, 3 frames, exchanges fail for no reason", {.spurious_failures_max = 1},
                      traffic({.frames = {3}}));
}

TEST(InboxInterleavings, counters_that_wrap) {
  expect_no_violation("inbox: 1 sender, 5 frames, tickets wrap", {},
                      traffic({.frames = {5}, .first_ticket = ~0ull - 2}));
  expect_no_violation("inbox: 2 senders, 2 + 1 frames, tickets wrap", {},
                      traffic({.senders = 2, .frames = {2, 1}, .first_ticket = ~0ull}));
}

TEST(InboxInterleavings, two_senders_never_meet_in_a_cell) {
  expect_no_violation("inbox: 2 senders, 1 frame each", {.spurious_failures_max = 1}, traffic({.senders = 2}));
  expect_no_violation("inbox: 2 senders, 2 + 1 frames", {}, traffic({.senders = 2, .frames = {2, 1}}));
}

TEST(InboxInterleavings, refusals_leave_no_trace) {
  expect_no_violation("inbox: 2 senders, 2 + 2 frames, refusals final", {.standstill_fails = false},
                      traffic({.senders = 2, .frames = {2, 2}, .insist = false}));
}

TEST(InboxInterleavings, a_sender_or_the_receiver_dies_at_any_step) {
  expect_no_violation("inbox: 1 sender, 3 frames, either dies", {.mortal = 0b11}, traffic({.frames = {3}}));
  expect_no_violation("inbox: 2 senders, 1 frame each, any dies", {.mortal = 0b111}, traffic({.senders = 2}));
  expect_no_violation("inbox: 2 senders, 2 + 1 frames, any dies", {.mortal = 0b111},
                      traffic({.senders = 2, .frames = {2, 1}}));
}

TEST(InboxInterleavingsLong, two_senders_with_two_frames_each) {
  expect_no_violation("inbox: 2 senders, 2 + 2 frames", {.executions_max = 100'000'000},
                      traffic({.senders = 2, .frames = {2, 2}}));
}

TEST(InboxInterleavings, a_full_ring_refuses_and_has_room_again_after_a_pop) {
  class Alone : public explore::Program {
   public:
    unsigned threads() const override { return 1; }
    void thread(unsigned) override {
      TestSender sender(cells_.data(), tail_);
      TestReceiver receiver(cells_.data());
      auto fill = [](TestCell& cell) { cell.frame = 1; };
      explore::check(receiver.front() == nullptr, "an empty ring has a front");
      explore::check(sender.try_push(fill) && sender.try_push(fill), "two cells do not hold two frames");
      explore::check(!sender.try_push(fill), "a full ring takes a frame");
      receiver.pop();
      explore::check(sender.try_push(fill), "a ring with room refuses");
    }

   private:
    std::array<TestCell, cell_count> cells_;
    Atomic<std::uint64_t> tail_;
  };
  expect_no_violation("inbox: a full ring", {}, [] { return std::make_unique<Alone>(); });
}

// --- planted bugs

constexpr explore::ThreadSet sender_alone = 0b01, receiver_alone = 0b10;

TEST(PlantedInInbox, publication_is_relaxed) {
  expect_found("inbox: publication relaxed", "frame 0 is read while it may be written", {},
               traffic({}, [](auto& program) {
                 for (TestCell& cell : program.cells_) cell.sequence.plant_stores(relaxed, sender_alone);
               }));
}

TEST(PlantedInInbox, the_receiver_looks_relaxed) {
  expect_found("inbox: receiver looks relaxed", "frame 0 is read while it may be written", {},
               traffic({}, [](auto& program) {
                 for (TestCell& cell : program.cells_) cell.sequence.plant_loads(relaxed, receiver_alone);
               }));
}

TEST(PlantedInInbox, a_cell_is_freed_relaxed) {
  expect_found("inbox: cell freed relaxed", "frame 0 is written while it may be read", {},
               traffic({.frames = {3}}, [](auto& program) {
                 for (TestCell& cell : program.cells_) cell.sequence.plant_stores(relaxed, receiver_alone);
               }));
}

TEST(PlantedInInbox, the_sender_sees_a_cell_free_relaxed) {
  expect_found("inbox: sender looks relaxed", "frame 0 is written while it may be read", {},
               traffic({.frames = {3}}, [](auto& program) {
                 for (TestCell& cell : program.cells_) cell.sequence.plant_loads(relaxed, sender_alone);
               }));
}

TEST(PlantedInInbox, the_ticket_is_taken_before_the_cell_is_seen_free) {
  expect_found("inbox: ticket before the cell is free", "nobody will wake them", {},
               [] { return std::make_unique<Traffic<EagerSender>>(Shape{.frames = {3}}); });
}

}  // namespace
}  // namespace headway::local
