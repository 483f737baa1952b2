// SPDX-License-Identifier: BSD-3-Clause
/// Messages between processes that belong to no PE.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace headway::transport {

/// The services of one process, for any of its threads. Messages are few and short, because they need no credit. They
/// are not counted for quiescence and arrive in any order.
class Services {
 public:
  /// Handles a message; `bytes` is valid until it returns.
  using Take = std::function<void(std::size_t process, std::span<const std::byte> bytes)>;

  Services() = default;
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;
  virtual ~Services() = default;

  /// Sends to another process. Never waits, and calls no function.
  virtual void send(std::size_t process, std::span<const std::byte> bytes) = 0;
  /// Sets the function that gets arrived and arriving messages, one at a time, in any thread that moves frames. It may
  /// send; an exception from it ends the run. Empty: messages wait. Returns when no call of the old function runs.
  virtual void set_take(Take take) = 0;
  /// Wakes all sleeping PEs of this host.
  virtual void wake_host() = 0;
};

}  // namespace headway::transport
