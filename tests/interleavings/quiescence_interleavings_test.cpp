// SPDX-License-Identifier: BSD-3-Clause
// Quiescence over real engines: every order in which 2 or 3 PEs make progress, and every delay of their frames.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/report/board.hpp>
#include <memory>
#include <string>
#include <vector>

#include "network.hpp"
#include "report.hpp"

namespace headway::am {
namespace {

using explore::expect_found;
using explore::expect_no_violation;
using explore::ExploredEndpoint;
using explore::Network;
using explore::pes_max;

/// A message: sent by the body of `from` in its phase, or by the handler of message `parent` there.
struct Message {
  std::uint8_t from, to;
  int parent = -1;
  std::uint8_t phase = 0;
};
using Script = std::vector<Message>;

/// Sends the messages of the script. A message lies in a buffer until it is flushed; it counts as created when it
/// enters the buffer, as with an aggregator.
class Relay : public FrameHandler {
 public:
  Relay(Engine& engine, const Script& script) : engine_(engine), script_(script), id_(engine.add_handler(*this)) {}

  void send_children_of(int parent) {
    for (std::size_t i = 0; i < script_.size(); ++i) {
      if (script_[i].parent == parent && script_[i].from == engine_.id() && script_[i].phase == phase_) {
        open_[open_count_++] = std::uint8_t(i);
        engine_.count_open_buffers(1);
      }
    }
  }

  Result handle(const transport::Arrival& arrival, std::uint32_t& next) override {
    const std::size_t message = std::size_t(arrival.payload[0]);
    explore::check(script_[message].to == engine_.id(), "a message for another PE");
    explore::check(script_[message].phase == phase_, "a message is handled in another phase than its own");
    explore::check(!handled_[message], "a message is handled twice");
    handled_[message] = true;
    send_children_of(int(message));
    next = 1;
    engine_.count_handled(1);
    return Result::done;
  }

  bool flush_open(FlushReason) override {
    const bool any = open_count_ != 0;
    for (; open_count_ > 0; --open_count_) {
      engine_.count_open_buffers(-1);
      post(open_[open_count_ - 1]);
    }
    return any;
  }
  bool flush_idle(IdleFlush) override { return false; }
  std::int64_t due() const override { return never; }
  bool flush_due(std::int64_t) override { return false; }
  std::uint16_t signature() const override { return 1; }
  std::string description() const override { return "a relay"; }
  bool ready() const override { return true; }

  void next_phase() { ++phase_; }
  bool handled(std::size_t message) const { return handled_[message]; }

 private:
  void post(std::uint8_t message) {
    struct {
      transport::Frame frame{};
      std::array<std::byte, 8> payload{};
    } small;
    engine_.stamp(small.frame.header, id_, signature(), 0, engine_.scope());
    small.frame.header.payload_bytes = 1;
    small.frame.header.count = 1;
    *small.frame.payload() = std::byte{message};
    engine_.count_created(1);
    explore::check(engine_.store().try_post_by_value(script_[message].to, small.frame), "a frame is refused");
  }

  Engine& engine_;
  const Script& script_;
  std::uint32_t id_;
  std::uint8_t phase_ = 0;
  std::array<std::uint8_t, 8> open_{};
  std::size_t open_count_ = 0;
  std::array<bool, 8> handled_{};
};

static_assert(sizeof(report::PeBoard) <= explore::Network::board_bytes);

/// Each PE sends its own messages of a phase and quiesces, phase by phase.
template <class PesEndpoint>
class Quiescing : public explore::Program {
 public:
  Quiescing(unsigned pes, Script script, unsigned late_looks_max)
      : script_(std::move(script)), network_(pes, late_looks_max), pes_(pes) {
    for (const Message& message : script_) phases_ = std::max(phases_, message.phase + 1u);
    for (unsigned p = 0; p < pes; ++p) {
      pes_[p].endpoint = std::make_unique<PesEndpoint>(network_, p);
      pes_[p].engine =
          std::make_unique<Engine>(*pes_[p].endpoint, EngineOptions{.spill_bytes = 1 << 16, .idle = Idle::sleep});
      pes_[p].relay = std::make_unique<Relay>(*pes_[p].engine, script_);
    }
  }

  unsigned threads() const override { return unsigned(pes_.size()); }

  void thread(unsigned id) override {
    One& pe = pes_[id];
    for (unsigned phase = 0; phase < phases_; ++phase) {
      pe.relay->send_children_of(-1);
      const std::uint64_t handled = pe.engine->quiesce();
      pe.relay->next_phase();
      std::uint64_t expected = 0;
      for (const Message& message : script_) expected += message.phase == phase;
      explore::check(handled == expected, "quiescence was found while messages were not handled");
    }
  }

  void check() override {
    for (std::size_t m = 0; m < script_.size(); ++m) {
      explore::check(pes_[script_[m].to].relay->handled(m), "a message was not handled");
    }
    explore::check(network_.all_taken(), "a frame was left in flight");
  }

 private:
  struct One {
    std::unique_ptr<PesEndpoint> endpoint;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Relay> relay;
  };

  Script script_;
  Network network_;
  std::vector<One> pes_;
  unsigned phases_ = 1;
};

template <class PesEndpoint = ExploredEndpoint>
auto quiescing(unsigned pes, Script script, unsigned late_looks_max) {
  return [=] { return std::make_unique<Quiescing<PesEndpoint>>(pes, script, late_looks_max); };
}

TEST(QuiescenceInterleavings, two_pes) {
  expect_no_violation("quiescence: 2 PEs, no message", {}, quiescing(2, {}, 4));
  expect_no_violation("quiescence: 2 PEs, 1 message", {}, quiescing(2, {{1, 0}}, 4));
  expect_no_violation("quiescence: 2 PEs, 1 message and the one its handler sends back", {},
                      quiescing(2, {{0, 1}, {1, 0, 0}}, 4));
  expect_no_violation("quiescence: 2 PEs, 1 message and the two its handler sends back", {},
                      quiescing(2, {{0, 1}, {1, 0, 0}, {1, 0, 0}}, 4));
}

TEST(QuiescenceInterleavings, messages_of_the_next_phase_wait_for_it) {
  expect_no_violation("quiescence: 2 PEs, 2 phases, 1 message to and 1 fro", {},
                      quiescing(2, {{1, 0}, {0, 1, -1, 1}}, 4));
  expect_no_violation("quiescence: 2 PEs, 2 phases, 1 message each to PE 0", {},
                      quiescing(2, {{1, 0}, {1, 0, -1, 1}}, 4));
}

TEST(QuiescenceInterleavings, three_pes) {
  expect_no_violation("quiescence: 3 PEs, no message", {}, quiescing(3, {}, 2));
  expect_no_violation("quiescence: 3 PEs, 1 message, no preemption", {.preemptions_max = 0}, quiescing(3, {{2, 1}}, 2));
  expect_no_violation("quiescence: 3 PEs, 1 message and 2 of its handler, no preemption", {.preemptions_max = 0},
                      quiescing(3, {{2, 1}, {1, 2, 0}, {1, 0, 0}}, 1));
}

TEST(QuiescenceInterleavingsLong, three_pes) {
  expect_no_violation("quiescence: 3 PEs, 1 message", {}, quiescing(3, {{2, 1}}, 1));
  expect_no_violation("quiescence: 3 PEs, 1 message, at most 1 preemption",
                      {.preemptions_max = 1, .executions_max = 20'000'000}, quiescing(3, {{2, 1}}, 2));
  expect_no_violation("quiescence: 3 PEs, 1 message and 2 of its handler, at most 1 preemption",
                      {.preemptions_max = 1, .executions_max = 20'000'000},
                      quiescing(3, {{2, 1}, {1, 2, 0}, {1, 0, 0}}, 0));
}

// --- a planted bug

/// A planted bug: one wave instead of two. The first "again" of a phase never leaves PE 0; in its place come the counts
/// of the wave before once more. Among two PEs all control frames that PE 0 posts are verdicts, and all that reach it
/// are counts.
class OneWaveEndpoint : public ExploredEndpoint {
 public:
  using ExploredEndpoint::ExploredEndpoint;

  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override {
    if (id() == 0 && is_control(frame->header)) {
      const bool again = *frame->payload() == std::byte{0};
      repeat_ = again && !repeated_;
      repeated_ = again;
      if (repeat_) return Posted::copied;
    }
    return ExploredEndpoint::try_post(target, frame, tail_end, claimed);
  }

  bool poll(transport::Arrival& arrival) override {
    if (repeat_) {
      repeat_ = false;
      arrive(counts_, arrival);
      return true;
    }
    if (!ExploredEndpoint::poll(arrival)) return false;
    if (is_control(arrival.header)) {
      counts_.header = arrival.header;
      std::memcpy(counts_.payload.data(), arrival.payload, arrival.header.payload_bytes);
    }
    return true;
  }

 private:
  static bool is_control(const transport::FrameHeader& header) {
    return header.kind == std::uint8_t(transport::FrameKind::control);
  }

  explore::Channel::Bytes counts_{};
  bool repeat_ = false, repeated_ = false;
};

TEST(PlantedInQuiescence, one_wave_instead_of_two) {
  // PE 1 gives its counts, then handles 0's message and sends two; 0 handles one of these, and gives its counts.
  expect_found("quiescence: one wave", "quiescence was found while messages were not handled", {},
               quiescing<OneWaveEndpoint>(2, {{0, 1}, {1, 0, 0}, {1, 0, 0}}, 4));
}

}  // namespace
}  // namespace headway::am
