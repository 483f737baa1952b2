// SPDX-License-Identifier: BSD-3-Clause
// What looks ahead of the handler: Aggregator::on(handler, ahead).
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/base/bytes.hpp>
#include <map>
#include <span>
#include <string>
#include <support/run_pes.hpp>
#include <support/topologies.hpp>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::topologies;

TEST(Aggregator, the_ahead_function_gets_the_source_on_every_route_or_is_not_called) {
  for (const Topology topology : topologies) {
    expect_run({5, 1}, [topology](Pe& pe) {
      Aggregator<std::uint64_t> words(pe, {.topology = topology});
      std::uint64_t handled = 0;
      words.on([&](std::uint64_t) { ++handled; },
               [](PeId source, std::uint64_t word) { EXPECT_EQ(std::uint64_t(source), word); });
      for (std::size_t i = 0; i < 1000; ++i) words.send(i % pe.size(), std::uint64_t(pe.id()));
      pe.quiesce();
      EXPECT_EQ(handled, 1000u);
      return 0;
    });
  }
}

TEST(Aggregator, the_ahead_function_gets_the_objects_of_the_handler) {
  using Numbers = std::vector<std::uint32_t>;
  using Names = std::map<std::uint64_t, std::string>;
  const auto numbers_of = [](std::uint64_t i) { return Numbers(i % 50, std::uint32_t(i)); };
  const auto names_of = [](std::uint64_t i) { return Names{{i, std::string(i % 30, 'x')}}; };
  expect_run({3, 1}, [&](Pe& pe) {
    constexpr std::uint64_t messages = 2000;  // several blocks in a frame
    Aggregator<std::uint64_t, Numbers, std::string, Names> objects(pe, {.buffer_bytes = 64_KiB});
    std::vector<std::uint64_t> ahead(pe.size()), handled(pe.size());
    const auto expect_is = [&](std::uint64_t i, const Numbers& numbers, const std::string& text, const Names& names) {
      EXPECT_EQ(numbers, numbers_of(i));
      EXPECT_EQ(text, std::to_string(i));
      EXPECT_EQ(names, names_of(i));
    };
    objects.on(
        [&](PeId source, std::uint64_t i, const Numbers& numbers, const std::string& text, const Names& names) {
          EXPECT_EQ(i, handled[source]++);
          EXPECT_GE(ahead[source], handled[source]);
          expect_is(i, numbers, text, names);
        },
        [&](PeId source, std::uint64_t i, const Numbers& numbers, const std::string& text, const Names& names) {
          EXPECT_EQ(i, ahead[source]++);
          expect_is(i, numbers, text, names);
        });
    for (std::uint64_t i = 0; i < messages; ++i) {
      for (std::size_t target = 0; target < pe.size(); ++target) {
        objects.send(target, i, numbers_of(i), std::to_string(i), names_of(i));
      }
    }
    pe.quiesce();
    EXPECT_EQ(handled, std::vector<std::uint64_t>(pe.size(), messages));
    return 0;
  });
}

TEST(Aggregator, the_ahead_function_gets_messages_of_a_frame_in_order_before_the_handler) {
  expect_run({3, 1}, [](Pe& pe) {
    constexpr std::uint64_t messages = 5000;  // several blocks in a frame
    Aggregator<std::uint64_t> words(pe, {.buffer_bytes = 16_KiB});
    Aggregator<std::uint64_t, std::span<const std::uint64_t>> rows(pe, {.buffer_bytes = 16_KiB});
    std::vector<std::uint64_t> words_ahead(pe.size()), words_handled(pe.size());
    std::vector<std::uint64_t> rows_ahead(pe.size()), rows_handled(pe.size());
    words.on(
        [&](PeId source, std::uint64_t i) {
          EXPECT_EQ(i, words_handled[source]++);
          EXPECT_GE(words_ahead[source], words_handled[source]);
        },
        [&](PeId source, std::uint64_t i) { EXPECT_EQ(i, words_ahead[source]++); });
    rows.on(
        [&](PeId source, std::uint64_t i, std::span<const std::uint64_t> row) {
          EXPECT_EQ(i, rows_handled[source]++);
          EXPECT_EQ(row.size(), i % 5);
          EXPECT_GE(rows_ahead[source], rows_handled[source]);
        },
        [&](PeId source, std::uint64_t i, std::span<const std::uint64_t> row) {
          EXPECT_EQ(i, rows_ahead[source]++);
          EXPECT_EQ(row.size(), i % 5);
        });
    const std::uint64_t row[5] = {};
    for (std::uint64_t i = 0; i < messages; ++i) {
      for (std::size_t target = 0; target < pe.size(); ++target) {
        words.send(target, i);
        rows.send(target, i, std::span(row, i % 5));
      }
    }
    pe.quiesce();
    EXPECT_EQ(words_handled, std::vector<std::uint64_t>(pe.size(), messages));
    EXPECT_EQ(rows_handled, std::vector<std::uint64_t>(pe.size(), messages));
    return 0;
  });
}

}  // namespace
}  // namespace headway
