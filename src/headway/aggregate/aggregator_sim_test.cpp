// Aggregators on simulated time, where how long something takes is exact.
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/simulation.hpp>

namespace headway {
namespace {

TEST(Sending, a_sender_whose_targets_queue_is_full_sees_soon_that_there_is_room) {
  constexpr std::uint64_t messages = 500;
  std::uint64_t handled = 0;
  am::SimulateOptions options{.pes = 2};
  options.conditions.inbox_frames = 16;
  const am::SimulateResult result = am::simulate(options, [&](Pe& pe) {
    Aggregator<std::uint64_t> numbers(pe, {.topology = direct()});
    numbers.on([&](const std::uint64_t&) { ++handled; });
    if (pe.id() == 0) {
      for (std::uint64_t i = 0; i < messages; ++i) numbers.send(1, i);
    }
    pe.quiesce();
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(handled, messages);
  // The queue is full about 30 times, and nobody rings for room in it: a sleep until something arrives takes 100 ms.
  EXPECT_LT(result.simulated_ns, 50'000'000);
}

}  // namespace
}  // namespace headway
