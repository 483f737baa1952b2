// SPDX-License-Identifier: BSD-3-Clause
// The end of epochs: quiesce(), destruction, and the end of the run.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/aggregate/epoch_test.hpp>
#include <headway/am/epoch.hpp>
#include <headway/call/calls.hpp>
#include <memory>
#include <support/run_pes.hpp>

namespace headway {
namespace {

using epoch_test::Travellers;
using testing::expect_run;
using testing::Shape;
using testing::shapes;
using testing::Shared;

TEST(Epoch, quiesce_covers_epochs_that_are_open) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Travellers travellers(pe, {.topology = grid(2)});
      travellers.send({0, 0});
      Epoch epoch(pe);
      travellers.send({2, 0});
      EXPECT_EQ(pe.quiesce(), 4 * pe.size());
      travellers.send({4, 0});
      EXPECT_EQ(pe.quiesce(), 5 * pe.size());
      EXPECT_FALSE(epoch.done());
      EXPECT_EQ(epoch.wait(), 8 * pe.size());
    });
  }
}

TEST(Epoch, quiesce_waits_until_epochs_that_were_ended_are_done) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Travellers travellers(pe, {});
      Epoch outer(pe);
      Epoch inner(pe);
      travellers.send({2, 0});
      inner.close();
      outer.close();
      EXPECT_EQ(pe.quiesce(), 3 * pe.size());
      EXPECT_TRUE(inner.done());
      EXPECT_TRUE(outer.done());
      EXPECT_EQ(outer.handled(), 3 * pe.size());
    });
  }
}

TEST(Epoch, one_that_is_destroyed_is_counted_around_it) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Travellers travellers(pe, {.topology = grid(2)});
      for (int round = 0; round < 100; ++round) {
        Epoch outer(pe);
        {
          Epoch inner(pe);
          travellers.send({3, 0});
        }
        travellers.send({0, 0});
        EXPECT_EQ(outer.wait(), 5 * pe.size());
        { const Epoch left_alone(pe); }
      }
    });
  }
}

TEST(Epoch, one_may_be_destroyed_before_those_within_it) {
  expect_run({3, 1}, [](Pe& pe) {
    Travellers travellers(pe, {});
    Epoch around(pe);
    auto outer = std::make_unique<Epoch>(pe);
    auto inner = std::make_unique<Epoch>(pe);
    outer.reset();
    travellers.send({1, 0});
    EXPECT_EQ(inner->wait(), 6u);
    travellers.send({0, 0});  // in `around`
    EXPECT_EQ(around.wait(), 9u);
    EXPECT_EQ(pe.quiesce(), 9u);
  });
}

TEST(Epoch, an_epoch_without_a_wait_is_done_by_the_end_of_the_run) {
  Shared<std::atomic<std::uint64_t>> handled;
  expect_run({5, 2}, [&](Pe& pe) {
    for (int i = 0; i < 70; ++i) {
      const Epoch epoch(pe);
      rpc_ff(pe, (pe.id() + 1) % pe.size(), [] {});
    }
    Epoch last(pe);
    last.then([&](std::uint64_t n) { *handled += n; });
  });
  EXPECT_EQ(handled->load(), 0u);  // of the last, on all PEs
}

}  // namespace
}  // namespace headway
