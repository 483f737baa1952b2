// SPDX-License-Identifier: BSD-3-Clause
/// Shared by the files of Transfers: control messages, and the paths between which the runtime chooses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/base/copy_large.hpp>
#include <headway/transfer/transfers.hpp>
#include <span>

namespace headway::transfer {

enum ContentPath : std::size_t { in_message, by_key };                                // content of messages
enum GetPath : std::size_t { get_cached, get_non_temporal, get_attach, get_pieces };  // content of other PEs
enum RingWrite : std::size_t { write_cached, write_non_temporal };                    // of content in the ring
inline constexpr base::LargeCopy ring_write_copies[] = {base::copy_bytes, base::copy_past_caches};

enum class Opcode : std::uint64_t {
  want,      // number: a Source or content; offset, bytes: of it; requester: number of the pull
  piece,     // number: of the pull; offset
  put,       // number: a Destination; offset, bytes: of the whole; requester: number of the push
  in_place,  // number: of the push; bytes; offset: 1 if the network refuses to move it
  open,      // number: a Source; bytes: of it; requester: number of the pull
  opened,    // number: of the pull; content: the network's key, empty if there is none
  put_all,   // number: a Destination; content: all of a put
  take,      // number: a Destination; bytes; requester: number of the push; content: the network's key
  used,  // number; bytes: nanoseconds that it took; offset: 1 if attaching is refused; requester: the kind (ExposedAs)
  pipelined,  // number: of the pull; offset, bytes: of the content; requester: where it is being written, in its
              // owner's pool
};

struct Transfers::ControlMessage {
  Opcode opcode;
  std::uint64_t number, offset, bytes, requester;
};

struct Transfers::ControlAggregators {
  using Messages = Aggregator<ControlMessage, std::span<const std::byte>>;
  Messages messages;
  Messages pieces;  // within the host, and requests for them: each is posted at once
};

/// FormatError: `source` writes beyond a Destination of `size` bytes.
[[noreturn]] void refuse_put(PeId source, std::uint64_t offset, std::uint64_t bytes, std::size_t size);

}  // namespace headway::transfer
