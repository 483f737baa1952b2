/// A processing element as programs see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/transport/frame.hpp>

namespace headway {

namespace am {
class Engine;
}

/// One thread that runs handlers, one at a time. Made by run(); touched by its own thread only.
class Pe {
 public:
  Pe(am::Engine& engine, PeId id, std::size_t size) : engine_(&engine), id_(id), size_(size) {}
  Pe(const Pe&) = delete;
  Pe& operator=(const Pe&) = delete;

  PeId id() const { return id_; }
  std::size_t size() const { return size_; }

  /// Runs handlers for what has arrived and posts what is due. Returns whether anything moved. Never blocks.
  /// UsageError inside a handler.
  bool progress();

  /// Collective: flushes everything and returns once no message is queued, buffered, in flight or being handled
  /// anywhere; runs handlers meanwhile. What another PE sends after it returned there is not handled here before it
  /// returned here. Returns how many messages all PEs together handled since the last time. UsageError inside a
  /// handler.
  std::uint64_t quiesce();

  /// For the layers of the library.
  am::Engine& engine() { return *engine_; }

 private:
  am::Engine* engine_;
  PeId id_;
  std::size_t size_;
};

/// While one is alive, no handler runs on this PE: for loops over what handlers change. Sends meanwhile never wait;
/// what finds no room is spilled. quiesce() and other waiting calls are a UsageError.
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
