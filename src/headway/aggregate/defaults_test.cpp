// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <headway/aggregate/aggregator.hpp>
#include <headway/aggregate/defaults.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/transport/local/local.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using aggregate::resolve;
using aggregate::Surroundings;
using testing::expect_run;
using namespace std::chrono_literals;

/// PEs of one machine, as the local transport has them.
Surroundings here(std::size_t pes, std::size_t budget_bytes, std::size_t message_bytes = 0) {
  return {.pes = pes, .budget_bytes = budget_bytes, .message_bytes = message_bytes, .costs = local::costs};
}

TEST(Defaults, one_dimension_while_each_buffer_may_be_as_large_as_pays) {
  for (const std::size_t pes : {1, 2, 8, 64, 1000}) {
    EXPECT_EQ(resolve({}, here(pes, 16_MiB)).topology, grid(1)) << pes;
  }
  EXPECT_EQ(resolve({}, here(128, 1_MiB)).topology, grid(1));
}

TEST(Defaults, more_dimensions_where_the_budget_would_leave_too_little_to_each_buffer) {
  EXPECT_EQ(resolve({}, here(129, 1_MiB)).topology, grid(2));
  EXPECT_EQ(resolve({}, here(4096, 16_MiB)).topology, grid(2));
  EXPECT_EQ(resolve({}, here(4096, 1_MiB)).topology, grid(2));
  EXPECT_EQ(resolve({}, here(4097, 1_MiB)).topology, grid(3));
}

TEST(Defaults, buffers_share_half_the_budget_and_a_size_that_stays_in_cache) {
  auto bytes = [](std::size_t pes, std::size_t budget, std::size_t message_bytes) {
    return resolve({}, here(pes, budget, message_bytes)).buffer_bytes;
  };
  for (const std::size_t small : {1, 8}) {
    EXPECT_EQ(bytes(2, 16_MiB, small), 64_KiB);
    EXPECT_EQ(bytes(4, 16_MiB, small), 64_KiB);
    EXPECT_EQ(bytes(16, 16_MiB, small), 16_KiB);
  }
  for (const std::size_t larger_or_variable : {17, 1000, 0}) {
    EXPECT_EQ(bytes(1, 16_MiB, larger_or_variable), 256_KiB);
    EXPECT_EQ(bytes(2, 16_MiB, larger_or_variable), 256_KiB);
    EXPECT_EQ(bytes(16, 16_MiB, larger_or_variable), 32_KiB);
    EXPECT_EQ(bytes(1000, 16_MiB, larger_or_variable), 4_KiB);
    EXPECT_EQ(bytes(16, 256_KiB, larger_or_variable), 8_KiB);
  }
}

TEST(Defaults, buffers_go_without_asking_their_receiver_for_room) {
  for (const std::size_t message_bytes : {8, 1000, 0}) {
    Surroundings surroundings = here(2, 16_MiB, message_bytes);
    surroundings.costs = {.overhead_ns = 2000, .gap_per_byte_ns = 0.3, .latency_ns = 4000, .eager_bytes = 20_KiB};
    EXPECT_EQ(resolve({}, surroundings).buffer_bytes, 20_KiB);
    EXPECT_EQ(resolve({.buffer_bytes = 64_KiB}, surroundings).buffer_bytes, 64_KiB) << "a user knows better";
    surroundings.budget_bytes = 32_KiB;
    EXPECT_EQ(resolve({}, surroundings).buffer_bytes, 8_KiB) << "half the budget for two peers";
  }
}

TEST(Defaults, buffers_are_large_however_small_the_messages_where_frames_are_copied_on_their_way) {
  Surroundings surroundings = here(2, 16_MiB, 8);
  surroundings.costs = {.overhead_ns = 2000, .gap_per_byte_ns = 0.3, .latency_ns = 4000, .eager_bytes = 255_KiB};
  EXPECT_EQ(resolve({}, surroundings).buffer_bytes, 64_KiB);
  surroundings.costs.copied = true;
  EXPECT_EQ(resolve({}, surroundings).buffer_bytes, 255_KiB);
  surroundings.pes = 4;
  EXPECT_EQ(resolve({}, surroundings).buffer_bytes, 255_KiB);
  surroundings.pes = 8;
  EXPECT_EQ(resolve({}, surroundings).buffer_bytes, 128_KiB);
}

TEST(Defaults, messages_of_fixed_size_above_32_KiB_or_half_a_buffer_are_sent_alone) {
  auto cutoff_bytes = [](std::size_t pes, std::size_t message_bytes) {
    const AggregatorOptions options = resolve({}, here(pes, 16_MiB, message_bytes));
    return std::size_t(options.cutoff * double(options.buffer_bytes));
  };
  EXPECT_EQ(cutoff_bytes(2, 8), 32_KiB);
  EXPECT_EQ(cutoff_bytes(2, 1000), 32_KiB);
  EXPECT_EQ(cutoff_bytes(16, 1000), 16_KiB);
}

TEST(Defaults, the_timeout_is_a_millisecond_unless_it_is_given) {
  EXPECT_EQ(resolve({}, here(2, 1_MiB)).timeout, 1ms);
  EXPECT_EQ(resolve({.timeout = no_timeout}, here(2, 1_MiB)).timeout, no_timeout);
}

/// Hosts with `pes_per_host` PEs each: local costs within a host, a wire between hosts.
struct Hosts {
  std::vector<std::size_t> firsts;
  Surroundings s;

  Hosts(std::size_t hosts, std::size_t pes_per_host, std::size_t budget_bytes, std::size_t message_bytes = 0)
      : s(here(hosts * pes_per_host, budget_bytes, message_bytes)) {
    for (std::size_t host = 0; host < hosts; ++host) firsts.push_back(host * pes_per_host);
    s.hosts = firsts;
    s.costs = {.overhead_ns = 2'000, .gap_per_byte_ns = 0.3, .latency_ns = 4'000};
    s.costs_within_host = local::costs;
  }
};

TEST(DefaultsOverHosts, straight_to_every_pe_while_buffers_are_large_enough_for_the_wire) {
  EXPECT_EQ(resolve({}, Hosts(4, 4, 16_MiB).s).topology, grid(1));
  EXPECT_EQ(resolve({}, Hosts(4, 4, 16_MiB, 8).s).topology, grid(1));
  EXPECT_EQ(resolve({}, Hosts(2, 64, 16_MiB).s).topology, grid(1));
  for (const std::size_t hosts : {1, 2, 1024}) {  // of one PE each
    Surroundings without = Hosts(hosts, 1, 16_MiB).s;
    without.hosts = {};
    EXPECT_EQ(resolve({}, Hosts(hosts, 1, 16_MiB).s).topology, resolve({}, without).topology);
  }
}

TEST(DefaultsOverHosts, one_frame_for_a_host_where_the_budget_leaves_too_little_to_each_pe) {
  EXPECT_EQ(resolve({}, Hosts(4, 4, 256_KiB).s).topology, grid(1, Scheme::whs));
  EXPECT_EQ(resolve({}, Hosts(4, 4, 256_KiB, 8).s).topology, grid(1, Scheme::whs));
  EXPECT_EQ(resolve({}, Hosts(32, 16, 16_MiB).s).topology, grid(1, Scheme::whs));
  const AggregatorOptions options = resolve({}, Hosts(4, 4, 256_KiB).s);
  EXPECT_EQ(options.buffer_bytes, 32_KiB);  // for three hosts, and as much for the PEs of this one
}

TEST(DefaultsOverHosts, hosts_gather_where_even_one_frame_for_each_host_is_too_many) {
  EXPECT_EQ(resolve({}, Hosts(1000, 16, 16_MiB).s).topology, grid(1, Scheme::hh));
}

TEST(DefaultsOverHosts, a_given_topology_stays_and_buffers_of_it_take_half_the_budget) {
  for (const Topology topology : {grid(1), grid(2), grid(1, Scheme::whs), grid(1, Scheme::hh), grid(2, Scheme::hh)}) {
    const AggregatorOptions options = resolve({.buffer_bytes = 1_MiB, .topology = topology}, Hosts(8, 6, 1_MiB).s);
    EXPECT_EQ(options.topology, topology);
    EXPECT_LE(options.buffer_bytes, 128_KiB);
    EXPECT_GE(options.buffer_bytes, 4_KiB);
  }
}

constexpr transport::TransportCosts tcp{.overhead_ns = 3'000, .gap_per_byte_ns = 0.4, .latency_ns = 15'000};
constexpr transport::TransportCosts fast_network{.overhead_ns = 500, .gap_per_byte_ns = 0.04, .latency_ns = 1'000};

/// The costs of the local transport, with the overhead per frame multiplied by `times`.
transport::TransportCosts with_overhead(double times) {
  transport::TransportCosts costs = local::costs;
  costs.overhead_ns *= times;
  return costs;
}

AggregatorOptions derived_for(const transport::TransportCosts& costs, std::size_t pes, std::size_t budget_bytes,
                              std::size_t message_bytes = 0) {
  Surroundings s = here(pes, budget_bytes, message_bytes);
  s.costs = costs;
  return resolve({}, s);
}

TEST(Defaults, buffers_are_larger_where_frames_cost_more_than_caches_save) {
  for (const std::size_t message_bytes : {8, 16, 17, 1000, 0}) {
    for (const std::size_t pes : {16, 64, 128, 500}) {
      const std::size_t local = derived_for(local::costs, pes, 256_MiB, message_bytes).buffer_bytes;
      const std::size_t costly = derived_for(with_overhead(40), pes, 256_MiB, message_bytes).buffer_bytes;
      EXPECT_EQ(costly, 128_KiB) << pes << " PEs, " << message_bytes;
      EXPECT_GE(costly, 4 * local) << pes << " PEs, " << message_bytes;
    }
  }
  EXPECT_EQ(derived_for(with_overhead(40), 2, 16_MiB, 8).buffer_bytes, 128_KiB);
  EXPECT_EQ(derived_for(with_overhead(40), 2, 16_MiB).buffer_bytes, 256_KiB);  // in the cache, and large enough
  EXPECT_EQ(derived_for(with_overhead(0.01), 1000, 16_MiB).buffer_bytes, 4_KiB);
}

TEST(Defaults, buffers_are_no_larger_than_nine_tenths_of_the_wires_rate_need) {
  EXPECT_EQ(derived_for(tcp, 64, 256_MiB).buffer_bytes, 64_KiB);  // 9 * 3000 / 0.4
  EXPECT_EQ(derived_for(fast_network, 64, 256_MiB).buffer_bytes, 32_KiB);
  EXPECT_EQ(derived_for({.overhead_ns = 3'000, .gap_per_byte_ns = 4, .latency_ns = 0}, 64, 256_MiB).buffer_bytes,
            8_KiB);
}

TEST(Defaults, buffers_that_cost_more_still_share_half_the_budget) {
  EXPECT_EQ(derived_for(with_overhead(40), 16, 1_MiB).buffer_bytes, 64_KiB);  // 2d: two rows of four
  EXPECT_EQ(derived_for(with_overhead(40), 16, 1_MiB).topology, grid(2));
  for (const double overhead_ns : {0.0, 1e-3, 1e6, 1e15}) {
    for (const double gap_per_byte_ns : {0.0, 1e-9, 1.0, 1e15}) {
      const transport::TransportCosts costs{overhead_ns, gap_per_byte_ns, 0};
      for (const std::size_t pes : {1, 2, 64, 4096}) {
        for (const std::size_t message_bytes : {0, 1, 8, 1'000'000}) {
          const AggregatorOptions options = derived_for(costs, pes, 1_MiB, message_bytes);
          EXPECT_GE(options.buffer_bytes, base::buffer_bytes_min);
          EXPECT_LE(options.buffer_bytes, 512_KiB);
          EXPECT_GT(options.cutoff, 0);
          EXPECT_LE(options.cutoff, 0.5);
        }
      }
    }
  }
}

TEST(Defaults, one_hop_more_where_frames_would_take_longer_than_bytes) {
  EXPECT_EQ(derived_for(tcp, 1000, 16_MiB).topology, grid(1));
  EXPECT_EQ(derived_for(tcp, 1025, 16_MiB).topology, grid(2));  // below 8 KiB each
  EXPECT_EQ(derived_for(fast_network, 500, 16_MiB).topology, grid(1));
  EXPECT_EQ(derived_for(fast_network, 1025, 16_MiB).topology, grid(2));
  EXPECT_EQ(derived_for(fast_network, 1025, 16_MiB, 8).topology, grid(1));  // messages take longer than their bytes
}

TEST(Defaults, messages_of_fixed_size_are_sent_alone_when_the_frame_costs_a_tenth) {
  auto cutoff_bytes = [](const transport::TransportCosts& costs) {
    const AggregatorOptions options = derived_for(costs, 2, 16_MiB, 1000);
    return std::size_t(options.cutoff * double(options.buffer_bytes));
  };
  EXPECT_EQ(cutoff_bytes(local::costs), 32_KiB);
  EXPECT_EQ(cutoff_bytes(tcp), 64_KiB);
  EXPECT_EQ(cutoff_bytes(fast_network), 128_KiB);
}

TEST(Defaults, settings_replace_derived_but_not_given_values) {
  const base::AggregationSettings settings{
      .buffer_bytes = 2_KiB, .topology = "3d", .threshold = 0.5, .cutoff = 0.25, .timeout = 7us};
  for (const std::size_t message_bytes : {0, 8}) {
    Surroundings s = here(8, 1_MiB, message_bytes);
    s.settings = settings;
    const AggregatorOptions all = resolve({}, s);
    EXPECT_EQ(all.buffer_bytes, 2_KiB);
    EXPECT_EQ(all.topology, grid(3));
    EXPECT_EQ(all.threshold, 0.5);
    EXPECT_EQ(all.cutoff, 0.25);
    EXPECT_EQ(all.timeout, 7us);
    const AggregatorOptions given{
        .buffer_bytes = 1_KiB, .threshold = 0.6, .cutoff = 0.1, .timeout = 5us, .topology = grid(1)};
    const AggregatorOptions kept = resolve(given, s);
    EXPECT_EQ(kept.buffer_bytes, 1_KiB);
    EXPECT_EQ(kept.topology, grid(1));
    EXPECT_EQ(kept.threshold, 0.6);
    EXPECT_EQ(kept.cutoff, 0.1);
    EXPECT_EQ(kept.timeout, 5us);
  }
}

TEST(Defaults, settings_yield_to_given_values_that_they_contradict) {
  Surroundings s = here(2, 1_MiB);
  s.settings = {.threshold = 0.9, .cutoff = 0.5};
  EXPECT_LE(resolve({}, s).threshold + resolve({}, s).cutoff, 1);
  EXPECT_LE(resolve({.cutoff = 0.4}, s).threshold, 0.6);
  EXPECT_LE(resolve({.threshold = 1}, s).cutoff, 0);
  s.message_bytes = 8;  // of fixed size: they go together
  EXPECT_EQ(resolve({}, s).threshold, 0.9);
  EXPECT_EQ(resolve({}, s).cutoff, 0.5);
}

TEST(Defaults, an_aggregator_takes_the_settings_of_the_environment) {
  expect_run({3, 1},
             [](Pe& pe) {
               Aggregator<std::string_view> texts(pe);
               Aggregator<std::uint64_t> words(pe, {.buffer_bytes = 1_KiB, .topology = grid(1)});
               std::size_t handled = 0;
               texts.on([&](std::string_view) { ++handled; });
               words.on([&](std::uint64_t) { ++handled; });
               EXPECT_EQ(texts.options().buffer_bytes, 2_KiB);
               EXPECT_EQ(texts.options().topology, grid(2));
               EXPECT_EQ(texts.options().timeout, no_timeout);
               EXPECT_EQ(words.options().buffer_bytes, 1_KiB);
               EXPECT_EQ(words.options().topology, grid(1));
               for (std::size_t i = 0; i < 30; ++i) {
                 texts.send(i % pe.size(), "text");
                 words.send(i % pe.size(), i);
               }
               pe.quiesce();
               EXPECT_EQ(handled, 60u);
               EXPECT_EQ(texts.statistics().peak_buffer_bytes % 2_KiB, 0u);  // a size that is set does not adapt
             },
             {{"HEADWAY_BUFFER_BYTES", "2K"}, {"HEADWAY_TOPOLOGY", "2d"}, {"HEADWAY_TIMEOUT", "none"}});
}

TEST(Defaults, invalid_settings_are_refused_by_name) {
  for (const auto& [name, value] : {std::pair("HEADWAY_BUFFER_BYTES", "255"),
                                    {"HEADWAY_BUFFER_BYTES", "1T"},
                                    {"HEADWAY_TOPOLOGY", "9d"},
                                    {"HEADWAY_TOPOLOGY", "torus"},
                                    {"HEADWAY_THRESHOLD", "1.5"},
                                    {"HEADWAY_CUTOFF", "-0.1"},
                                    {"HEADWAY_CUTOFF", "nan"},
                                    {"HEADWAY_TIMEOUT", "soon"}}) {
    ::setenv(name, value, 1);
    try {
      base::Settings::from_environment();
      ADD_FAILURE() << "taken: " << name << "=" << value;
    } catch (const SettingError& error) {
      EXPECT_NE(std::string(error.what()).find(std::string(name) + "=" + value + ": allowed is"), std::string::npos)
          << error.what();
    }
    ::unsetenv(name);
  }
}

TEST(Defaults, a_topology_of_aggregators_is_a_setting_and_nothing_else_is) {
  std::vector<std::string> names = {"direct",
                                    "ww",
                                    "pe-to-pe",
                                    "pe-to-process-7d",
                                    "process-to-process-2d",
                                    "pe-to-host",
                                    "host-to-host-6d",
                                    "whs-7d",
                                    "hh-6d",
                                    "wps",
                                    "pp",
                                    "2D"};
  for (unsigned dimensions = 1; dimensions <= aggregate::dimensions_max; ++dimensions) {
    names.push_back(to_string(grid(dimensions)));
    for (const char* scheme : {"wps", "pp"}) {
      if (dimensions < aggregate::dimensions_max) names.push_back(fmt::format("{}-{}d", scheme, dimensions));
    }
  }
  for (const std::string& name : names) {
    ::setenv("HEADWAY_TOPOLOGY", name.c_str(), 1);
    EXPECT_EQ(base::AggregationSettings::from_environment().topology, name);
    EXPECT_NO_THROW(parse_topology(name)) << name;
  }
  for (const char* name :
       {"", "0d", "9d", "d", "3", "ww-2d", "wps-8d", "pp-", "wsp", "2d-wps", "hh-7d", "pe-to-pe-2d", "host"}) {
    ::setenv("HEADWAY_TOPOLOGY", name, 1);
    EXPECT_THROW(base::AggregationSettings::from_environment(), SettingError) << name;
    EXPECT_THROW(parse_topology(name), SettingError) << name;
  }
  ::unsetenv("HEADWAY_TOPOLOGY");
}

}  // namespace
}  // namespace headway
