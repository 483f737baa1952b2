// SPDX-License-Identifier: BSD-3-Clause
// Several aggregators at once, their construction and destruction, and quiesce() between phases.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <support/run_pes.hpp>
#include <support/topologies.hpp>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::shapes;
using testing::Shared;
using testing::topologies;

TEST(Aggregator, several_aggregators_and_topologies_at_once_do_not_disturb_each_other) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Aggregator<std::uint64_t> a(pe, {.buffer_bytes = 512, .topology = grid(1)});
      Aggregator<std::uint64_t, std::span<const std::uint8_t>> b(pe, {.buffer_bytes = 512, .topology = grid(2)});
      Aggregator<std::uint64_t> c(pe, {.buffer_bytes = 512, .topology = grid(3)});
      Aggregator<std::uint64_t> d(pe, {.topology = direct()});
      std::uint64_t handled[4] = {};
      const std::vector<std::uint8_t> zeros(2000);
      a.on([&](std::uint64_t i) {
        ++handled[0];
        b.send(i % pe.size(), i, std::span(zeros.data(), i % 100 == 0 ? 2000 : i % 30));
      });
      b.on([&](std::uint64_t i, std::span<const std::uint8_t>) {
        ++handled[1];
        c.send(i / 2 % pe.size(), i);
      });
      c.on([&](std::uint64_t i) {
        ++handled[2];
        d.send(i / 3 % pe.size(), i);
      });
      d.on([&](std::uint64_t) { ++handled[3]; });
      for (std::uint64_t i = 0; i < 2000; ++i) a.send(i * 5 % pe.size(), i);
      EXPECT_EQ(pe.quiesce(), 4 * 2000 * pe.size());
      // each PE sent the same numbers, so each got the same share of them, PEs times
      EXPECT_EQ(a.statistics().handled, handled[0]);
      EXPECT_EQ(b.statistics().handled, handled[1]);
      EXPECT_EQ(c.statistics().handled, handled[2]);
      EXPECT_EQ(d.statistics().handled, handled[3]);
    });
  }
}

TEST(Aggregator, aggregators_come_and_go) {
  expect_run({5, 2}, [](Pe& pe) {
    for (std::uint32_t round = 0; round < 200; ++round) {
      Aggregator<std::uint32_t> rounds(pe, {.buffer_bytes = 256, .topology = topologies[round % 4]});
      std::size_t handled = 0;
      rounds.on([&](std::uint32_t of) {
        EXPECT_EQ(of, round);
        ++handled;
      });
      for (std::size_t target = 0; target < pe.size(); ++target) rounds.send(target, round);
      EXPECT_EQ(pe.quiesce(), pe.size() * pe.size());
      EXPECT_EQ(handled, pe.size());
    }
  });
}

TEST(Aggregator, a_message_may_arrive_before_its_aggregator_is_made_there) {
  Shared<std::atomic<std::uint32_t>> all_sent;
  expect_run({4, 1}, [&](Pe& pe) {
    for (std::uint32_t round = 0; round < 4; ++round) {
      if (pe.id() == 3) {  // late: the others' messages are there before
        for (int i = 0; i < 100'000 && all_sent->load() < 3 * (round + 1); ++i) pe.progress(), usleep(100);
        pe.progress();
      }
      Aggregator<std::uint32_t, std::string_view> late(pe, {.buffer_bytes = 256, .topology = topologies[round]});
      std::size_t handled = 0;
      late.on([&](PeId source, std::uint32_t i, std::string_view text) {
        EXPECT_EQ(text, std::string(i % 50, char('a' + source)));
        ++handled;
      });
      for (std::uint32_t i = 0; i < 100; ++i) late.send(3, i, std::string(i % 50, char('a' + pe.id())));
      late.flush();
      all_sent->fetch_add(pe.id() != 3);
      EXPECT_EQ(pe.quiesce(), 400u);
      EXPECT_EQ(handled, pe.id() == 3 ? 400u : 0u);
    }
  });
}

TEST(Quiesce, nothing_of_the_next_phase_is_handled_before_it_has_returned) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (const Topology topology : topologies) {
        // the messages of a phase start others in their handlers, and fast PEs are already in the next
        Aggregator<std::uint32_t, std::uint32_t> steps(pe, {.buffer_bytes = 256, .topology = topology});
        std::uint32_t phase = 0;
        steps.on([&](std::uint32_t of, std::uint32_t more) {
          EXPECT_EQ(of, phase);
          if (more != 0) steps.send((pe.id() * 3 + more) % pe.size(), of, more - 1);
        });
        for (; phase < 30; ++phase) {
          for (std::size_t target = 0; target < pe.size(); ++target)
            steps.send(target, phase, std::uint32_t((phase + pe.id()) % 5));
          std::uint64_t messages = 0;
          for (std::size_t p = 0; p < pe.size(); ++p) messages += pe.size() * ((phase + p) % 5 + 1);
          EXPECT_EQ(pe.quiesce(), messages);
        }
      }
    });
  }
}

TEST(BuffersOfAProcess, outlive_a_pe_that_destroys_its_aggregator_before_the_others) {
  for (const Shape shape : {Shape{4, 2}, Shape{8, 4}}) {
    expect_run(shape, [&](Pe& pe) {
      const std::size_t half = shape.pes_per_process, messages = 20'000;
      auto words = std::make_unique<Aggregator<std::uint64_t>>(
          pe, AggregatorOptions{.buffer_bytes = 512, .topology = grid(1, Scheme::pp)});
      std::uint64_t handled = 0;
      words->on([&](std::uint64_t) { ++handled; });
      auto send_all = [&] {
        for (std::uint64_t i = 0; i < messages; ++i) words->send(half + i % half, i);
      };
      if (pe.id() < half) send_all();
      EXPECT_EQ(pe.quiesce(), half * messages);
      if (pe.id() == 0) words.reset();
      if (pe.id() > 0 && pe.id() < half) send_all();
      EXPECT_EQ(pe.quiesce(), (half - 1) * messages);
      EXPECT_EQ(handled, pe.id() < half ? 0u : (2 * half - 1) * messages / half);
    });
  }
}

TEST(Quiesce, returns_zero_when_nothing_was_sent) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (int i = 0; i < 5; ++i) EXPECT_EQ(pe.quiesce(), 0u);
    });
  }
}

}  // namespace
}  // namespace headway
