// SPDX-License-Identifier: BSD-3-Clause
/// The counts behind AggregatorStatistics.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/aggregate/copy_counts.hpp>
#include <headway/aggregate/options.hpp>
#include <headway/am/engine.hpp>

namespace headway::aggregate {

/// A message by value counts as a message, a frame, and a full flush. The fast path adds it to `by_value` alone.
struct Counters {
  std::uint64_t by_value = 0, by_value_bytes = 0;
  std::uint64_t frames_between_processes = 0, frames_between_hosts = 0;
  // Without messages by value:
  std::uint64_t created = 0, payload_bytes = 0, frames = 0, wire_bytes = 0, alone = 0;
  std::uint64_t flushes[am::flush_reasons] = {};
  std::uint64_t buffered_frames = 0, peak_buffer_bytes = 0, peak_target_bytes = 0;
  double fills = 0;  // sum of the fill fractions of buffered frames
  std::uint64_t handled = 0, forwarded = 0, forwarded_bytes = 0;
  CopyCounts further_copies;  // beyond packing and repacking

  void count_buffered(am::FlushReason reason, std::size_t used_bytes, std::size_t frame_bytes) {
    ++flushes[std::size_t(reason)];
    ++buffered_frames;
    fills += double(used_bytes) / double(frame_bytes);
  }
  void count_peaks(std::uint64_t buffer_bytes, std::uint64_t target_bytes) {
    peak_buffer_bytes = std::max(peak_buffer_bytes, buffer_bytes);
    peak_target_bytes = std::max(peak_target_bytes, target_bytes);
  }

  /// Messages in open buffers count as sent: `open` of them with `open_bytes`.
  AggregatorStatistics statistics(std::uint64_t open, std::uint64_t open_bytes, const am::FrameStore& store) const {
    AggregatorStatistics result;
    result.messages = created + by_value + open;
    result.handled = handled;
    result.forwarded = forwarded;
    result.payload_bytes = payload_bytes + by_value_bytes + open_bytes;
    result.frames = frames + by_value;
    result.frames_between_processes = frames_between_processes;
    result.frames_between_hosts = frames_between_hosts;
    result.wire_bytes = wire_bytes + by_value * sizeof(transport::FrameHeader) + by_value_bytes;
    result.alone = alone + by_value;
    result.copies = result.messages + forwarded + further_copies.messages;
    result.copied_bytes = result.payload_bytes + forwarded_bytes + further_copies.bytes;
    result.flush_full = flushes[std::size_t(am::FlushReason::full)] + by_value;
    result.flush_timeout = flushes[std::size_t(am::FlushReason::timeout)];
    result.flush_idle = flushes[std::size_t(am::FlushReason::idle)];
    result.flush_explicit = flushes[std::size_t(am::FlushReason::requested)];
    result.spilled_frames = store.spilled_frames();
    result.frames_past_caches = store.frames_past_caches();
    result.spilled_bytes_peak = store.spill_bytes_peak();
    result.peak_buffer_bytes = peak_buffer_bytes;
    result.peak_target_bytes = peak_target_bytes;
    result.fill_mean = buffered_frames == 0 ? 0 : fills / double(buffered_frames);
    return result;
  }
};

}  // namespace headway::aggregate
