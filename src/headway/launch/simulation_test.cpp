// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstring>
#include <headway/am/engine.hpp>
#include <headway/am/wait.hpp>
#include <headway/base/error.hpp>
#include <headway/launch/simulation.hpp>
#include <string>
#include <vector>

namespace headway::launch {
namespace {

/// Every PE sends numbers to all PEs, each in its own frame. Receivers forward each one until it has no hops left.
class Numbers final : public am::FrameHandler {
 public:
  explicit Numbers(am::Engine& engine) : engine_(&engine), id_(engine.add_handler(*this)) {}
  ~Numbers() override { engine_->remove_handler(id_); }

  void send(std::size_t target, std::uint64_t number) {
    const am::OpenFrame open = engine_->store().claim_or_spill(target, transport::frame_overhead + sizeof number, 0);
    transport::FrameHeader& header = open.frame->header;
    header = {};
    header.payload_bytes = sizeof number;
    header.count = 1;
    engine_->stamp(header, id_, signature(), 0, engine_->scope());
    std::memcpy(open.frame->payload(), &number, sizeof number);
    engine_->count_created(1);
    engine_->store().post(target, open);
  }

  Result handle(const transport::Arrival& arrival, std::uint32_t& next) override {
    std::uint64_t number;
    std::memcpy(&number, arrival.payload, sizeof number);
    received.push_back(number);
    if (number % 10 != 0) send((engine_->id() + 1) % engine_->size(), number - 1);
    next = 1;
    engine_->count_handled(1);
    return Result::done;
  }
  bool flush_open(am::FlushReason) override { return false; }
  bool flush_idle(am::IdleFlush) override { return false; }
  std::int64_t due() const override { return am::never; }
  bool flush_due(std::int64_t) override { return false; }
  std::uint16_t signature() const override { return 1; }
  std::string description() const override { return "numbers"; }
  bool ready() const override { return true; }

  std::vector<std::uint64_t> received;

 private:
  am::Engine* engine_;
  std::uint32_t id_;
};

/// The numbers that each PE received, in order.
using Record = std::vector<std::vector<std::uint64_t>>;

SimulateResult run_numbers(const SimulateOptions& options, Record& record) {
  record.assign(options.pes, {});
  return simulate(options, [&](Pe& pe) {
    Numbers numbers(pe.engine());
    for (std::size_t target = 0; target < pe.size(); ++target) numbers.send(target, 1000 * pe.id() + 10 * target + 3);
    const std::uint64_t handled = pe.quiesce();
    EXPECT_EQ(handled, 4 * pe.size() * pe.size());
    record[pe.id()] = numbers.received;
    return 0;
  });
}

TEST(Simulation, the_same_seed_gives_the_same_run_and_another_gives_another) {
  Record first, again, other;
  SimulateOptions options{.pes = 7, .seed = 3};
  options.conditions.delay_ns_max = 100'000;
  options.conditions.jitter = 3;
  options.conditions.refuse = 0.2;
  const SimulateResult a = run_numbers(options, first), b = run_numbers(options, again);
  options.seed = 4;
  const SimulateResult c = run_numbers(options, other);
  EXPECT_EQ(a.status, 0) << a.text;
  EXPECT_EQ(first, again);
  EXPECT_EQ(a.simulated_ns, b.simulated_ns);
  EXPECT_EQ(a.frames, b.frames);
  EXPECT_NE(first, other);
  EXPECT_NE(a.simulated_ns, c.simulated_ns);
}

TEST(Simulation, all_conditions_and_sizes_end_well) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SimulateOptions options{.pes = random.between(1, 33), .seed = seed};
    options.conditions = sim::random_conditions(random, options.pes);
    Record record;
    const SimulateResult result = run_numbers(options, record);
    ASSERT_EQ(result.status, 0) << "seed " << seed << ": " << result.text;
  }
}

TEST(Simulation, time_follows_loggp) {
  // One frame to another PE and one back: 2 (L + 2 o), and G for every byte.
  SimulateOptions options{.pes = 2};
  options.conditions.latency_ns = 10'000'000;
  options.conditions.overhead_ns = 1'000'000;
  options.conditions.gap_per_byte_ns = 1000;
  std::int64_t round_trip = 0;
  std::uint64_t bytes = 2 * (sizeof(transport::FrameHeader) + sizeof(std::uint64_t));
  const SimulateResult result = simulate(options, [&](Pe& pe) {
    Numbers numbers(pe.engine());
    if (pe.id() == 0) {
      const std::int64_t begin = pe.engine().now();
      numbers.send(1, 1);
      pe.engine().wait_until([&] { return !numbers.received.empty(); }, report::Phase::collective);
      round_trip = pe.engine().now() - begin;
    }
    pe.quiesce();
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
  const double expected = 2 * (10e6 + 2 * 1e6) + 1000.0 * double(bytes);
  EXPECT_NEAR(double(round_trip), expected, 0.01 * expected);
}

TEST(Simulation, a_pe_that_stops_forever_is_named_in_the_stall_report) {
  SimulateOptions options{.pes = 3};
  options.conditions.stops = {{.pe = 1, .at_ns = 0, .for_ns = sim::forever}};
  Record record;
  const SimulateResult result = run_numbers(options, record);
  EXPECT_EQ(result.status, 122);
  EXPECT_NE(result.text.find("PE 1 "), std::string::npos) << result.text;
  EXPECT_NE(result.text.find("stopped"), std::string::npos) << result.text;
}

TEST(Simulation, wait_until_returns_when_a_handler_makes_it_true_and_counts_as_waiting) {
  for (const bool sends : {true, false}) {
    const SimulateResult result = simulate({.pes = 3}, [&](Pe& pe) {
      Numbers numbers(pe.engine());
      if (pe.id() == 0 && sends) numbers.send(1, 12);  // 12 to PE 1, 11 to PE 2, 10 to PE 0
      wait_until(pe, [&] { return !numbers.received.empty(); });
      EXPECT_EQ(numbers.received, std::vector<std::uint64_t>{pe.id() == 0 ? 10 : 13 - pe.id()});
      pe.quiesce();
      return 0;
    });
    EXPECT_EQ(result.status, sends ? 0 : 122) << result.text;
    EXPECT_EQ(result.text.find("waits in wait_until()") == std::string::npos, sends) << result.text;
  }
}

TEST(Simulation, an_exception_ends_the_run_with_the_pe_and_its_text) {
  const SimulateResult result = simulate({.pes = 3}, [](Pe& pe) -> int {
    if (pe.id() == 2) throw std::runtime_error("no more");
    pe.quiesce();
    return 0;
  });
  EXPECT_EQ(result.status, 121);
  EXPECT_EQ(result.text, "PE 2: no more");
}

TEST(Simulation, a_frame_that_is_written_beyond_its_end_is_found) {
  const SimulateResult result = simulate({.pes = 1}, [](Pe& pe) {
    const am::OpenFrame open = pe.engine().store().try_claim(0, 100, 0);
    *open.end() = std::byte(1);
    pe.engine().store().drop(0, open);
    return 0;
  });
  EXPECT_EQ(result.status, 121);
  EXPECT_NE(result.text.find("a write went beyond it"), std::string::npos) << result.text;
}

TEST(Simulation, a_frame_that_is_not_released_is_found) {
  const SimulateResult result = simulate({.pes = 1}, [](Pe& pe) {
    static_cast<void>(pe.engine().store().try_claim(0, 100, 0));
    return 0;
  });
  EXPECT_EQ(result.status, 121);
  EXPECT_NE(result.text.find("a frame of PE 0 of 100 bytes is claimed"), std::string::npos) << result.text;
}

TEST(Conditions, a_value_that_is_not_allowed_is_refused_by_name) {
  for (const char* text : {"L", "L=fast", "L=-1us", "refuse=1", "slow=3", "slow=4:2", "stop=1@", "inbox=0", "inbox=2.5",
                           "per-process=2.5", "per-process=0", "past-caches=2", "x=1"}) {
    sim::Conditions conditions;
    try {
      conditions.parse("HEADWAY_SIM", text, 4);
      ADD_FAILURE() << text << " was taken";
    } catch (const SettingError& error) {
      EXPECT_EQ(std::string(error.what()).rfind(std::string("HEADWAY_SIM=") + text, 0), 0u) << error.what();
      EXPECT_NE(std::string(error.what()).find("allowed is"), std::string::npos) << error.what();
    }
  }
}

TEST(Conditions, the_cost_of_frames_is_charged) {
  SimulateOptions options{.pes = 2};
  options.conditions.parse("test", "L=3us,o=1us,G=0.5ns", 2);
  const SimulateResult result = simulate(options, [](Pe& pe) {
    const transport::TransportCosts costs = pe.engine().endpoint().costs();
    EXPECT_EQ(costs.overhead_ns, 2'000);  // of sender and receiver
    EXPECT_EQ(costs.gap_per_byte_ns, 0.5);
    EXPECT_EQ(costs.latency_ns, 3'000);
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

TEST(Conditions, all_conditions_can_be_set) {
  sim::Conditions c;
  c.parse("HEADWAY_SIM",
          "L=3us,o=1us,g=50ns,G=0.5ns,delay=1ms,refuse=0.25,past-caches=0.5,jitter=2,inbox=8,slow=1:10,stop=2@1ms,stop="
          "0@5us+1s",
          3);
  EXPECT_EQ(c.latency_ns, 3'000);
  EXPECT_EQ(c.overhead_ns, 1'000);
  EXPECT_EQ(c.gap_ns, 50);
  EXPECT_EQ(c.gap_per_byte_ns, 0.5);
  EXPECT_EQ(c.delay_ns_max, 1'000'000);
  EXPECT_EQ(c.refuse, 0.25);
  EXPECT_EQ(c.past_caches, 0.5);
  EXPECT_EQ(c.jitter, 2);
  EXPECT_EQ(c.inbox_frames, 8u);
  ASSERT_EQ(c.slow.size(), 1u);
  EXPECT_EQ(c.slow[0].factor, 10);
  ASSERT_EQ(c.stops.size(), 2u);
  EXPECT_EQ(c.stops[0].for_ns, sim::forever);
  EXPECT_EQ(c.stops[1].for_ns, 1'000'000'000);
}

}  // namespace
}  // namespace headway::launch
