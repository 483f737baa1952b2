/// Messages between processes that belong to no PE.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace headway {

/// Of one process, for any of its threads. Few messages and short ones: they ask for no credit. Neither counted nor in
/// order.
class Services {
 public:
  /// Gets the bytes, which are its own until it returns.
  using Take = std::function<void(std::size_t process, std::span<const std::byte> bytes)>;

  Services() = default;
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;
  virtual ~Services() = default;

  /// To another process. Never waits, and runs nothing.
  virtual void send(std::size_t process, std::span<const std::byte> bytes) = 0;
  /// From now on `take` gets what comes, and what has come, one after the other, in whichever thread moves frames; it
  /// may send. What it throws is thrown there, and ends the run. Empty: what comes waits; returns when none runs.
  virtual void set_take(Take take) = 0;
  /// Lets PEs of this host that sleep look for what has changed.
  virtual void wake_host() = 0;
};

}  // namespace headway
