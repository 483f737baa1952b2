// SPDX-License-Identifier: BSD-3-Clause
/// The messages of a GlobalMemory, and the records of requests without an answer.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <headway/transport/frame.hpp>
#include <vector>

namespace headway::global {

enum class Operation : std::uint8_t { add, exchange, compare_exchange };

// --- messages; offsets are bytes into the pool of the owner, `slot` is the requester's Pending

/// A request for one word or one piece.
struct Wanted {
  static constexpr std::uint32_t is_piece = std::uint32_t(1) << 31;

  std::uint64_t offset;
  std::uint32_t slot;
  std::uint32_t bytes;  // of a word; with is_piece: of a piece of any length
};
/// The answer: a word, in the low bytes.
struct Word {
  std::uint64_t word;
  std::uint32_t slot;
};
struct WordPut {
  static constexpr std::uint64_t is_store = std::uint64_t(1) << 63;
  static constexpr unsigned bytes_shift = 60;

  std::uint64_t place;  // offset | log2 of bytes << bytes_shift | is_store
  std::uint64_t word;
};
struct WordChange {
  std::uint64_t offset, operand, expected;
  std::uint32_t slot;  // Pending::none: without an answer; counts as a put
  std::uint8_t bytes;
  Operation operation;
};
/// `puts`: all that the requester has sent to this owner.
struct SyncWanted {
  std::uint64_t puts;
};
/// As many puts of the requester are in place.
struct Synced {
  std::uint64_t puts;
};
/// Blocks of memory: block k begins k * stride bytes after the first. The blocks are the first `count`, or those of a
/// list of `count` numbers that travels beside it.
struct Blocks {
  std::uint64_t offset, stride, block, count;  // bytes, except the count
};

// --- of the requester

/// A reader that waits for one word.
struct Waiting {
  std::uint64_t word = 0;
  bool done = false;
  std::coroutine_handle<> coroutine = {};
};

/// The destination of an answer: memory of the caller, a Waiting, or a Batch.
struct Pending {
  static constexpr std::uint32_t none = ~std::uint32_t(0), for_waiting = none - 1, for_batch = none - 2;

  void* to = nullptr;
  std::uint32_t bytes = 0;  // 0: free; for_waiting, for_batch: the type of *to
  std::uint32_t next = 0;   // the next free one
};

/// Words of one length that this PE gets from one PE by one message, and their destinations.
struct Batch {
  static constexpr std::uint32_t words_max = 256;

  std::uint32_t count = 0, bytes = 0;
  std::uint32_t different =
      0;  // offsets[0 .. different) are the requested ones; count, if duplicates were not looked for
  std::array<std::uint64_t, words_max> offsets;
  std::array<void*, words_max> to;
  std::array<std::uint8_t, words_max> which;  // index of each word in offsets, if different < count
};

/// A bulk get that is not fully requested: one range of memory, or blocks of at most a piece each.
struct Transfer {
  PeId pe;
  std::uint64_t offset;
  std::byte* to;
  std::size_t left;                     // bytes
  std::uint64_t stride = 0, block = 0;  // bytes; 0: one range
  std::vector<std::uint64_t> indices = {};
  std::size_t indices_asked = 0;
};

struct PutsTo {
  std::uint64_t sent = 0, asked = 0, synced = 0;  // sent >= asked >= synced
};
struct PutsFrom {
  std::uint64_t applied = 0, awaited = ~std::uint64_t(0);
};

}  // namespace headway::global
