/// What the files of Transfers share: the notes that they send, and the ways between which they choose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/transfer/transfers.hpp>
#include <headway/base/copy_large.hpp>
#include <span>

namespace headway::transfer {

enum SentBy : std::size_t { with_message, by_key };                        // content of messages
enum GotBy : std::size_t { by_loads, past_caches, by_attach, by_pieces };  // what others have given
/// What places content, by Placed.
inline constexpr LargeCopy placing[] = {copy_bytes, copy_past_caches};
inline constexpr unsigned both_copies = 1u << through_caches | 1u << around_caches;

enum class Word : std::uint64_t {
  want,       // number: a Source or content; offset, bytes: of it; asker: number of the pull
  piece,      // number: of the pull; offset
  put,        // number: a Destination; offset, bytes: of the whole; asker: number of the push
  in_place,   // number: of the push; bytes; offset: 1 if the network refuses to move it
  open,       // number: a Source; bytes: of it; asker: number of the pull
  opened,     // number: of the pull; content: the network's key, empty if there is none
  put_all,    // number: a Destination; content: all of a put
  take,       // number: a Destination; bytes; asker: number of the push; content: the network's key
  used,       // number; bytes: nanoseconds that it took; offset: 1 if attaching is refused; asker: as what it was given
  pipelined,  // number: of the pull; offset, bytes: of the content; asker: where it is being written, in its owner's
              // pool
};

struct Transfers::Note {
  Word word;
  std::uint64_t number, offset, bytes, asker;
};

struct Transfers::Mail {
  using Notes = Aggregator<Note, std::span<const std::byte>>;
  Notes notes;
  Notes pieces;  // within the host, and what asks for them: each leaves at once
};

}  // namespace headway::transfer
