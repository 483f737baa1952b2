// SPDX-License-Identifier: BSD-3-Clause
/// The file that one PE of a traced run writes: a header, then records of a fixed size, ascending in time.
///
///   byte 0       8         12   16    20       24       28      32        40         48      72    96      160
///        | magic | version | PE | PEs | header | record | clock | records | overruns | costs | ... | dials | transport
///                                        bytes    bytes           its number
///
/// All numbers are little-endian, times in nanoseconds of the run's clock, sizes in bytes. A reader skips records of
/// kinds that it does not know, and uses the sizes in the header, so that both may grow.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace headway::model::trace {

static_assert(std::endian::native == std::endian::little);

inline constexpr char magic[8] = {'H', 'W', 'T', 'R', 'A', 'C', 'E', 0};
inline constexpr std::uint32_t version = 1;
inline constexpr const char* file_name_format = "pe-{}.trace";

enum class Clock : std::uint32_t { real, simulated };

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t pe, pes;
  std::uint32_t header_bytes, record_bytes;  // of the writer: at least those of this version
  Clock clock;
  std::uint64_t records;   // in this file
  std::uint64_t overruns;  // records that the PE made when its buffer was full, and that are lost
  double overhead_ns, latency_ns, gap_per_byte_ns;  // the transport's own costs; overhead: of sender and receiver
  std::uint64_t reserved[3];
  char dials[64];      // of the traced run, as HEADWAY_DIAL; ends with 0
  char transport[16];  // name; ends with 0
};
static_assert(sizeof(Header) == 176 && offsetof(Header, records) == 32 && offsetof(Header, overhead_ns) == 48 &&
              offsetof(Header, dials) == 96 && std::is_trivially_copyable_v<Header>);

enum class Kind : std::uint8_t {
  begin = 1,    // of the PE's trace
  posted,       // the transport is about to take a frame; it has not refused it
  taken,        // a frame has been taken from the transport: its handler begins
  found_none,   // the first poll that found no frame: after a frame, the end of its handler; in a wait, idleness
  wait_begins,  // the first poll of a wait; `phase` is its reason
  wait_ends,    // the program goes on
  end,          // all messages of the run are handled
  polled = 12,  // a poll of the working program that found no frame; not each one
};

/// The activity of a PE that posts or polls: the reason of a wait, or none.
enum class Phase : std::uint8_t {
  working,     // the program, or a wait for memory
  handling,    // a handler
  waiting,     // for some frames, such as an answer
  collective,  // for other members
  epoch,       // for all messages of an epoch
  quiescing,   // for all messages of the run
};

/// 32 bytes. Only frames have the fields from `sequence` to `peer`, `hops_left` and `is_control`.
struct Record {
  std::int64_t time_ns;
  std::uint32_t sequence;  // the number of the frame among those from its sender to its receiver with so many hops left
  std::uint32_t bytes;     // of header, payload and tail
  std::uint32_t messages;
  std::uint32_t handler;
  std::uint16_t peer;  // posted: the receiver; taken: the sender
  Kind kind;
  Phase phase;
  std::uint8_t hops_left;
  std::uint8_t is_control;  // 0 or 1
  std::uint8_t is_foreign;  // 1: posted for another PE of the process, which is its sender for the receiver
  std::uint8_t reserved;
};
static_assert(sizeof(Record) == 32 && offsetof(Record, peer) == 24 && offsetof(Record, hops_left) == 28 &&
              std::is_trivially_copyable_v<Record>);

inline constexpr std::size_t hop_classes = 8;  // of hops_left; the last holds all larger ones

}  // namespace headway::model::trace
