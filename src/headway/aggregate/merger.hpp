// SPDX-License-Identifier: BSD-3-Clause
/// With pp: merges a PE's messages for other processes with those of the other PEs of its process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/aggregate/route.hpp>
#include <headway/aggregate/shared_buffer.hpp>
#include <headway/am/engine.hpp>
#include <map>
#include <memory>
#include <vector>

namespace headway::aggregate {

/// A frame that PEs of one process have filled together, without its header.
struct MergedFrame {
  am::OpenFrame frame;
  std::size_t owner = 0;  // the PE that owns its memory
  SharedBuffer::Content content;
};

/// The shared buffers of an aggregator of one process: one for each slot that leads to other processes.
class ProcessBuffers {
 public:
  struct alignas(64) Place {
    explicit Place(SharedBuffer::Capacity capacity) : buffer(word, capacity) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    std::atomic<std::uint64_t> word{0};
    SharedBuffer buffer;
    am::OpenFrame
        frame;  // owned, in this order, by the PE that opens the buffer, its writers, and the PE that posts it
    std::size_t owner = 0;
  };

  /// For slots of all levels but the last; an entry of a level has entry_bytes[level]. Frames have at most
  /// `frame_bytes_most`, of which `outside` are not content.
  ProcessBuffers(const Route& route, std::size_t pes, std::size_t frame_bytes_most, std::size_t outside,
                 const std::vector<std::size_t>& entry_bytes);

  Place& operator[](std::uint32_t slot) { return *places_[slot]; }
  std::size_t size() const { return places_.size(); }
  /// The size of every frame.
  std::size_t frame_bytes() const { return frame_bytes_; }
  /// The number of open frames in a PE's memory. Relaxed: only a count.
  std::atomic<std::uint32_t>& open_frames(std::size_t pe) { return open_frames_[pe % open_frames_.size()]; }

 private:
  std::size_t frame_bytes_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<std::atomic<std::uint32_t>> open_frames_;  // by PE of the process
};

/// A PE fills its own small buffers without synchronization. Instead of posting one, it appends the content to the
/// buffer of its process for that hop, if that buffer has room at once. The PE that finds the process's buffer full
/// posts it. If it does not become full, any PE with messages in it posts it, a little later than a buffer of its own.
/// Used on the PE's thread only.
class Merger {
 public:
  struct OwnBuffer {
    std::uint32_t slot;
    am::ScopeId scope;
    const std::byte* payload;
    const std::byte* tail_end;
    std::size_t payload_bytes, tail_bytes, count;
    std::int64_t due;
  };
  using Opened = std::function<void(std::uint32_t slot)>;
  using Post = std::function<void(std::uint32_t slot, const MergedFrame&, am::FlushReason)>;

  /// `padding` bytes lie before the first message of a frame. opened() is told of a frame that this PE has claimed for
  /// others to fill, too; post() sends a merged one.
  Merger(am::Engine& engine, const Route& route, std::shared_ptr<ProcessBuffers> buffers, std::size_t padding,
         Opened opened, Post post);
  Merger(const Merger&) = delete;
  Merger& operator=(const Merger&) = delete;

  /// Whether the content of the PE's own buffer has been copied to a buffer of the process: its messages will go from
  /// there.
  bool merge(const OwnBuffer& own, am::FlushReason reason);

  /// Posts buffers with messages of this PE: at once for `full`, else after a time in which other PEs may join.
  bool flush(am::FlushReason reason);
  bool flush_now(am::FlushReason reason);
  void flush_scope_soon(am::ScopeId scope, am::FlushReason reason);

  /// Of this PE's memory, in buffers of the process that are open.
  std::uint64_t open_bytes() const {
    return buffers_->open_frames(engine_->id()).load(std::memory_order_relaxed) * buffers_->frame_bytes();
  }

  std::int64_t due() const { return due_; }
  bool flush_due(std::int64_t now);

  /// Adds this PE's messages in buffers of the process to the counts of their target PEs.
  void count_open(std::map<std::uint32_t, std::uint64_t>& by_target) const;

 private:
  /// Messages of this PE in a buffer of the process.
  struct Pending {
    std::uint32_t slot;
    std::uint8_t generation;  // of the buffer
    am::ScopeId scope;
    am::FlushReason reason;
    std::uint64_t messages;
    std::int64_t due;
  };

  bool open(const OwnBuffer& own, am::FlushReason reason);
  void write(const ProcessBuffers::Place& place, const SharedBuffer::Content& before, const OwnBuffer& own);
  void record(const OwnBuffer& own, std::uint8_t generation, am::FlushReason reason);
  void close(std::uint32_t slot, std::uint8_t generation, am::FlushReason reason);
  void post(std::uint32_t slot, const SharedBuffer::Content& content, am::FlushReason reason);
  void linger(Pending& pending, am::FlushReason reason, std::int64_t until);
  template <class Which>
  bool close_those(Which which);

  am::Engine* engine_;
  const Route* route_;
  std::shared_ptr<ProcessBuffers> buffers_;
  std::size_t padding_;
  Opened opened_;
  Post post_;
  std::vector<Pending> pending_;  // at most one for each slot
  std::int64_t due_ = am::never;  // no later than that of any pending one
};

}  // namespace headway::aggregate
