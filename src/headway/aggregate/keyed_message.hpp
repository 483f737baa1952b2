/// A message whose content stays with its sender until it is wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/part_memory.hpp>
#include <headway/rma/buffer_key.hpp>
#include <vector>

namespace headway::aggregate {

/// Before such a message in its frame, padded to the message's alignment.
struct KeyHeader {
  rma::BufferKey key;
  std::uint64_t argument;  // which of the message's arguments it is the content of; that is an empty view
  std::uint64_t checksum;  // of the content; 0: nobody checks
};
static_assert(sizeof(KeyHeader) == 80);

/// One that has arrived.
struct KeyedMessage {
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  KeyHeader header;
  const std::byte* at;  // the message, without its content
  std::size_t bytes;
  std::size_t elements = 0;  // of the content
  std::byte* content = nullptr;
  Mapping memory;  // that the content is copied to, where the program gives none
  std::vector<Line> kept;

  /// The message, which outlives its frame then.
  void keep();
};

/// FormatError: content of `bytes` is not a multiple of elements of `element_bytes`.
[[noreturn]] void refuse_content(std::uint64_t bytes, std::size_t element_bytes);

}  // namespace headway::aggregate
