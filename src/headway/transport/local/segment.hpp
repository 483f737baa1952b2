// SPDX-License-Identifier: BSD-3-Clause
/// The shared memory of a run on one host: an anonymous mapping that all processes attach to. It holds offsets, never
/// pointers, and leaves nothing behind.
///
///     | SegmentHeader (page) | per PE: control page, board pages, inbox, report pages | per PE: eager slots |
///     per PE: arena | per PE: pool |
///
/// Programs share data in pools. A process maps them when it first uses one; untouched pages cost no memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/transport/frame.hpp>
#include <headway/transport/frame_costs.hpp>
#include <mutex>
#include <span>

namespace headway::local {

inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t board_bytes = 4 * page_bytes;
inline constexpr std::size_t report_bytes = 2 * page_bytes;
inline constexpr std::size_t cache_line = 64;
inline constexpr std::size_t inbox_cells = 512;  // a power of two

/// One place of an inbox. It holds a small frame by value, or the place of a larger frame.
///
///   byte 0          8             32                                                256
///        | sequence | FrameHeader | payload then tail, at most 224 bytes, or Reference |
///
/// `sequence` is 2 * generation while the cell is free and 2 * generation + 1 once it is published. The generation
/// counts how often the ring's cells have been used. Lines that a frame does not reach are neither written nor read.
struct alignas(cache_line) Cell {
  struct Reference {
    std::uint64_t block;     // offset of the Frame in the segment
    std::uint64_t tail_end;  // offset of the end of its tail
  };
  std::atomic<std::uint64_t> sequence;
  transport::FrameHeader header;
  std::byte bytes[transport::by_value_bytes_most];
};
static_assert(sizeof(Cell) == 256 && offsetof(Cell, bytes) == 32);

/// Place of a payload that is too long for its cell; the sender writes it there directly. Slots of consecutive cells
/// lie far apart: a receiver's prefetcher also reads lines behind the slot, and would take them from the next sender.
struct alignas(cache_line) EagerSlot {
  std::byte before[transport::frame_overhead];
  std::byte bytes[transport::in_place_bytes_most];
};
static_assert(sizeof(EagerSlot) == 65 * cache_line && inbox_cells * sizeof(EagerSlot) % page_bytes == 0);
/// The number of the eager slot that belongs to cell `cell`.
constexpr std::size_t eager_slot_of(std::size_t cell) { return cell * 181 % inbox_cells; }

/// Bits of FrameHeader::kind in a cell: it holds a Reference; its payload is in its EagerSlot.
inline constexpr std::uint8_t kind_by_reference = 0x80, kind_in_eager_slot = 0x40;

/// The words of a PE that other PEs write. Different writers have different lines.
struct PeControl {
  alignas(cache_line) std::atomic<std::uint64_t> inbox_tail;  // senders: the next cell's ticket
  alignas(cache_line) std::atomic<std::uint64_t> returned;    // receivers: stack of returned frames, by offset
  alignas(cache_line) std::atomic<std::uint32_t> sleeping;    // 1 while the PE sleeps on this word
  std::atomic<std::uint32_t> refuses_in_place;                // 1 while the PE refuses frames in its eager slots
};
static_assert(sizeof(PeControl) <= page_bytes);

struct SegmentHeader {
  std::uint64_t magic;
  std::uint64_t pes;
  std::uint64_t processes;
  std::uint64_t pes_per_process;
  std::uint64_t arena_bytes;     // of one PE, a power of two
  std::uint64_t sleepers_fence;  // 1: the sleeper fences for all threads, as the system permits: Fences::sleeper
  std::uint64_t spill_bytes;
  std::uint64_t bind_cores;
  std::uint64_t first_pe;      // the run's number of the PE that is number 0 here; 0 unless there are other hosts
  std::uint64_t simulated;     // PEs are fibers of the one process; only boards are used
  std::uint64_t simulated_ns;  // at the end
  std::uint64_t simulated_frames;
  std::uint64_t pool_bytes;  // of one PE, a power of two; 0 if the limit of file sizes (ulimit -f) is too small
  // Instead of the estimates of local and of the wire; set before the PEs start, equal in all segments of the run.
  transport::FrameCosts costs_within_host, costs_between_hosts;
  std::atomic<std::uint64_t> arrived;         // processes that have reached run(), summed over all its calls
  std::atomic<std::uint64_t> ready;           // processes that are ready to start, likewise
  std::atomic<std::uint64_t> processes_gone;  // processes that have ended
  std::atomic<std::uint64_t> reports_asked;   // reports on the run that signals have asked its processes for
};
static_assert(sizeof(SegmentHeader) <= page_bytes);

class Segment {
 public:
  /// Creates the memory. Throws SystemError.
  Segment(std::size_t pes, std::size_t processes, std::size_t pes_per_process, std::size_t arena_bytes);
  /// Attaches to memory that another process created. Throws SystemError; SettingError if it is not a segment.
  explicit Segment(int descriptor);
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  int descriptor() const { return descriptor_; }
  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  PeControl& control(std::size_t pe) const { return *reinterpret_cast<PeControl*>(base_ + page_bytes + pe * pe_bytes); }
  std::span<std::byte> board(std::size_t pe) const { return {base_ + 2 * page_bytes + pe * pe_bytes, board_bytes}; }
  Cell* inbox(std::size_t pe) const {
    return reinterpret_cast<Cell*>(base_ + 2 * page_bytes + board_bytes + pe * pe_bytes);
  }
  /// Pages for a PE's part of a report. Untouched, and without memory, until a report is asked for.
  std::span<std::byte> report(std::size_t pe) const {
    return {base_ + 2 * page_bytes + board_bytes + inbox_cells * sizeof(Cell) + pe * pe_bytes, report_bytes};
  }
  /// The first of the PE's inbox_cells eager slots; nullptr if it has none. Untouched pages cost no memory.
  EagerSlot* eager_slots(std::size_t pe) const {
    const std::size_t each = eager_slots_bytes(header().arena_bytes);
    return each == 0 ? nullptr : reinterpret_cast<EagerSlot*>(base_ + page_bytes + header().pes * pe_bytes + pe * each);
  }
  std::byte* arena(std::size_t pe) const { return base_ + arenas_ + pe * header().arena_bytes; }
  /// Maps the pools of all PEs at the first call. From any thread. Throws SystemError.
  std::span<std::byte> pool(std::size_t pe) const;

  std::uint64_t offset(const void* at) const { return std::uint64_t(static_cast<const std::byte*>(at) - base_); }
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  std::size_t bytes() const { return bytes_; }

  /// Bytes of a segment for `pes` PEs with arenas of `arena_bytes`, without pools.
  static std::size_t bytes_for(std::size_t pes, std::size_t arena_bytes);

 private:
  static constexpr std::size_t pe_bytes = page_bytes + board_bytes + inbox_cells * sizeof(Cell) + report_bytes;
  /// 0 for a small arena: eager slots could take more memory than the frames themselves.
  static constexpr std::size_t eager_slots_bytes(std::size_t arena_bytes) {
    constexpr std::size_t arena_bytes_min = std::size_t(16) << 20;
    return arena_bytes < arena_bytes_min ? 0 : inbox_cells * sizeof(EagerSlot);
  }
  void map();

  int descriptor_ = -1;
  mutable std::once_flag pools_mapped_;
  mutable std::byte* pools_ = nullptr;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t arenas_ = 0;  // offset of PE 0's arena
};

}  // namespace headway::local
