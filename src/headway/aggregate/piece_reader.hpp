// SPDX-License-Identifier: BSD-3-Clause
/// Reads a large message from the pieces of memory in which its arguments lie, without packing it first.
#pragma once

#include <cstddef>
#include <headway/base/copy_large.hpp>
#include <span>

namespace headway::aggregate {

/// The message is the bytes of all pieces, in this order.
using Pieces = std::span<const std::span<const std::byte>>;

/// Reads the bytes of several pieces one after the other.
class PieceReader {
 public:
  /// UsageError unless the pieces have `message_bytes` together.
  PieceReader(Pieces pieces, std::size_t message_bytes);

  /// Copies the next `bytes`. UsageError beyond the end.
  void read(std::byte* to, std::size_t bytes, base::LargeCopy copy);

 private:
  Pieces pieces_;         // those that have unread bytes
  std::size_t at_ = 0;    // bytes of the first piece that were read
  std::size_t left_ = 0;  // unread bytes of all pieces
};

}  // namespace headway::aggregate
