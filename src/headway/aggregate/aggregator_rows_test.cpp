// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <map>
#include <span>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;

template <std::size_t words>
struct Message {
  std::array<std::uint64_t, words> content;
};

/// Every message arrives once, whatever the route, and on one hop most arrive in rows.
template <std::size_t words>
void expect_rows(const AggregatorOptions& options, bool in_rows) {
  constexpr std::uint64_t many = 2000;
  expect_run({3, 2}, [&](Pe& pe) {
    Aggregator<Message<words>> messages(pe, options);
    std::map<std::uint64_t, std::uint64_t> got;
    std::size_t calls = 0;
    messages.on_rows([&](std::span<const Message<words>> row) {
      ASSERT_FALSE(row.empty());
      ++calls;
      for (const Message<words>& message : row) {
        for (const std::uint64_t word : message.content) EXPECT_EQ(word, message.content[0]);
        ++got[message.content[0]];
      }
    });
    for (std::uint64_t i = 0; i < many; ++i) {
      Message<words> message;
      message.content.fill(i);
      messages.send(i % pe.size(), message);
    }
    pe.quiesce();
    std::uint64_t expected = 0;
    for (std::uint64_t i = 0; i < many; ++i) {
      if (i % pe.size() != pe.id()) continue;
      EXPECT_EQ(got[i], pe.size()) << i;
      ++expected;
    }
    EXPECT_EQ(got.size(), expected);
    EXPECT_LT(calls, in_rows ? expected * pe.size() / 2 : many * pe.size());
  });
}

AggregatorOptions small_buffers(Topology topology, bool ordered = false) {
  return {
      .buffer_bytes = 1_KiB, .timeout = no_timeout, .topology = topology, .flush_when_idle = false, .ordered = ordered};
}

TEST(Rows, arrive_whole_on_every_route) {
  for (const Topology topology : {grid(1), grid(2), grid(3)}) {
    expect_rows<1>(small_buffers(topology), true);
    expect_rows<3>(small_buffers(topology), true);
    expect_rows<12>(small_buffers(topology), false);
  }
}

TEST(Rows, of_one_message_where_they_do_not_lie_in_a_row) {
  expect_rows<1>(small_buffers(direct()), false);
  expect_rows<1>(small_buffers(grid(2), true), false);
  expect_rows<200>(small_buffers(grid(2)), false);  // each in a frame of its own, or in parts
}

}  // namespace
}  // namespace headway
