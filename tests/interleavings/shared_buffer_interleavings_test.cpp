// SPDX-License-Identifier: BSD-3-Clause
// The buffer that the PEs of a process fill together: every interleaving of those that insert, close and open it again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <explorer/shared.hpp>
#include <functional>
#include <headway/aggregate/shared_buffer.hpp>
#include <memory>
#include <string>

#include "report.hpp"

namespace headway::aggregate {
namespace {

using explore::Atomic;
using explore::expect_found;
using explore::expect_no_violation;
using explore::Plain;

constexpr auto relaxed = std::memory_order_relaxed;

using TestBuffer = BasicSharedBuffer<Atomic<std::uint64_t>>;

/// Each thread inserts `messages[thread]` messages, one after the other, into a buffer with room for two. It then
/// closes the buffer that it inserted into last. The thread that opens a buffer brings a frame of its own. A message
/// that the buffer does not take at once is sent alone.
class Filling : public explore::Program {
 public:
  static constexpr unsigned threads_max = 3, messages_max = 3, room = 2;

  explicit Filling(std::array<unsigned, threads_max> messages, std::array<std::uint8_t, threads_max> tags)
      : messages_(messages), tags_(tags) {
    word_.named("word");
    frame_.named("frame");
    for (unsigned t = 0; t < threads_max; ++t) {
      for (unsigned m = 0; m < messages_max; ++m) {
        for (Plain<unsigned>& cell : frames_[t * messages_max + m]) cell.named("message in frame " + std::to_string(t));
      }
    }
  }

  unsigned threads() const override { return messages_[2] == 0 ? 2 : 3; }

  void thread(unsigned id) override {
    for (unsigned m = 0; m < messages_[id]; ++m) {
      const unsigned message = id * messages_max + m;
      if (!insert(id, message)) ++posted_[id][message];
    }
    close(id, generations_[id]);
  }

  void check() override {
    for (unsigned t = 0; t < threads_max; ++t) {
      for (unsigned m = 0; m < messages_max; ++m) {
        const unsigned message = t * messages_max + m;
        unsigned posted = 0;
        for (unsigned by = 0; by < threads_max; ++by) posted += posted_[by][message];
        explore::check(posted <= (m < messages_[t] ? 1u : 0u), "a message is posted twice");
        explore::check(posted == (m < messages_[t] ? 1u : 0u), "a message is never posted");
      }
    }
  }

  Atomic<std::uint64_t> word_;

 private:
  bool insert(unsigned id, unsigned message) {
    for (int attempt = 0; attempt < 3; ++attempt) {
      const auto [outcome, before] = buffer_.try_reserve(tags_[id], 1, 1);
      switch (outcome) {
        case TestBuffer::Outcome::busy: return false;
        case TestBuffer::Outcome::full: close(id, before.generation); break;
        case TestBuffer::Outcome::empty:
          if (open(id, message)) return true;
          break;
        case TestBuffer::Outcome::reserved:
          frames_[frame_][before.count] = message;
          generations_[id] = before.generation;
          if (const auto content = buffer_.finish()) post(id, *content);
          return true;
      }
    }
    return false;
  }

  bool open(unsigned id, unsigned message) {
    if (!buffer_.try_begin()) return false;
    frame_ = message;  // the thread's own frame, which no other message of it opens
    frames_[message][0] = message;
    generations_[id] = buffer_.open({1, 1, tags_[id], 0});
    return true;
  }

  void close(unsigned id, std::uint8_t generation) {
    if (const auto content = buffer_.try_close(generation)) post(id, *content);
  }

  void post(unsigned id, const TestBuffer::Content& content) {
    const unsigned frame = frame_;
    buffer_.take();
    explore::check(content.count <= room && content.payload_bytes == content.count, "a buffer holds more than it may");
    for (unsigned i = 0; i < content.count; ++i) ++posted_[id][frames_[frame][i]];
  }

  std::array<unsigned, threads_max> messages_;
  std::array<std::uint8_t, threads_max> tags_;
  TestBuffer buffer_{word_, {room, 0}};
  Plain<unsigned> frame_;
  std::array<std::array<Plain<unsigned>, room>, threads_max * messages_max> frames_;
  std::array<std::uint8_t, threads_max> generations_{};
  std::array<std::array<unsigned, threads_max * messages_max>, threads_max> posted_{};
};

auto filling(
    std::array<unsigned, 3> messages, std::array<std::uint8_t, 3> tags = {},
    std::function<void(Filling&)> plant = [](Filling&) {}) {
  return [=] {
    auto program = std::make_unique<Filling>(messages, tags);
    plant(*program);
    return program;
  };
}

TEST(SharedBufferInterleavings, two_insert_once_and_close) {
  expect_no_violation("shared buffer: 2 threads, 1 message each, exchanges fail for no reason",
                      {.spurious_failures_max = 1}, filling({1, 1}));
}

TEST(SharedBufferInterleavings, two_fill_it_close_it_and_open_it_again) {
  expect_no_violation("shared buffer: 2 threads, 2 + 1 messages", {}, filling({2, 1}));
  expect_no_violation("shared buffer: 2 threads, 3 + 1 messages", {}, filling({3, 1}));
}

TEST(SharedBufferInterleavings, messages_of_different_tags_are_never_in_one_buffer) {
  expect_no_violation("shared buffer: 2 threads, 2 + 1 messages, other tags", {}, filling({2, 1}, {1, 2}));
}

TEST(SharedBufferInterleavings, three_insert_and_close) {
  expect_no_violation("shared buffer: 3 threads, 1 message each, at most 1 preemption", {.preemptions_max = 1},
                      filling({1, 1, 1}));
}

TEST(SharedBufferInterleavingsLong, more_messages) {
  expect_no_violation("shared buffer: 2 threads, 2 + 2 messages", {.executions_max = 100'000'000}, filling({2, 2}));
  expect_no_violation("shared buffer: 3 threads, 1 message each", {.executions_max = 100'000'000}, filling({1, 1, 1}));
}

// --- planted bugs

TEST(PlantedInSharedBuffer, it_is_opened_relaxed) {
  expect_found("shared buffer: opened relaxed", "while it may be", {},
               filling({1, 1}, {}, [](Filling& program) { program.word_.plant_stores(relaxed); }));
}

TEST(PlantedInSharedBuffer, a_writer_finishes_relaxed) {
  expect_found("shared buffer: exchanges relaxed", "while it may be", {},
               filling({1, 1}, {}, [](Filling& program) { program.word_.plant_exchanges(relaxed); }));
}

}  // namespace
}  // namespace headway::aggregate
