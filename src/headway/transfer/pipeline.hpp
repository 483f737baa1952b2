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

/// Lies in the owner's pool. Each line is written by one of the two processes alone.
///
///     | written: bytes that may be read |    | consumed: 1 when the reader has copied all |    | content ...
///       by the owner                           by the reader
struct PipelinedContent {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> consumed;

  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(PipelinedContent) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

/// The owner's side: content one after the other in a ring of memory. The memory of the oldest is free again when its
/// reader has consumed it.
///
///     begin() -- write() ----------> written = all --> consumed = 1
///                reader: read() ... as far as is written
class PipelineRing {
 public:
  /// `memory` begins a cache line, and outlives the ring and its readers.
  explicit PipelineRing(std::span<std::byte> memory) : memory_(memory) {}

  /// Memory for so many bytes, of which none is written. nullptr, and no change, while the ring is too full.
  PipelinedContent* begin(std::size_t bytes);
  /// Writes all of `from`, by `copy`, in steps as `sizes` has them. Never waits.
  static void write(PipelinedContent& content, std::span<const std::byte> from, LargeCopy copy,
                    const SizeConstants& sizes);

 private:
  struct Chunk {
    std::size_t at, bytes;
  };

  PipelinedContent* content(const Chunk& chunk) const {
    return reinterpret_cast<PipelinedContent*>(memory_.data() + chunk.at);
  }

  std::span<std::byte> memory_;
  std::size_t next_ = 0;
  std::deque<Chunk> chunks_;  // not consumed yet, in the order of the ring
};

/// The ring of one PE, in its pool, twice as large as a core's own cache so that lines have left it before they are
/// written again (docs/decisions/0023): 1 to 4 MiB, allocated at the first use.
class Pipeline {
 public:
  explicit Pipeline(Pe& pe) : pe_(&pe) {}

  /// nullptr also where no other process has the pool mapped.
  PipelinedContent* begin(std::size_t bytes);
  /// The place of `content` in the pool.
  std::uint64_t offset(const PipelinedContent& content) const;

 private:
  void begin_ring();

  Pe* pe_;
  bool begun_ = false;
  std::optional<PipelineRing> ring_;
};

/// The reader's side of one content.
class PipelinedRead {
 public:
  PipelinedRead(PipelinedContent& content, std::size_t bytes, std::byte* to, LargeCopy copy)
      : content_(&content), bytes_(bytes), to_(to), copy_(copy) {}

  /// Copies as much as is written; looks again up to `looks` times before it gives up. True when all has been copied:
  /// the memory is the owner's again. FormatError where more is said to be written than was asked for.
  bool read(unsigned looks);

 private:
  PipelinedContent* content_;
  std::size_t bytes_, done_ = 0;
  std::byte* to_;
  LargeCopy copy_;
};

}  // namespace headway::transfer
