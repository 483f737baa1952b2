// SPDX-License-Identifier: BSD-3-Clause
/// Traces of PEs of a simulated world: their records, their files, and replays of them.
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>
#include <headway/model/trace/slopes.hpp>
#include <headway/transport/dial/endpoint.hpp>
#include <headway/transport/sim/world.hpp>
#include <headway/transport/trace/endpoint.hpp>
#include <optional>
#include <vector>

namespace headway::trace {
namespace {

using model::trace::Kind;
using model::trace::Phase;
using model::trace::Record;
using Posted = transport::Endpoint::Posted;

class Pe {
 public:
  Pe(transport::Endpoint& inner, const Options& options)
      : endpoint(
            inner, [this] { return phase; }, options) {
    endpoint.begin();
  }

  void send(std::size_t target, std::size_t payload_bytes, std::uint32_t count = 1) {
    transport::Frame* const frame = endpoint.try_claim(transport::frame_overhead + payload_bytes, 0);
    ASSERT_NE(frame, nullptr);
    frame->header = {};
    frame->header.payload_bytes = std::uint32_t(payload_bytes);
    frame->header.count = count;
    frame->header.source = std::uint16_t(endpoint.id());
    std::memset(frame->payload(), 0, payload_bytes);
    Posted posted = Posted::refused;
    while ((posted = endpoint.try_post(target, frame, frame->payload() + payload_bytes, true)) == Posted::refused)
      endpoint.sleep(1'000);
    if (posted != Posted::lent) endpoint.drop(frame);
  }
  /// Waits for so many frames as the program does.
  void wait(std::size_t frames = 1) {
    phase = frames == 1 ? Phase::waiting : Phase::epoch;
    transport::Arrival arrival;
    for (std::size_t i = 0; i < frames; ++i) {
      while (!endpoint.poll(arrival)) endpoint.sleep(1'000'000'000);
      endpoint.release(arrival);
    }
    phase = Phase::working;
    endpoint.leave_wait();
  }

  Phase phase = Phase::working;
  TracedEndpoint endpoint;
};

/// The traces of `body` on simulated PEs with these dials.
std::vector<model::trace::PeTrace> traces_of(std::size_t pes, const std::function<void(Pe&)>& body,
                                             const base::DialSettings& dials = {}, std::size_t records = 10'000,
                                             const model::trace::ReadOptions& read = {}) {
  std::string folder = std::filesystem::temp_directory_path() / "headway-trace-test-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp");
  sim::World world({.pes = pes, .frame_memory_bytes = std::size_t(1) << 20});
  const sim::World::End end = world.run(
      [&](std::size_t id) {
        dial::DialledEndpoint dialled(world.endpoint(id),
                                      {dials, [&world, id](std::int64_t ns) { world.pass_time(id, ns); }});
        Pe pe(dialled, {.folder = folder, .transport = "sim", .simulated = true, .records = records});
        body(pe);
        dialled.drain();
        pe.endpoint.end();
      },
      sim::forever / 2, [] { return true; });
  EXPECT_EQ(end, sim::World::End::finished);
  std::vector<model::trace::PeTrace> traces;
  std::optional<SystemError> failed;
  try {
    for (std::size_t pe = 0; pe < pes; ++pe)
      traces.push_back(model::trace::read_trace(folder + "/pe-" + std::to_string(pe) + ".trace", read));
  } catch (const SystemError& error) {
    failed = error;
  }
  std::filesystem::remove_all(folder);
  if (failed) throw *failed;
  return traces;
}

model::trace::Graph graph_of(const std::vector<model::trace::PeTrace>& traces) {
  model::trace::GraphBuilder builder(traces.size());
  for (const auto& trace : traces) builder.add(trace);
  return builder.finish();
}

std::vector<Kind> kinds(const model::trace::PeTrace& trace) {
  std::vector<Kind> result;
  for (const Record& record : trace.records) result.push_back(record.kind);
  return result;
}

TEST(Traces, posts_arrivals_and_waits_in_order) {
  const auto traces = traces_of(2, [](Pe& pe) {
    if (pe.endpoint.id() == 0) {
      pe.send(1, 100, 7);
      pe.send(1, 1000, 30);
      pe.wait();
    } else {
      pe.wait();
      pe.wait();
      pe.send(0, 16);
    }
  });
  EXPECT_EQ(kinds(traces[0]), (std::vector{Kind::begin, Kind::posted, Kind::posted, Kind::wait_begins, Kind::found_none,
                                           Kind::taken, Kind::wait_ends, Kind::end}));
  const Record& second = traces[0].records[2];
  EXPECT_EQ(second.peer, 1);
  EXPECT_EQ(second.sequence, 1u);
  EXPECT_EQ(second.bytes, sizeof(transport::FrameHeader) + 1000);
  EXPECT_EQ(second.messages, 30u);
  EXPECT_EQ(traces[0].header.pes, 2u);
  EXPECT_EQ(traces[0].header.clock, model::trace::Clock::simulated);
  EXPECT_STREQ(traces[0].header.transport, "sim");
}

/// A frame goes round, and each PE works on it.
void ring(Pe& pe) {
  const std::size_t me = pe.endpoint.id(), size = pe.endpoint.size();
  for (unsigned round = 0; round < 20; ++round) {
    if (me == 0) {
      pe.endpoint.charge(700);
      pe.send(1, 40);
      pe.wait();
    } else {
      pe.wait();
      pe.endpoint.charge(300);
      pe.send((me + 1) % size, 60);
    }
  }
}

/// Each PE waits for as many frames as there are others, from any of them.
void exchange(Pe& pe) {
  const std::size_t me = pe.endpoint.id(), size = pe.endpoint.size();
  for (unsigned round = 0; round < 5; ++round) {
    for (std::size_t to = 0; to < size; ++to) {
      pe.endpoint.charge(std::int64_t(100 * (me + to)));
      if (to != me) pe.send(to, 200 + 100 * to);
    }
    pe.wait(size - 1);
  }
}

TEST(Traces, the_same_seed_gives_the_same_trace) {
  const auto first = traces_of(5, exchange), second = traces_of(5, exchange);
  for (std::size_t pe = 0; pe < first.size(); ++pe) {
    ASSERT_EQ(first[pe].records.size(), second[pe].records.size());
    EXPECT_EQ(
        std::memcmp(first[pe].records.data(), second[pe].records.data(), first[pe].records.size() * sizeof(Record)), 0);
  }
}

void expect_replays_as_runs(const std::function<void(Pe&)>& body, std::size_t pes, double tolerance) {
  const model::trace::Graph graph = graph_of(traces_of(pes, body));
  model::trace::Replay replay(graph);
  EXPECT_NEAR(replay.run({}), graph.run_ns, 0.02 * graph.run_ns);
  for (const model::trace::Parameter& parameter : model::trace::parameters()) {
    for (const double value : {1e3, 5e3, 20e3}) {
      const bool is_per_byte = parameter.most < 1e6;
      const base::DialSettings dials = model::trace::dial(parameter, is_per_byte ? value / 1e3 : value);
      const double measured = graph_of(traces_of(pes, body, dials)).run_ns;
      EXPECT_NEAR(replay.run(dials), measured, tolerance * measured)
          << pes << " PEs, " << parameter.name << " " << value;
      EXPECT_NEAR(replay.path(dials).total_ns(dials), replay.run(dials), 1e-3);
      EXPECT_EQ(replay.forced(), 0u);
    }
  }
}

TEST(Traces, replays_of_one_chain_take_as_long_as_runs_with_dials) {
  for (const std::size_t pes : {2u, 3u, 5u, 8u}) expect_replays_as_runs(ring, pes, 0.03);
}

// With more PEs, frames of the next round end waits of the traced run, and others do so in a dialled run.
TEST(Traces, replays_of_exchanges_take_as_long_within_15_percent) {
  for (const std::size_t pes : {2u, 3u, 5u}) expect_replays_as_runs(exchange, pes, 0.15);
}

TEST(Traces, a_full_ring_keeps_the_last_records) {
  const auto whole = traces_of(2, exchange), cut = traces_of(2, exchange, {}, 20, {.may_lose_records = true});
  for (std::size_t pe = 0; pe < 2; ++pe) {
    const std::vector<Record>&all = whole[pe].records, &last = cut[pe].records;
    ASSERT_EQ(last.size(), 19u);
    EXPECT_EQ(cut[pe].lost + last.size(), all.size());
    EXPECT_EQ(std::memcmp(last.data(), &all[all.size() - last.size()], last.size() * sizeof(Record)), 0);
    EXPECT_TRUE(cut[pe].ended);
  }
  try {
    traces_of(2, exchange, {}, 20);
    ADD_FAILURE() << "the trace was read";
  } catch (const SystemError& error) {
    EXPECT_NE(std::string(error.what()).find("kept 19"), std::string::npos) << error.what();
  }
}

TEST(Traces, phases_nest_and_have_names) {
  const auto traces = traces_of(1, [](Pe& pe) {
    for (unsigned round = 0; round < 2; ++round) {
      pe.endpoint.begin_phase("outer");
      pe.endpoint.begin_phase("inner");
      pe.endpoint.charge(1000);
      pe.endpoint.end_phase();
      pe.endpoint.end_phase();
    }
  });
  EXPECT_EQ(kinds(traces[0]),
            (std::vector{Kind::begin, Kind::phase_begins, Kind::phase_begins, Kind::phase_ends, Kind::phase_ends,
                         Kind::phase_begins, Kind::phase_begins, Kind::phase_ends, Kind::phase_ends, Kind::end}));
  const std::vector<Record>& records = traces[0].records;
  EXPECT_EQ(traces[0].name_of(model::trace::NameKind::phase, records[1].handler), "outer");
  EXPECT_EQ(traces[0].name_of(model::trace::NameKind::phase, records[2].handler), "inner");
  EXPECT_EQ(records[6].handler, records[2].handler);
  EXPECT_GE(records[3].time_ns - records[2].time_ns, 1000);
}

TEST(Traces, a_flush_stands_directly_before_its_post) {
  const auto traces = traces_of(2, [](Pe& pe) {
    if (pe.endpoint.id() == 1) return pe.wait(3);
    for (const std::uint8_t reason : {std::uint8_t(0), std::uint8_t(3)}) {
      const std::int64_t opened_ns = pe.endpoint.now();
      pe.endpoint.charge(5000);
      pe.endpoint.begin_flush({reason, opened_ns});
      pe.send(1, 100, 7);
      pe.endpoint.end_flush(nullptr);
    }
    pe.send(1, 100);
  });
  EXPECT_EQ(kinds(traces[0]), (std::vector{Kind::begin, Kind::flushed, Kind::posted, Kind::flushed, Kind::posted,
                                           Kind::posted, Kind::end}));
  const std::vector<Record>& records = traces[0].records;
  EXPECT_EQ(records[1].detail, 1);
  EXPECT_EQ(records[3].detail, 4);
  EXPECT_EQ(records[3].messages, 7u);
  EXPECT_NEAR(records[3].bytes, 5000, 500);
}

/// An endpoint in real time, of which nothing but the clock is used.
class RealClock final : public transport::ForwardingEndpoint {
 public:
  explicit RealClock(transport::Endpoint& inner) : transport::ForwardingEndpoint(inner) {}
  std::int64_t now() const override { return base::clock_ns(CLOCK_MONOTONIC); }
};

TEST(Traces, the_clock_of_ticks_agrees_with_that_of_the_endpoint_and_never_goes_back) {
  sim::World world({.pes = 1, .frame_memory_bytes = std::size_t(1) << 20});
  const RealClock real(world.endpoint(0));
  TraceClock clock(real, false);
  // The rate is known to a small part of the time since the last look at the endpoint's clock, at most 1 ms.
  constexpr std::int64_t error_ns = 10'000;
  std::int64_t last = 0;
  for (const std::int64_t end = real.now() + 20'000'000; last < end;) {
    const std::int64_t before = real.now(), ns = clock.now(), after = real.now();
    ASSERT_GE(ns, last);
    ASSERT_GE(ns, before - error_ns);
    ASSERT_LE(ns, after + error_ns);
    last = ns;
  }
}

TEST(Traces, a_file_that_cannot_be_made_is_refused_with_its_name) {
  sim::World world({.pes = 1, .frame_memory_bytes = std::size_t(1) << 20});
  std::string refusal;
  world.run(
      [&](std::size_t id) {
        try {
          const TracedEndpoint endpoint(world.endpoint(id), [] { return Phase::working; }, {.folder = "/proc/none"});
        } catch (const SystemError& error) {
          refusal = error.what();
        }
      },
      sim::forever / 2, [] { return true; });
  EXPECT_NE(refusal.find("/proc/none/pe-0.trace cannot be"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace headway::trace
