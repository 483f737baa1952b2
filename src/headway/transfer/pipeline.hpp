/// Content on its way through memory that two processes of a host have mapped, read while it is being written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <headway/am/pe.hpp>
#include <headway/base/copy_large.hpp>
#include <headway/base/size_constants.hpp>
#include <optional>
#include <span>

namespace headway::transfer {

/// Of its owner's pool. Each line is written by one of the two alone, but for content that its owner drops.
///
///     | id | written |           | taken |  | content ...
///       owner: 0 when dropped;   reader: 1 when it has copied all
///       bytes that may be read
struct PipelinedContent {
  alignas(64) std::atomic<std::uint64_t> id;
  std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> taken;

  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(PipelinedContent) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

/// The owner's side: content one after the other in a ring of memory, which has room for more when what is oldest has
/// been taken.
///
///     begin() -- write() ----------> written = all --> taken = 1, its room is free
///                reader: read() ... as far as is written
class PipelineRing {
 public:
  /// `memory` begins a line, and outlives this and its readers.
  explicit PipelineRing(std::span<std::byte> memory) : memory_(memory) {}

  /// Room for so much, of which nothing is written. nullptr while there is not as much: nothing has changed then.
  PipelinedContent* begin(std::size_t bytes, std::uint64_t id);
  /// Goes on with it, by `copy`, in steps as `sizes` has them, until so many bytes or more are written. Never waits.
  static void write(PipelinedContent& content, std::span<const std::byte> from, LargeCopy copy,
                    const SizeConstants& sizes, std::size_t until = ~std::size_t(0));
  /// Nobody reads the one with this id any more. False where its reader has taken it.
  bool drop(std::uint64_t id);

 private:
  struct Chunk {
    std::size_t at, bytes;
    std::uint64_t id;
  };

  PipelinedContent* content(const Chunk& chunk) const {
    return reinterpret_cast<PipelinedContent*>(memory_.data() + chunk.at);
  }

  std::span<std::byte> memory_;
  std::size_t next_ = 0;
  std::deque<Chunk> chunks_;  // that are being read, in the order of the ring
};

/// That of one PE, in its pool: as large as what has left a core's own cache by the time that it is used again
/// (docs/decisions/0023), 1 to 4 MiB, taken with the first use.
class Pipeline {
 public:
  explicit Pipeline(Pe& pe) : pe_(&pe) {}

  /// nullptr also where no other process could read it.
  PipelinedContent* begin(std::size_t bytes, std::uint64_t id);
  bool drop(std::uint64_t id) { return ring_->drop(id); }
  /// Where that is in the pool.
  std::uint64_t offset(const PipelinedContent& content) const;

 private:
  void begin_ring();

  Pe* pe_;
  bool begun_ = false;
  std::optional<PipelineRing> ring_;
};

/// The reader's side of one.
class PipelinedRead {
 public:
  /// `id` as PipelineRing::begin() was given it.
  PipelinedRead(PipelinedContent& content, std::uint64_t id, std::size_t bytes, std::byte* to, LargeCopy copy)
      : content_(&content), id_(id), bytes_(bytes), to_(to), copy_(copy) {}

  enum class Found : std::uint8_t {
    part,
    all,   // has been copied, and the memory is the owner's again
    gone,  // the owner has dropped it
  };
  /// Copies what is there. Looks `looks` times in vain before it has found a part only. FormatError where more is said
  /// to be written than it holds.
  Found read(unsigned looks);

 private:
  PipelinedContent* content_;
  std::uint64_t id_;
  std::size_t bytes_, done_ = 0;
  std::byte* to_;
  LargeCopy copy_;
};

}  // namespace headway::transfer
