// SPDX-License-Identifier: BSD-3-Clause
/// Sends messages that are too large for a buffer: in one large frame, or in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/frame_poster.hpp>
#include <headway/aggregate/piece_reader.hpp>
#include <headway/aggregate/slot_table.hpp>
#include <headway/rma/fastest_path.hpp>
#include <memory>

namespace headway::aggregate {

/// `poster`, `table` and `route` outlive it.
class LargeSender {
 public:
  LargeSender(FramePoster& poster, SlotTable& table, const Route& route)
      : poster_(&poster), table_(&table), route_(&route) {}

  /// The longest message in one frame.
  std::size_t alone_bytes_max(std::size_t destination) const {
    const FrameLayout& layout = table_->layout();
    const std::size_t frame =
        poster_->leaves_host(destination) ? layout.alone_frame_bytes_between_hosts : layout.alone_frame_bytes;
    return frame - transport::frame_overhead - layout.padding;
  }
  /// As FramePoster::claim_alone(), for messages of up to alone_bytes_max(). Also empty if parts are better: in a
  /// handler without memory, or if the free memory is fragmented.
  am::OpenFrame claim(std::size_t destination, std::size_t bytes, Wait wait, am::Writing writing);
  /// Writes the message of a frame for a remote core, by non-temporal stores.
  void write_past_caches(const am::OpenFrame& frame, Pieces pieces, std::size_t bytes);

  /// Sends a message in parts, straight to its destination. `pieces` have `bytes` together; UsageError otherwise. False
  /// only for Wait::no. For another PE of the host parts are short and written by ordinary stores, or long and written
  /// past the caches, whichever has been faster.
  bool send_in_parts(std::size_t destination, Pieces pieces, std::size_t bytes, Wait wait);
  /// Sends an ordered message above the cutoff, in parts along the route, behind earlier messages.
  bool send_in_order(std::size_t destination, Pieces pieces, std::size_t bytes, Wait wait);

 private:
  enum PartPath : std::size_t { past_caches, in_caches };

  bool put_in_parts(std::size_t destination, Pieces pieces, std::size_t bytes, std::size_t part_max, PartPath path);
  bool has_room(std::size_t target, std::uint8_t hops_left, std::size_t frame_bytes, std::size_t frames);

  FramePoster* poster_;
  SlotTable* table_;
  const Route* route_;
  std::unique_ptr<rma::FastestPath<2>> part_paths_;  // for other PEs of the host; made at the first use
  std::uint64_t next_message_ = 0;
};

}  // namespace headway::aggregate
