// SPDX-License-Identifier: BSD-3-Clause
// Content that is read while it is being written.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/random.hpp>
#include <headway/transfer/pipeline.hpp>
#include <mutex>
#include <thread>
#include <vector>

namespace headway::transfer {
namespace {

using namespace literals;

struct alignas(64) Line {
  std::byte bytes[64];
};

class Memory {
 public:
  explicit Memory(std::size_t bytes) : lines_(bytes / sizeof(Line)) {}
  std::span<std::byte> all() { return std::as_writable_bytes(std::span(lines_)); }

 private:
  std::vector<Line> lines_;
};

std::vector<std::byte> content_of(std::uint64_t number, std::size_t bytes) {
  std::vector<std::byte> content(bytes);
  for (std::size_t i = 0; i < bytes; ++i) content[i] = std::byte(number * 31 + i * 7 + (i >> 9));
  return content;
}

TEST(Pipeline, the_oldest_content_frees_its_memory_when_consumed) {
  Memory memory(1024);
  PipelineRing ring(memory.all());
  constexpr std::size_t bytes = 128;  // 256 with its header
  std::vector<PipelinedContent*> held;
  for (int i = 0; i < 4; ++i) held.push_back(ring.begin(bytes));
  for (PipelinedContent* const content : held) ASSERT_NE(content, nullptr);
  EXPECT_EQ(ring.begin(0), nullptr);
  held[1]->consumed = 1;
  EXPECT_EQ(ring.begin(bytes), nullptr) << "the one before it is being read";
  held[0]->consumed = 1;
  EXPECT_EQ(ring.begin(bytes), held[0]);
  EXPECT_EQ(ring.begin(bytes + 1), nullptr) << "two lines more";
  EXPECT_EQ(ring.begin(bytes), held[1]);
  EXPECT_EQ(ring.begin(bytes), nullptr);
}

TEST(Pipeline, content_that_does_not_fit_before_the_end_wraps_around) {
  Memory memory(1024);
  PipelineRing ring(memory.all());
  PipelinedContent* const first = ring.begin(512);
  EXPECT_EQ(ring.begin(512), nullptr);
  first->consumed = 1;
  EXPECT_EQ(ring.begin(512), first);
  EXPECT_EQ(ring.begin(1024), nullptr) << "more than there is";
}

TEST(Pipeline, is_read_as_far_as_it_is_written) {
  Memory memory(64_KiB);
  PipelineRing ring(memory.all());
  const std::vector<std::byte> sent = content_of(1, 40'000);
  std::vector<std::byte> received(sent.size());
  PipelinedContent& content = *ring.begin(sent.size());
  PipelinedRead read(content, sent.size(), received.data(), base::copy_bytes);
  EXPECT_FALSE(read.read(0));
  std::memcpy(content.bytes(), sent.data(), 1000);
  content.written = 1000;
  EXPECT_FALSE(read.read(10));
  EXPECT_EQ(std::memcmp(received.data(), sent.data(), 1000), 0);
  EXPECT_EQ(content.consumed, 0u);
  PipelineRing::write(content, sent, base::copy_bytes, base::normal_sizes);
  EXPECT_TRUE(read.read(0));
  EXPECT_EQ(received, sent);
  EXPECT_EQ(content.consumed, 1u);
}

TEST(Pipeline, more_or_less_than_can_be_written_is_refused) {
  Memory memory(64_KiB);
  PipelineRing ring(memory.all());
  std::vector<std::byte> received(1000);
  PipelinedContent& content = *ring.begin(received.size());
  PipelinedRead read(content, received.size(), received.data(), base::copy_bytes);
  content.written = 1001;
  EXPECT_THROW((void)read.read(0), FormatError);
  content.written = 10;
  EXPECT_FALSE(read.read(0));
  content.written = 9;
  EXPECT_THROW((void)read.read(0), FormatError);
}

/// A writer and a reader of their own threads, content of any size, a ring that is full most of the time.
TEST(Pipeline, of_two_threads_delivers_all) {
  constexpr std::uint64_t count = 2000;
  constexpr std::size_t bytes_max = 70'000;
  Memory memory(256_KiB);
  struct Offer {
    PipelinedContent* content;
    std::size_t bytes;
  };
  std::mutex mutex;
  std::deque<Offer> offers;  // in the place of notes
  std::thread writer([&] {
    PipelineRing ring(memory.all());
    Random random(1);
    for (std::uint64_t number = 0; number < count; ++number) {
      const std::vector<std::byte> content = content_of(number, random.next() % bytes_max);
      PipelinedContent* room = nullptr;
      while ((room = ring.begin(content.size())) == nullptr) std::this_thread::yield();
      {
        const std::scoped_lock lock(mutex);
        offers.push_back({room, content.size()});
      }
      PipelineRing::write(*room, content, number % 2 == 0 ? base::copy_bytes : base::copy_past_caches,
                          number % 3 == 0 ? base::small_sizes : base::normal_sizes);
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t number = 0; number < count;) {
    Offer offer{};
    {
      const std::scoped_lock lock(mutex);
      if (!offers.empty()) {
        offer = offers.front();
        offers.pop_front();
      }
    }
    if (offer.content == nullptr) {
      std::this_thread::yield();
      continue;
    }
    std::vector<std::byte> received(offer.bytes);
    PipelinedRead read(*offer.content, offer.bytes, received.data(), base::copy_bytes);
    while (!read.read(100)) std::this_thread::yield();
    wrong += received != content_of(number, offer.bytes);
    ++number;
  }
  writer.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace headway::transfer
