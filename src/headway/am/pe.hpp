// SPDX-License-Identifier: BSD-3-Clause
/// A processing element as programs see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/transport/frame.hpp>

namespace headway {

namespace am {
class Engine;
}

/// One thread that runs handlers, one at a time. run() makes it; only its own thread uses it.
class Pe {
 public:
  Pe(am::Engine& engine, PeId id, std::size_t size) : engine_(&engine), id_(id), size_(size) {}
  Pe(const Pe&) = delete;
  Pe& operator=(const Pe&) = delete;

  PeId id() const { return id_; }
  std::size_t size() const { return size_; }

  /// Runs handlers for arrived messages, and posts buffers that are due. Returns whether anything moved. Never
  /// blocks. UsageError in a handler.
  bool progress();

  /// Collective: posts all buffers, and returns once no message is queued, buffered, in flight or being handled
  /// anywhere. Runs handlers meanwhile. Messages that another PE sends after its quiesce() are handled here only
  /// after this quiesce() has returned. Returns the number of messages that all PEs have handled since the last
  /// quiescence. UsageError in a handler.
  std::uint64_t quiesce();

  /// For the layers of the library.
  am::Engine& engine() { return *engine_; }

 private:
  am::Engine* engine_;
  PeId id_;
  std::size_t size_;
};

/// While it exists, no handler runs on this PE: for loops over data that handlers change. Sends never wait meanwhile;
/// frames beyond the budget are spilled. quiesce() and other waiting calls throw UsageError.
class [[nodiscard]] DeferHandlers {
 public:
  explicit DeferHandlers(Pe& pe);
  DeferHandlers(const DeferHandlers&) = delete;
  DeferHandlers& operator=(const DeferHandlers&) = delete;
  ~DeferHandlers();

 private:
  Pe* pe_;
};

}  // namespace headway
