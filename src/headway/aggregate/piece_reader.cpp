// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/aggregate/piece_reader.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>

namespace headway::aggregate {

PieceReader::PieceReader(Pieces pieces, std::size_t message_bytes) : pieces_(pieces) {
  for (const std::span<const std::byte> piece : pieces) left_ += piece.size();
  if (left_ == message_bytes) return;
  throw UsageError(
      fmt::format("a message of {} has {} when it is sent: its arguments may not change until send() returns, "
                  "and serialize() must write the same each time",
                  base::counted(message_bytes, "byte"), base::counted(left_, "byte")));
}

void PieceReader::read(std::byte* to, std::size_t bytes, base::LargeCopy copy) {
  if (bytes > left_) {
    throw UsageError(fmt::format("a read of {} from a message of which {} {} left", base::counted(bytes, "byte"), left_,
                                 base::by_number(left_, "is", "are")));
  }
  left_ -= bytes;
  while (bytes > 0) {
    const std::span<const std::byte> piece = pieces_.front().subspan(at_);
    const std::size_t n = std::min(bytes, piece.size());
    if (n != 0) copy(to, piece.data(), n);
    to += n;
    bytes -= n;
    at_ += n;
    if (at_ == pieces_.front().size()) {
      pieces_ = pieces_.subspan(1);
      at_ = 0;
    }
  }
}

}  // namespace headway::aggregate
