// SPDX-License-Identifier: BSD-3-Clause
/// The record of each process of the run in shared memory: its pid, and whether it waits for the others at the start
/// of run().
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <headway/report/board.hpp>
#include <headway/transport/local/segment.hpp>

namespace headway::report {

/// It lies at the end of the board page of the process's first PE:
///
///     | PeBoard | ... | ProcessRecord (cache line) |
struct alignas(local::cache_line) ProcessRecord {
  std::atomic<std::int32_t> pid;             // 0: no process has attached
  std::atomic<std::uint32_t> meeting;        // 1 while it waits for the other processes
  std::atomic<std::uint64_t> pid_namespace;  // the namespace in which `pid` is valid
  std::atomic<std::int32_t> stack_signal;    // signal that makes its threads write their stacks; 0: none
};
static_assert(sizeof(ProcessRecord) == local::cache_line);
static_assert(sizeof(PeBoard) + sizeof(ProcessRecord) <= local::board_bytes);

inline ProcessRecord& process_record_of(const local::Segment& segment, std::size_t first_pe) {
  return *reinterpret_cast<ProcessRecord*>(segment.board(first_pe).data() + local::board_bytes - sizeof(ProcessRecord));
}

/// A number for this process's pid namespace; 0 if unknown. A pid is valid only within its namespace.
inline std::uint64_t pid_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

inline PeBoard& board_of(const local::Segment& segment, std::size_t pe) {
  return *reinterpret_cast<PeBoard*>(segment.board(pe).data());
}

}  // namespace headway::report
