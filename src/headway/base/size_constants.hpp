// SPDX-License-Identifier: BSD-3-Clause
/// Sizes at which large content changes its path. No path of every message reads them.
#pragma once

#include <cstddef>

namespace headway::base {

/// The same on all PEs of a run. With HEADWAY_TEST_SIZES=small they are so small that tests reach all paths with a few
/// KiB; that is for developers of the library.
struct SizeConstants {
  // --- messages that are sent alone (aggregate/core.cpp), in bytes with the frame's overhead

  /// Largest frame of a message that is sent alone within a host: one copy from writer to reader.
  std::size_t alone_frame_bytes_max = std::size_t(64) << 20;
  /// The same to another host: fits a posted receive, and the credit.
  std::size_t alone_frame_bytes_max_between_hosts = std::size_t(256) << 10;
  /// Largest frame of a part that is written past the caches. Parts in flight and in delayed reuse leave the writer's
  /// cache before they are read, and the reader copies one part while the sender writes the next.
  std::size_t part_frame_bytes_max = std::size_t(128) << 10;
  /// Largest frame of a part that is written through the caches: the reader begins sooner.
  std::size_t short_part_frame_bytes = std::size_t(32) << 10;

  // --- memory in which the receiver joins parts (aggregate/part_memory.cpp)

  /// Largest address range that a message gets at once; its first part may announce any length.
  std::size_t promised_bytes_max = std::size_t(1) << 30;
  /// Beyond that a message gets so many times the bytes that have arrived.
  std::size_t promised_growth = 8;
  /// Mappings are a multiple of this, which is a multiple of the page size.
  std::size_t mapping_granule_bytes = std::size_t(64) << 10;
  /// The begin of a mapping keeps small pages; huge pages may begin at this offset.
  std::size_t mapping_huge_page_bytes = std::size_t(2) << 20;
  /// Limits of the bytes and of the mappings that are kept for later messages.
  std::size_t kept_bytes_max = ~std::size_t(0);
  std::size_t kept_mappings_max = 16;

  // --- zero-copy content (layer transfer), in bytes

  /// Longest content that is copied into its message where the receiver has not mapped it.
  std::size_t copied_bytes_max = std::size_t(16) << 10;
  /// Limit for the copies that a PE keeps of short Sources, together.
  std::size_t held_bytes_max = std::size_t(4) << 20;
  /// Shorter mapped content is copied through the caches: after a copy past the caches its user would wait for memory.
  std::size_t learned_bytes_min = std::size_t(32) << 10;
  /// Pieces within a host: the reader copies one while the owner writes the next. They stay in a core's cache; each is
  /// just shorter than a frame of 32 KiB.
  std::size_t piece_bytes_within_host = (std::size_t(32) << 10) - 512;
  /// Pieces between hosts, where the cost of a frame counts.
  std::size_t piece_bytes_between_hosts = std::size_t(64) << 10;
  /// Limit of the bytes in flight that a PE gets or puts in pieces; it requests a quarter of that at once.
  std::size_t window_bytes = std::size_t(1) << 20;
  std::size_t request_bytes() const { return window_bytes / 4; }
  /// Longest put that travels in one control message.
  std::size_t small_put_bytes_max = std::size_t(4) << 10;
  /// Longest content that the network itself reads: longer content shows no progress, which pieces do.
  std::size_t network_bytes_max = std::size_t(256) << 20;
  /// Limits of a PE's pipeline ring, which is twice the core's own cache.
  std::size_t ring_bytes_min = std::size_t(1) << 20;
  std::size_t ring_bytes_max = std::size_t(4) << 20;
  /// Limits of the bytes that the owner writes to the ring before it tells the reader.
  std::size_t step_bytes_min = std::size_t(4) << 10;
  std::size_t step_bytes_max = std::size_t(16) << 10;

  // --- memory that other PEs reach (rma), in bytes

  /// Limit of one call of process_vm_readv, which allows 2 GiB less a page.
  std::size_t attached_bytes_max = std::size_t(1) << 30;
  /// Smaller freed blocks of a pool keep their memory for the next allocation. At least a page.
  std::size_t given_back_bytes_min = std::size_t(64) << 10;
};

inline constexpr SizeConstants normal_sizes;

/// A message of a few KiB is sent in parts, and one of 64 KiB outgrows its first address range twice.
inline constexpr SizeConstants small_sizes{
    .alone_frame_bytes_max = std::size_t(4) << 10,
    .alone_frame_bytes_max_between_hosts = std::size_t(2) << 10,
    .part_frame_bytes_max = std::size_t(1) << 10,
    .short_part_frame_bytes = 512,
    .promised_bytes_max = std::size_t(24) << 10,
    .promised_growth = 2,
    .mapping_granule_bytes = std::size_t(4) << 10,
    .mapping_huge_page_bytes = std::size_t(16) << 10,
    .kept_bytes_max = std::size_t(96) << 10,
    .kept_mappings_max = 2,
    .copied_bytes_max = std::size_t(6) << 10,
    .held_bytes_max = std::size_t(24) << 10,
    .learned_bytes_min = std::size_t(1) << 10,
    .piece_bytes_within_host = (std::size_t(2) << 10) - 64,
    .piece_bytes_between_hosts = std::size_t(4) << 10,
    .window_bytes = std::size_t(32) << 10,
    .small_put_bytes_max = 512,
    .network_bytes_max = std::size_t(64) << 10,
    .ring_bytes_min = std::size_t(32) << 10,
    .ring_bytes_max = std::size_t(32) << 10,
    .step_bytes_min = 512,
    .step_bytes_max = std::size_t(2) << 10,
    .attached_bytes_max = std::size_t(16) << 10,
    .given_back_bytes_min = std::size_t(4) << 10,
};

}  // namespace headway::base
