// SPDX-License-Identifier: BSD-3-Clause
/// The state that each PE shows to other PEs and to the supervisor: phase, counts and failure. It lies in the PE's
/// board page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/transport/endpoint.hpp>

namespace headway::report {

/// The activity of a PE, as far as the library knows.
enum class Phase : std::uint32_t {
  starting,
  computing,
  handling,
  sending,
  quiescing,
  collective,
  epoch,
  condition,
  future,
  finished
};

/// Whether a PE in that phase waits for other PEs.
inline bool waits(Phase phase) {
  return phase == Phase::sending || phase == Phase::quiescing || phase == Phase::collective || phase == Phase::epoch ||
         phase == Phase::condition || phase == Phase::future;
}

/// The predicate for reports, after "PE 3".
inline const char* describe(Phase phase) {
  switch (phase) {
    case Phase::starting: return "is starting";
    case Phase::handling: return "runs a handler";
    case Phase::sending: return "waits in a send";
    case Phase::quiescing: return "waits in quiesce()";
    case Phase::collective: return "waits in a blocking collective";
    case Phase::epoch: return "waits for the end of an epoch";
    case Phase::condition: return "waits in wait_until()";
    case Phase::future: return "waits for a future";
    case Phase::finished: return "has finished";
    default: return "is outside the library";
  }
}

/// The cause of an early end of a run. The numbers are exit statuses.
enum class FailureKind : std::int32_t { none = 0, settings = 120, failed = 121, stalled = 122, undelivered = 123 };

/// The handler that ran last, and the sender of its frame.
struct LastHandler {
  std::uint32_t number = 0;  // handler number + 1; 0: no handler has run
  std::uint32_t source = 0;
};
static_assert(std::atomic<LastHandler>::is_always_lock_free);

inline constexpr std::size_t handler_names_max = 24;

/// Holds a PE's contributions to blocking collectives, for PEs that can read its board.
struct MeetingPlace {
  struct alignas(128) Slot {
    static constexpr std::size_t bytes_max = 112;
    std::atomic<std::uint64_t> round;  // written last
    std::uint64_t bytes;
    std::byte value[bytes_max];
  } slots[2];
  alignas(128) std::atomic<std::uint32_t> asks;
};
static_assert(sizeof(MeetingPlace::Slot) == 128);

// PeBoard::wanted has the numbers of two requests, so that the PE looks at one word:
//
//     bit 31 ... 8: report | bit 7 ... 0: statistics, from 1 on; 0: none so far
inline constexpr std::uint32_t report_numbers = 1 << 24, statistics_numbers = 255;
constexpr std::uint32_t report_in(std::uint32_t wanted) { return wanted >> 8; }
constexpr std::uint32_t statistics_in(std::uint32_t wanted) { return wanted & 0xff; }
constexpr std::uint32_t with_report(std::uint32_t wanted, std::uint32_t number) {
  return (number % report_numbers) << 8 | statistics_in(wanted);
}
constexpr std::uint32_t with_statistics(std::uint32_t wanted, std::uint32_t number) {
  return report_in(wanted) << 8 | ((number - 1) % statistics_numbers + 1);
}

struct PeBoard {
  std::atomic<Phase> phase;
  std::atomic<std::uint32_t> waiting_for;  // the PE that it waits for, or no_pe
  std::atomic<std::uint64_t> activity;     // grows when the PE handles or posts frames of messages
  std::atomic<std::uint64_t> created;      // messages, updated when the PE waits or reports
  std::atomic<std::uint64_t> handled;
  std::atomic<std::uint64_t> held_frames;      // frames that wait for memory or a handler, updated like `created`
  std::atomic<std::uint64_t> frames_received;  // from all PEs, including control messages
  std::atomic<LastHandler> last_handler;
  std::atomic<std::uint32_t> wanted;            // the last requests; requesters write it
  std::atomic<std::int32_t> thread;             // kernel thread id of the PE's thread; 0: unknown
  std::atomic<std::uint32_t> process_finished;  // 1: the whole process has left run(), and `status` is valid
  std::int32_t status;
  std::atomic<FailureKind> failure;
  std::atomic<std::uint32_t> statistics_given;  // the request that `statistics` answers, written last
  std::atomic<std::uint64_t> statistics[10];    // PeStatistics
  char failure_text[8000];
  char program[1024];                         // path of the program; in the board of the process's first PE
  char build_identity[64];                    // its build, likewise
  char handler_names[handler_names_max][96];  // by number, written before the handler first runs
  MeetingPlace meeting;
};

inline constexpr std::uint32_t no_pe = 0xffffffff;

inline PeBoard& board_of(transport::Endpoint& endpoint, std::size_t pe) {
  return *reinterpret_cast<PeBoard*>(endpoint.shared_memory().board(pe).data());
}

}  // namespace headway::report
