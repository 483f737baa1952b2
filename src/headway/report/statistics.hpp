// SPDX-License-Identifier: BSD-3-Clause
/// Statistics that a PE publishes on its board when a watcher asks for them.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <headway/report/board.hpp>
#include <optional>

namespace headway::report {

/// Counts are sums since the PE began, bytes are those of now.
struct PeStatistics {
  std::uint64_t time_ns = 0;       // of the answer, by the clock of the transport
  std::uint64_t created = 0;       // messages, without those in open buffers
  std::uint64_t handled = 0;       // messages
  std::uint64_t forwarded = 0;     // messages of other PEs, to their next hop
  std::uint64_t frames = 0;        // posted by aggregators
  std::uint64_t buffer_bytes = 0;  // open buffers
  std::uint64_t memory_bytes = 0;  // frame memory in use: open buffers, and frames that receivers hold
  std::uint64_t budget_bytes = 0;  // limit of memory_bytes
  std::uint64_t spill_bytes = 0;   // spilled frames
  std::uint64_t spilled_frames = 0;
};
static_assert(sizeof(PeStatistics) == sizeof(PeBoard::statistics));
using StatisticsWords = std::array<std::uint64_t, sizeof(PeStatistics) / sizeof(std::uint64_t)>;

/// Asks the PE for new statistics. From any process.
inline void ask_for_statistics(PeBoard& board) {
  std::uint32_t wanted = board.wanted.load(std::memory_order_relaxed);
  while (!board.wanted.compare_exchange_weak(wanted, with_statistics(wanted, statistics_in(wanted) + 1),
                                             std::memory_order_release, std::memory_order_relaxed)) {
  }
}

/// Publishes the answer to request `number`. Called by the PE's thread.
inline void give_statistics(PeBoard& board, std::uint32_t number, const PeStatistics& statistics) {
  const auto words = std::bit_cast<StatisticsWords>(statistics);
  // Released, so that a reader of a new word also sees the new request in its second look at `wanted`.
  for (std::size_t i = 0; i < words.size(); ++i) board.statistics[i].store(words[i], std::memory_order_release);
  board.statistics_given.store(number, std::memory_order_release);
}

/// The answer to the newest request. Empty before the answer. The PE writes only after a new request, so that an answer
/// is complete if the request is the same before and after the reader reads it.
inline std::optional<PeStatistics> statistics_of(const PeBoard& board) {
  StatisticsWords words{};
  const std::uint32_t number = board.statistics_given.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = board.statistics[i].load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (number == 0 || number != statistics_in(board.wanted.load(std::memory_order_relaxed))) return std::nullopt;
  return std::bit_cast<PeStatistics>(words);
}

}  // namespace headway::report
