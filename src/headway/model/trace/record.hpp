// SPDX-License-Identifier: BSD-3-Clause
/// The file that one PE of a traced run writes: a header, a table of names, and a ring of records of a fixed size,
/// ascending in time.
///
///   byte 0       8         12   16    20       24       28      32        40        48      72         88     96
///        | magic | version | PE | PEs | header | record | clock | written | records | costs | began at | host | ...
///                                        bytes    bytes                     _max                        pid
///
///        | header | names, 64 bytes each | record | record | ... up to records_max
///        0        names_begin            header_bytes
///
/// Record i, counted from 0, lies at place i % records_max, and `written` counts them. Readers use `written`, never the
/// length of the file: so a writer may map the file and fill it while the run goes on. TracedEndpoint writes it at the
/// end, without names, `host`, `process` and `began`, and makes no records of the kinds phase_begins, phase_ends,
/// flushed and mark.
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
inline constexpr std::uint32_t version = 2;
inline constexpr const char* file_name_format = "pe-{}.trace";

enum class Clock : std::uint32_t { real, simulated };

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t pe, pes;
  std::uint32_t header_bytes, record_bytes;  // of the writer: at least those of this version
  Clock clock;
  std::uint64_t written;                            // records that the PE made: advanced after each one is stored
  std::uint64_t records_max;                        // places of the ring; it has lost written - records_max records
  double overhead_ns, latency_ns, gap_per_byte_ns;  // the transport's own costs; overhead: of sender and receiver
  std::uint64_t began_ns;                           // since 1970, when the run's clock was at began_at_ns
  std::int64_t began_at_ns;
  std::uint32_t host;         // number of the PE's host
  std::uint32_t process;      // its pid there
  char dials[64];             // of the traced run, as HEADWAY_DIAL; ends with 0
  char transport[16];         // name; ends with 0
  std::uint32_t names_begin;  // byte of the file
  std::uint32_t names;        // entries: advanced after each one is stored
  std::uint64_t reserved[9];
};
static_assert(sizeof(Header) == 256 && offsetof(Header, written) == 32 && offsetof(Header, overhead_ns) == 48 &&
              offsetof(Header, began_ns) == 72 && offsetof(Header, dials) == 96 &&
              offsetof(Header, names_begin) == 176 && std::is_trivially_copyable_v<Header>);

/// The kind of thing that has a name. Each kind has its own numbers.
enum class NameKind : std::uint16_t {
  phase = 1,  // of the program
  handler,    // an aggregator, or another one; the number is that of FrameHeader::handler
  mark,
};

struct NameEntry {
  NameKind kind;
  std::uint16_t number;
  char text[60];  // ends with 0
};
static_assert(sizeof(NameEntry) == 64 && std::is_trivially_copyable_v<NameEntry>);
inline constexpr std::size_t names_max = 512;

enum class Kind : std::uint8_t {
  begin = 1,     // of the PE's trace
  posted,        // the transport is about to take a frame; it has not refused it
  taken,         // a frame has been taken from the transport: its handler begins
  found_none,    // the first poll that found no frame: after a frame, the end of its handler; in a wait, idleness
  wait_begins,   // the first poll of a wait; `phase` is its reason
  wait_ends,     // the program goes on
  end,           // all messages of the run are handled
  phase_begins,  // `handler` is the number of its name; phases nest
  phase_ends,
  flushed,  // directly before the `posted` of a buffer of an aggregator: `bytes` is the age in ns of its first message,
            // `detail` the reason
  mark,     // `handler` is the number of its name; `sequence` pairs the begin and the end of one thing
  polled,   // a poll of the working program that found no frame; not each one
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

/// Instants, or the two ends of something that other records may lie between.
enum class MarkEnd : std::uint8_t { instant, begin, end };

/// The names of marks.
inline constexpr const char* mark_names[] = {
    "transfer",    // of content, here and until it is complete on this PE
    "collective",  // one that does not block
    "element",     // of a collection, that moves to the peer
};
enum class Mark : std::uint16_t { transfer, collective, element };

/// 32 bytes. Only frames have the fields from `sequence` to `peer`, `hops_left` and `is_control`; other kinds use
/// some of them as Kind says.
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
  std::uint8_t detail;      // flushed: 1 + the FlushReason; mark: MarkEnd
};
static_assert(sizeof(Record) == 32 && offsetof(Record, peer) == 24 && offsetof(Record, hops_left) == 28 &&
              std::is_trivially_copyable_v<Record>);

inline constexpr std::size_t hop_classes = 8;  // of hops_left; the last holds all larger ones

}  // namespace headway::model::trace
