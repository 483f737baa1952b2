// SPDX-License-Identifier: BSD-3-Clause
/// Reassembly of messages that arrive in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/copy_counts.hpp>
#include <headway/aggregate/part_memory.hpp>
#include <headway/am/engine.hpp>
#include <map>
#include <span>
#include <utility>

namespace headway::aggregate {

/// Before each part of a message that is too large for one frame, or for its ordered route. Its 32 bytes keep the part
/// aligned.
struct PartHeader {
  std::uint64_t message;  // numbered by the source
  std::uint64_t total;    // bytes of the whole message
  std::uint64_t offset;   // of this part
  std::uint64_t bytes;    // in this part
};
static_assert(sizeof(PartHeader) == 32);

/// The incomplete messages of one aggregator on one PE, and the memory for them. Used on the PE's thread.
class Reassembly {
 public:
  /// `copies` counts the copied parts. `engine` and `copies` outlive it.
  Reassembly(am::Engine& engine, CopyCounts& copies);

  /// Copies a part, a PartHeader and its bytes, to its message. Memory is at most a few times the bytes that have
  /// arrived. Returns the whole message after its last part, valid until release_whole(); before that an empty span.
  /// FormatError for an invalid part.
  std::span<const std::byte> add(std::size_t source, const std::byte* part, std::size_t bytes);
  void release_whole();

  /// Memory for the content of one message. give() keeps it for the next one.
  Mapping take(std::size_t bytes);
  void give(Mapping memory);
  /// When kept memory is to be released by forget(); am::never if there is none.
  std::int64_t due() const { return memory_.due(); }
  void forget();

 private:
  struct Partial {
    Mapping memory;  // received <= its bytes
    std::uint64_t total = 0, received = 0;
  };

  void make_room(Partial& partial, std::uint64_t bytes);
  /// change() takes or returns part memory. Kept memory counts as an open buffer, so that the engine asks for its due()
  /// time.
  template <class Change>
  void change_memory(Change change);

  am::Engine* engine_;
  CopyCounts* copies_;
  PartMemory memory_;
  std::map<std::pair<std::size_t, std::uint64_t>, Partial> partial_;  // by source and number of the message
  Partial whole_;
};

}  // namespace headway::aggregate
