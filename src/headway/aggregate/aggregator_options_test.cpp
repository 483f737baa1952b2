// SPDX-License-Identifier: BSD-3-Clause
// Options of an Aggregator: derived values, limits, and refused values.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <support/run_pes.hpp>

namespace headway {
namespace {

using testing::expect_run;
using namespace std::chrono_literals;

TEST(Options, options_not_given_are_derived_and_can_be_read) {
  expect_run({4, 1}, [](Pe& pe) {
    Aggregator<std::uint64_t> fixed(pe);
    EXPECT_EQ(fixed.options().threshold, 1);
    EXPECT_EQ(fixed.options().cutoff, 0.5);
    EXPECT_EQ(fixed.options().topology, grid(1));
    EXPECT_GE(fixed.options().buffer_bytes, base::buffer_bytes_min);
    EXPECT_GE(fixed.options().timeout.count(), 0);
    Aggregator<std::string_view> variable(pe);
    EXPECT_LE(variable.options().threshold + variable.options().cutoff, 1);
    EXPECT_GT(variable.options().threshold, 0);
    Aggregator<std::string_view> with_cutoff(pe, {.cutoff = 0.6});
    EXPECT_EQ(with_cutoff.options().cutoff, 0.6);
    EXPECT_LE(with_cutoff.options().threshold, 0.4);
    Aggregator<std::string_view> with_threshold(pe, {.threshold = 1});
    EXPECT_EQ(with_threshold.options().cutoff, 0);
    const std::string name = "updates";
    Aggregator<std::string_view> named(pe, {.name = std::string(name)});  // need not outlive the call
    EXPECT_EQ(named.options().name, name);
  });
}

TEST(Options, buffers_together_take_at_most_half_the_budget) {
  for (const std::size_t pes : {1, 2, 3, 7, 15, 16}) {
    expect_run({pes, 8},
               [](Pe& pe) {
                 for (const Topology topology : {direct(), grid(1), grid(2), grid(3)}) {
                   Aggregator<std::uint64_t> words(pe, {.buffer_bytes = base::buffer_bytes_max, .topology = topology});
                   words.on([](std::uint64_t) {});
                   for (std::size_t target = 0; target < pe.size(); ++target) words.send(target, 1);
                   pe.quiesce();
                   EXPECT_GE(words.options().buffer_bytes, base::buffer_bytes_min);
                   EXPECT_LE(words.statistics().peak_buffer_bytes, 512_KiB);
                   EXPECT_LE(words.statistics().peak_target_bytes, 512_KiB);
                 }
               },
               {{"HEADWAY_BUDGET", "1M"}});
  }
}

template <class... Args>
void expect_refused(Pe& pe, const AggregatorOptions& options, const std::string& part) {
  try {
    Aggregator<Args...> refused(pe, options);
    ADD_FAILURE() << "taken, though " << part;
  } catch (const SettingError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Options, invalid_options_are_refused_by_name) {
  expect_run({2, 1}, [](Pe& pe) {
    using std::numeric_limits;
    for (const std::size_t bytes : {std::size_t(0), std::size_t(1), std::size_t(255), base::buffer_bytes_max + 1}) {
      expect_refused<std::uint64_t>(pe, {.buffer_bytes = bytes}, "buffer_bytes = " + std::to_string(bytes));
    }
    for (const double f :
         {-0.5, 1.0001, 7.0, numeric_limits<double>::quiet_NaN(), numeric_limits<double>::infinity()}) {
      expect_refused<std::string_view>(pe, {.threshold = f}, "threshold");
      expect_refused<std::string_view>(pe, {.cutoff = f}, "cutoff");
      expect_refused<std::uint64_t>(pe, {.threshold = f}, "threshold");
    }
    expect_refused<std::string_view>(pe, {.threshold = 0.6, .cutoff = 0.5}, "threshold = 0.6 and cutoff = 0.5");
    expect_refused<std::string_view>(pe, {.threshold = 1, .cutoff = 1}, "sum must be at most 1");
    expect_refused<std::uint64_t>(pe, {.timeout = -2ns}, "timeout");
    expect_refused<std::uint64_t>(pe, {.topology = grid(9)}, "topology");
    expect_refused<std::uint64_t>(pe, {.topology = grid(~0u)}, "topology");

    // nothing has changed: the next one works on both PEs
    Aggregator<std::uint64_t> taken(pe, {.threshold = 1, .cutoff = 1});
    taken.on([](std::uint64_t) {});
    taken.send(1 - pe.id(), 1);
    EXPECT_EQ(pe.quiesce(), 2u);
  });
}

}  // namespace
}  // namespace headway
