// SPDX-License-Identifier: BSD-3-Clause
/// Transfers through memory that two processes of a host have mapped: one writes while the other reads.
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

/// The header of one content in the owner's pool. Only one of the two processes writes each cache line.
///
///     | written: bytes that may be read |    | consumed: 1 when the reader has copied all |    | content ...
///       by the owner                           by the reader
struct PipelinedContent {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> consumed;

  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(PipelinedContent) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

/// The owner's side: a ring of content. The memory of the oldest one is free again when its reader has consumed it.
///
///     begin() -- write() ----------> written = all --> consumed = 1
///                reader: read() ... as far as is written
class PipelineRing {
 public:
  /// `memory` is aligned to a cache line, and outlives the ring and its readers.
  explicit PipelineRing(std::span<std::byte> memory) : memory_(memory) {}

  /// Memory for `bytes`, none of them written. nullptr, without a change, if the ring has too little free memory.
  PipelinedContent* begin(std::size_t bytes);
  /// Writes all of `from` by `copy`, in steps of the lengths in `sizes`. Never waits.
  static void write(PipelinedContent& content, std::span<const std::byte> from, base::LargeCopy copy,
                    const base::SizeConstants& sizes);

 private:
  struct Chunk {
    std::size_t at, bytes;
  };

  PipelinedContent* content(const Chunk& chunk) const {
    return reinterpret_cast<PipelinedContent*>(memory_.data() + chunk.at);
  }

  std::span<std::byte> memory_;
  std::size_t next_ = 0;
  std::deque<Chunk> chunks_;  // not consumed, in the order of the ring
};

/// The ring of one PE, in its pool, allocated at the first use: 1 to 4 MiB. It is twice as large as a core's own cache,
/// so that lines have left the cache before they are written again (docs/decisions/0023).
class Pipeline {
 public:
  explicit Pipeline(Pe& pe) : pe_(&pe) {}

  /// Also nullptr if no other process has mapped the pool.
  PipelinedContent* begin(std::size_t bytes);
  /// The offset of `content` in the pool.
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
  PipelinedRead(PipelinedContent& content, std::size_t bytes, std::byte* to, base::LargeCopy copy)
      : content_(&content), bytes_(bytes), to_(to), copy_(copy) {}

  /// Copies the written bytes, and polls up to `looks` times for more. True when all is copied: the memory then belongs
  /// to the owner again. FormatError if the owner states more bytes than were requested.
  bool read(unsigned looks);

 private:
  PipelinedContent* content_;
  std::size_t bytes_, done_ = 0;
  std::byte* to_;
  base::LargeCopy copy_;
};

}  // namespace headway::transfer
