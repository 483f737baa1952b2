// SPDX-License-Identifier: BSD-3-Clause
/// Memory that the network reads on behalf of other processes.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace headway::transport {

/// A region that NetworkMemory::expose() has exposed.
class ExposedMemory;

/// The network's access to memory, for one PE's thread alone.
class NetworkMemory {
 public:
  NetworkMemory() = default;
  NetworkMemory(const NetworkMemory&) = delete;
  NetworkMemory& operator=(const NetworkMemory&) = delete;

  /// True if this PE may read exposed memory of `pe`, and `pe` that of this PE.
  virtual bool reaches(std::size_t pe) const = 0;

  /// Exposes `memory` to PEs of other processes, and writes the key that they need to `key`. The memory must stay valid
  /// until withdraw() or the end of the run. Slow: the system may have to pin it. nullptr if the network refuses it.
  [[nodiscard]] virtual ExposedMemory* expose(std::span<const std::byte> memory, std::vector<std::byte>& key) = 0;
  virtual void withdraw(ExposedMemory* exposed) = 0;

  /// Begins to copy the first `bytes` bytes of memory that `pe` has exposed to `to`. A later Endpoint::poll() calls
  /// `done` when they have arrived. False if the network refuses the key; nothing has changed then. Throws SystemError,
  /// here or in a later poll(), when the process of `pe` is lost. The caller knows that the memory is still exposed.
  [[nodiscard]] virtual bool read(std::size_t pe, std::span<const std::byte> key, std::byte* to, std::size_t bytes,
                                  std::function<void()> done) = 0;

 protected:
  ~NetworkMemory() = default;
};

}  // namespace headway::transport
