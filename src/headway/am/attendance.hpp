/// Which process holds a process number of the run, and whether it waits for the others at run()'s start.
#pragma once

#include <atomic>
#include <cstdint>
#include <headway/am/board.hpp>
#include <headway/transport/local/segment.hpp>

namespace headway::am {

/// Lies at the end of the board pages of a process's first PE:
///
///     | PeBoard | ... | Attendance (cache line) |
struct alignas(local::cache_line) Attendance {
  std::atomic<std::int32_t> pid;       // 0: nobody
  std::atomic<std::uint32_t> meeting;  // 1 while it waits for the others
};
static_assert(sizeof(Attendance) == local::cache_line);
static_assert(sizeof(PeBoard) + sizeof(Attendance) <= local::board_bytes);

inline Attendance& attendance_of(const local::Segment& segment, std::size_t first_pe) {
  return *reinterpret_cast<Attendance*>(segment.board(first_pe).data() + local::board_bytes - sizeof(Attendance));
}

inline PeBoard& board_of(const local::Segment& segment, std::size_t pe) {
  return *reinterpret_cast<PeBoard*>(segment.board(pe).data());
}

}  // namespace headway::am
