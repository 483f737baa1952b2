// SPDX-License-Identifier: BSD-3-Clause
/// Memory that the PEs of a host share.
#pragma once

#include <cstddef>
#include <headway/transport/shared_by_process.hpp>
#include <span>

namespace headway::transport {

/// The shared memory of one PE's endpoint. For that PE's thread alone.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// The pool of `pe` at its address in this process, zero until a program writes it. Empty if this PE cannot reach it
  /// by load and store. A PE reaches its own pool, unless the system has no memory for pools. Untouched pages cost no
  /// memory. Throws SystemError.
  virtual std::span<std::byte> pool(std::size_t /*pe*/) { return {}; }

  /// The board of `pe`, which every PE of its host and the supervisor can read. The layer above defines its content.
  /// Zero at first.
  virtual std::span<std::byte> board(std::size_t pe) = 0;

  /// True if all PEs of the run reach all boards, so that they may communicate there. The same on all PEs.
  virtual bool shares_boards() const { return false; }

  /// Objects that the PEs of this process have in common. nullptr if the process shares none.
  virtual SharedByProcess* shared_by_process() { return nullptr; }

 protected:
  ~SharedMemory() = default;
};

}  // namespace headway::transport
