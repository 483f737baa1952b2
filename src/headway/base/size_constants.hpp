/// Sizes from which large content goes another way, none of them for the path of every message.
#pragma once

#include <cstddef>

namespace headway {

/// The same on all PEs of a run. HEADWAY_TEST_SIZES=small makes them so small that tests take all ways with little content;
/// it is for who works on the library.
struct SizeConstants {
  // --- messages by themselves (aggregate/core.cpp), in bytes with the frame's overhead

  /// Largest frame of a message by itself: as much as one target may hold; straight from writer to reader it is copied once.
  std::size_t alone_frame_bytes_max = std::size_t(64) << 20;
  /// The same to another host: no more than receives that are kept posted hold, and credit is meant for.
  std::size_t alone_frame_bytes_max_between_hosts = std::size_t(256) << 10;
  /// Largest frame of a part: so many are on their way or rest that they leave the writer's own cache before they are read,
  /// and the reader copies one while the next is written.
  std::size_t part_frame_bytes_max = std::size_t(128) << 10;
  /// The same where parts are written as usual: their reader begins sooner. Past the caches longer ones are as fast or
  /// faster.
  std::size_t short_part_frame_bytes = std::size_t(32) << 10;

  // --- memory that parts are put together in (aggregate/part_memory.cpp)

  /// Bytes of addresses that a message gets at once, whatever its first part promises.
  std::size_t promised_bytes_max = std::size_t(1) << 30;
  /// Beyond them: so many times what has come.
  std::size_t promised_growth = 8;
  /// Bytes of which mappings are a multiple; a multiple of the page size.
  std::size_t mapping_granule_bytes = std::size_t(64) << 10;
  /// Bytes at the begin of a mapping that stay small pages; what is behind them may be huge ones, and begins as those do.
  std::size_t mapping_huge_page_bytes = std::size_t(2) << 20;
  /// Bytes, and mappings, that are kept for the next messages.
  std::size_t kept_bytes_max = ~std::size_t(0);
  std::size_t kept_mappings_max = 16;

  // --- content that stays with its sender (transfer), in bytes

  /// Longest content that is copied to a bounce buffer; their distance (a multiple of the page size) and number
  /// for each PE.
  std::size_t bounce_buffer_bytes = std::size_t(16) << 10;
  std::size_t bounce_buffer_stride = std::size_t(20) << 10;
  std::size_t bounce_buffers = 256;
  /// Of a PE's copies of short Sources that are not inside of what they are known by, together.
  std::size_t held_bytes_max = std::size_t(2) << 20;
  /// Shorter content is copied through the caches where it is mapped: who looks at what came past them waits for memory.
  std::size_t learned_bytes_min = std::size_t(32) << 10;
  /// Pieces within a host: who takes one copies it while the next one is made. They stay in a core's cache, each just below
  /// a frame of 32 KiB.
  std::size_t piece_bytes_within_host = (std::size_t(32) << 10) - 512;
  /// Pieces over a network, where frames are what costs.
  std::size_t piece_bytes_between_hosts = std::size_t(64) << 10;
  /// Of all that a PE asks for in pieces, or puts so, on its way at a time; a quarter of it is asked for at once.
  std::size_t window_bytes = std::size_t(1) << 20;
  std::size_t request_bytes() const { return window_bytes / 4; }
  /// Longest put that goes in one note.
  std::size_t small_put_bytes_max = std::size_t(4) << 10;
  /// Longest content that the network itself moves: of what is longer pieces can be seen to move.
  std::size_t network_bytes_max = std::size_t(256) << 20;
  /// A PE's ring for content that is read while it is written: twice a core's own cache, within these.
  std::size_t ring_bytes_min = std::size_t(1) << 20;
  std::size_t ring_bytes_max = std::size_t(4) << 20;
  /// Written before the reader learns of it.
  std::size_t step_bytes_min = std::size_t(4) << 10;
  std::size_t step_bytes_max = std::size_t(16) << 10;

  // --- memory that others reach (rma), in bytes

  /// Copied by one call of the system, which allows 2 GiB less a page.
  std::size_t attached_bytes_max = std::size_t(1) << 30;
  /// Smaller blocks of shared memory are kept when they are freed: the next allocation takes them again. A page or more.
  std::size_t given_back_bytes_min = std::size_t(64) << 10;
};

inline constexpr SizeConstants normal_sizes;

/// A message of a few KiB goes in parts, and one of 64 KiB outgrows what it is promised twice.
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
    .bounce_buffer_bytes = std::size_t(6) << 10,
    .bounce_buffer_stride = std::size_t(8) << 10,
    .bounce_buffers = 4,
    .held_bytes_max = std::size_t(16) << 10,
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

}  // namespace headway
