// SPDX-License-Identifier: BSD-3-Clause
/// A message that is too large to be packed in one piece of memory.
#pragma once

#include <cstddef>
#include <headway/base/copy_large.hpp>
#include <span>

namespace headway::aggregate {

/// The bytes of the pieces, one after the other, are the message.
using Pieces = std::span<const std::span<const std::byte>>;

/// Reads the bytes of several pieces one after the other.
class PieceReader {
 public:
  /// UsageError unless the pieces have `message_bytes` together.
  PieceReader(Pieces pieces, std::size_t message_bytes);

  /// Copies the next `bytes`. UsageError beyond the end.
  void read(std::byte* to, std::size_t bytes, LargeCopy copy);

 private:
  Pieces pieces_;
  std::size_t at_ = 0;  // in the first one
  std::size_t left_ = 0;
};

}  // namespace headway::aggregate
