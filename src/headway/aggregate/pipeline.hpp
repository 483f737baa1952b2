/// Content on its way through memory that two processes of a host have mapped, read while it is being written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <headway/am/pe.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/copy_large.hpp>
#include <span>

namespace headway::aggregate {

/// Of its owner's pool. Each word is written by one of the two alone, and has a line of its own.
///
///     | written |  | taken |  | content ...
///       owner:       reader: 1 when it has copied all
///       bytes that may be read
struct PipelinedContent {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> taken;

  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(PipelinedContent) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

/// The owner's side, of one PE: a ring in its pool, as large as what has left a core's own cache by the time that it is
/// used again (docs/decisions/0023), taken with the first use. 1 to 4 MiB.
class Pipeline {
 public:
  explicit Pipeline(Pe& pe) : pe_(&pe) {}

  /// Room for so much, of which nothing is written. nullptr where no other process could read it, or where those
  /// before it have not been taken: nothing has changed then.
  PipelinedContent* begin(std::size_t bytes);
  /// Where that is in the pool.
  std::uint64_t offset(const PipelinedContent& content) const;
  /// All of it. Never waits.
  static void write(PipelinedContent& content, std::span<const std::byte> from, LargeCopy copy);

 private:
  struct Chunk {
    std::size_t at, bytes;
  };

  void begin_ring();

  Pe* pe_;
  bool begun_ = false;
  std::span<std::byte> ring_;
  std::size_t next_ = 0;
  std::deque<Chunk> chunks_;  // that are being read, in the order of the ring
};

/// The reader's side of one.
class PipelinedRead {
 public:
  PipelinedRead(PipelinedContent& content, std::size_t bytes, std::byte* to)
      : content_(&content), bytes_(bytes), to_(to) {}

  /// Copies what is there. Looks `looks` times in vain before it returns false, else true: all has been copied, and the
  /// memory is the owner's again. FormatError where more is said to be written than it holds.
  bool read(unsigned looks);

 private:
  PipelinedContent* content_;
  std::size_t bytes_, done_ = 0;
  std::byte* to_;
};

}  // namespace headway::aggregate
