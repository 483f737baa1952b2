// SPDX-License-Identifier: BSD-3-Clause
/// A buffer that the PEs of one process fill together: it decides which PE writes where, and which PE posts it. Without
/// a lock; no PE waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace headway::aggregate {

/// The whole state is one word, so that each step is one atomic exchange:
///
///     bit   0         22      42        50    58      60           64
///           | payload | count | writers | tag | state | generation |
///
///     empty --try_begin--> opening --open--> filling --try_close--> closed --the last writer--> empty, next generation
///                                             |  ^
///                           try_reserve: one writer more, finish: one less
///
/// A closed buffer without writers belongs to the PE of the last step, until take(). The PE that opens the buffer
/// writes its frame pointer; writers and the posting PE read it.
///
/// A template over the word, so that tests can explore this code with a word of their own.
template <class Word>
class BasicSharedBuffer {
 public:
  static constexpr std::size_t payload_bytes_max = (std::size_t(1) << 22) - 1;
  static constexpr std::size_t count_max = (std::size_t(1) << 20) - 1;
  static constexpr std::size_t writers_max = (std::size_t(1) << 8) - 1;

  /// The content of the buffer.
  struct Content {
    std::uint32_t payload_bytes = 0;
    std::uint32_t count = 0;
    std::uint8_t tag = 0;  // of all its messages
    std::uint8_t generation = 0;
  };

  enum class Outcome {
    reserved,  // the caller writes behind the content before, and then calls finish()
    full,      // too little room; it may be closed
    empty,     // it may be opened
    busy,      // another tag, or another PE is opening or posting it
  };
  struct Reservation {
    Outcome outcome;
    Content before;  // if reserved, the content before; if full, the generation
  };

  /// For payload and entries together; at most payload_bytes_max.
  struct Capacity {
    std::size_t bytes;
    std::size_t entry_bytes;  // of each message
  };
  /// `word` is 0 at first.
  BasicSharedBuffer(Word& word, Capacity capacity) : word_(&word), capacity_(capacity) {}

  bool fits(std::size_t payload_bytes, std::size_t count) const {
    return payload_bytes + count * capacity_.entry_bytes <= capacity_.bytes && count <= count_max;
  }

  Reservation try_reserve(std::uint8_t tag, std::size_t payload_bytes, std::size_t count) {
    std::uint64_t word = word_->load(std::memory_order_relaxed);
    for (;;) {
      const Content before = content_of(word);
      if (state_of(word) == empty) return {Outcome::empty, before};
      if (state_of(word) != filling || before.tag != tag || writers_of(word) == writers_max)
        return {Outcome::busy, before};
      if (!fits(before.payload_bytes + payload_bytes, before.count + count)) return {Outcome::full, before};
      // acquire: the frame, which the opener wrote
      if (word_->compare_exchange_weak(word, word + payload_bytes + (count << count_at) + one_writer,
                                       std::memory_order_acquire, std::memory_order_relaxed)) {
        return {Outcome::reserved, before};
      }
    }
  }

  /// Ends a write. Returns the content if the caller must post the buffer.
  std::optional<Content> finish() {
    // release: the written bytes; acquire, for the last writer: the bytes of the others
    const std::uint64_t word = word_->fetch_sub(one_writer, std::memory_order_acq_rel) - one_writer;
    return to_post(word);
  }

  /// Closes the buffer of that generation. Returns the content if the caller must post it; otherwise a writer does, or
  /// it is closed already.
  std::optional<Content> try_close(std::uint8_t generation) {
    std::uint64_t word = word_->load(std::memory_order_relaxed);
    while (state_of(word) == filling && content_of(word).generation == generation) {
      const std::uint64_t after = word + (closed - filling) * one_state;
      // acquire: what writers that have finished wrote
      if (word_->compare_exchange_weak(word, after, std::memory_order_acquire, std::memory_order_relaxed)) {
        return to_post(after);
      }
    }
    return std::nullopt;
  }

  /// Whether it has been neither closed nor posted since it had that generation.
  bool is_open(std::uint8_t generation) const {
    const std::uint64_t word = word_->load(std::memory_order_relaxed);
    return state_of(word) == filling && content_of(word).generation == generation;
  }

  /// Gives an empty buffer to the caller to open. False if it is not empty.
  bool try_begin() {
    std::uint64_t word = word_->load(std::memory_order_relaxed);
    while (state_of(word) == empty) {
      // acquire: the reads of the frame that was posted last are over
      if (word_->compare_exchange_weak(word, word + (opening - empty) * one_state, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  /// The frame is there, with `content` in it. Returns its generation.
  std::uint8_t open(const Content& content) {
    const std::uint64_t generation = word_->load(std::memory_order_relaxed) >> generation_at;
    word_->store(content.payload_bytes | std::uint64_t(content.count) << count_at |
                     std::uint64_t(content.tag) << tag_at | filling * one_state | generation << generation_at,
                 std::memory_order_release);
    return std::uint8_t(generation);
  }

  /// The posting PE has read the frame pointer: the buffer is empty again.
  void take() {
    const std::uint64_t generation = (word_->load(std::memory_order_relaxed) >> generation_at) + 1;
    word_->store(generation << generation_at, std::memory_order_release);
  }

 private:
  enum State : std::uint64_t { empty, opening, filling, closed };
  static constexpr unsigned count_at = 22, writers_at = 42, tag_at = 50, state_at = 58, generation_at = 60;
  static constexpr std::uint64_t one_writer = std::uint64_t(1) << writers_at, one_state = std::uint64_t(1) << state_at;

  static std::uint64_t state_of(std::uint64_t word) { return word >> state_at & 3; }
  static std::uint64_t writers_of(std::uint64_t word) { return word >> writers_at & writers_max; }
  static Content content_of(std::uint64_t word) {
    return {std::uint32_t(word & payload_bytes_max), std::uint32_t(word >> count_at & count_max),
            std::uint8_t(word >> tag_at), std::uint8_t(word >> generation_at)};
  }
  static std::optional<Content> to_post(std::uint64_t word) {
    if (state_of(word) != closed || writers_of(word) != 0) return std::nullopt;
    return content_of(word);
  }

  Word* word_;
  Capacity capacity_;
};

using SharedBuffer = BasicSharedBuffer<std::atomic<std::uint64_t>>;

}  // namespace headway::aggregate
