// SPDX-License-Identifier: BSD-3-Clause
/// A message with zero-copy content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/part_memory.hpp>
#include <headway/rma/buffer_key.hpp>
#include <vector>

namespace headway::aggregate {

/// Before the message in its frame, padded to the message's alignment.
struct KeyHeader {
  rma::BufferKey key;
  std::uint64_t argument;  // index of the argument that gets the content; an empty view in the message
  std::uint64_t checksum;  // of the content; 0: not checked
};
static_assert(sizeof(KeyHeader) == 80);

/// The message after its arrival.
struct KeyedMessage {
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  KeyHeader header;
  const std::byte* at;  // the message, without its content
  std::size_t bytes;
  std::size_t elements = 0;  // of the content
  std::byte* content = nullptr;
  Mapping memory;  // for a copy of the content, if the program posts no memory
  std::vector<Line> kept;

  /// Copies the message, so that it outlives its frame.
  void keep();
};

/// FormatError: content of `bytes` is not a multiple of elements of `element_bytes`.
[[noreturn]] void refuse_content(std::uint64_t bytes, std::size_t element_bytes);

}  // namespace headway::aggregate
