// SPDX-License-Identifier: BSD-3-Clause
// Content of messages that stays with its sender, and content that goes where its receiver wants it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/task.hpp>
#include <headway/base/size_constants.hpp>
#include <headway/rma/pooled_array.hpp>
#include <headway/transfer/send_buffer.hpp>
#include <memory>
#include <span>
#include <string_view>
#include <support/run_pes.hpp>
#include <support/transfers.hpp>
#include <vector>

namespace headway {
namespace {

using testing::are_words_of;
using testing::by_every_way;
using testing::can_attach;
using testing::expect_run;
using testing::Shape;
using testing::words_of;

using Words = std::span<const std::uint64_t>;

constexpr std::size_t sizes[] = {0, 1, 17, 127, 128, 129, 255, 256, 257, 511, 512, 513, 5000, 40000};

TEST(SendBuffer, arrives_as_it_was_and_is_given_back_once) {
  by_every_way([](Pe& pe) {
    Aggregator<std::uint32_t, Words, std::uint64_t> blocks(pe);
    std::size_t handled = 0;
    blocks.on([&](std::uint32_t number, Words words, std::uint64_t size) {
      EXPECT_EQ(words.size(), size);
      EXPECT_TRUE(are_words_of(number, words));
      ++handled;
    });
    std::size_t sent = 0, done = 0;
    std::vector<std::unique_ptr<std::vector<std::uint64_t>>> buffers;
    for (int round = 0; round < 4; ++round) {
      for (const std::size_t size : sizes) {
        for (std::size_t to = 0; to < pe.size(); ++to) {
          const auto number = std::uint32_t(sent++ + 1000 * pe.id());
          auto* const buffer =
              buffers.emplace_back(std::make_unique<std::vector<std::uint64_t>>(words_of(number, size))).get();
          blocks.send(to, number,
                      send_buffer(*buffer,
                                  [buffer, &done] {
                                    std::ranges::fill(*buffer, 0);  // may be changed from now on
                                    ++done;
                                  }),
                      size);
        }
      }
    }
    pe.quiesce();
    EXPECT_EQ(handled, 4 * std::size(sizes) * pe.size());
    EXPECT_EQ(done, sent);
  });
}

TEST(SendBuffer, of_pooled_memory_is_read_in_place_by_many) {
  by_every_way([](Pe& pe) {
    Aggregator<std::uint64_t, Words> blocks(pe);
    std::size_t handled = 0, done = 0;
    blocks.on([&](std::uint64_t number, Words words) {
      EXPECT_EQ(words.size(), 30000);
      EXPECT_TRUE(are_words_of(number, words));
      ++handled;
    });
    PooledArray<std::uint64_t> field(pe, 30000);
    std::ranges::copy(words_of(pe.id(), field.size()), field.begin());
    for (std::size_t to = 0; to < pe.size(); ++to) {
      blocks.send(to, std::uint64_t(pe.id()), send_buffer(field, [&] { ++done; }));
    }
    pe.quiesce();
    EXPECT_EQ(handled, pe.size());
    EXPECT_EQ(done, pe.size());
  });
}

TEST(SendBuffer, sets_a_promise_that_a_coroutine_waits_for) {
  by_every_way([](Pe& pe) {
    Aggregator<Words> blocks(pe);
    std::size_t words_handled = 0;
    blocks.on([&](Words words) { words_handled += words.size(); });
    std::vector<std::uint64_t> buffer = words_of(1, 20000);
    bool continued = false;
    const auto send_and_wait = [&](Pe& own) -> Task<> {
      Promise<> promise(own);
      Future<> sent = promise.future();
      blocks.send((own.id() + 1) % own.size(), send_buffer(buffer, std::move(promise)));
      co_await sent;
      continued = true;
    };
    spawn(pe, send_and_wait(pe));
    pe.quiesce();
    EXPECT_TRUE(continued);
    EXPECT_EQ(words_handled, 20000);
  });
}

TEST(SendBuffer, of_text_and_beside_others_in_one_message) {
  by_every_way([](Pe& pe) {
    Aggregator<std::string_view, Words, std::vector<int>> messages(pe);
    std::size_t handled = 0, done = 0;
    messages.on([&](std::string_view text, Words words, const std::vector<int>& numbers) {
      EXPECT_EQ(text.size(), 9000);
      EXPECT_EQ(std::ranges::count(text, 'x'), 9000);
      EXPECT_TRUE(are_words_of(3, words));
      EXPECT_EQ(words.size(), numbers.at(0));
      ++handled;
    });
    const std::string text(9000, 'x');
    const auto few = words_of(3, 10), many = words_of(3, 5000);
    const auto count = [&] { ++done; };
    for (int i = 0; i < 10; ++i) {
      messages.send(0, send_buffer(text, count), send_buffer(few, count), std::vector<int>{10});
      messages.send(0, send_buffer(text, count), send_buffer(many, count), std::vector<int>{5000});
      messages.send(0, text, send_buffer(many, count), std::vector<int>{5000});
    }
    pe.quiesce();
    EXPECT_EQ(done, 50);
    EXPECT_EQ(handled, pe.id() == 0 ? 30 * pe.size() : 0);
  });
}

TEST(SendBuffer, from_handlers_and_in_order) {
  by_every_way([](Pe& pe) {
    Aggregator<std::uint64_t, Words> blocks(pe, {.ordered = true});
    std::uint64_t next = 0, done = 0;
    const auto words = words_of(9, 3000);
    blocks.on([&](Pe& own, PeId source, std::uint64_t i, Words content) {
      EXPECT_TRUE(are_words_of(9, content));
      if (own.id() == 1) blocks.send(source, i, send_buffer(words, [&] { ++done; }));
      if (own.id() == 0) {
        EXPECT_EQ(i, next++);
      }
    });
    if (pe.id() == 0 && pe.size() > 1) {
      for (std::uint64_t i = 0; i < 50; ++i) blocks.send(1, i, send_buffer(words, [&] { ++done; }));
    }
    pe.quiesce();
    const std::uint64_t expected = pe.size() > 1 ? 50 : 0;
    EXPECT_EQ(done, pe.id() < 2 ? expected : 0);
    EXPECT_EQ(next, pe.id() == 0 ? expected : 0);
  });
}

/// Longer content stays with its sender, and the message contains its key.
TEST(SendBuffer, is_copied_into_its_message_up_to_the_limit_of_its_memory) {
  constexpr std::size_t cutoff = base::normal_sizes.copied_bytes_max;
  constexpr std::size_t keyed_min = aggregate::ContentMover::keyed_bytes_min(true);
  constexpr std::size_t in_slot_max = aggregate::ContentMover::in_eager_slot_bytes_max;
  for (const Shape shape : {Shape{2, 1}, Shape{2, 2}}) {
    expect_run(shape, [is_one_process = shape.pes_per_process == 2](Pe& pe) {
      using Bytes = std::span<const std::byte>;
      const std::vector<std::byte> heap(4 * cutoff);
      const PooledArray<std::byte> pooled(pe, heap.size());
      const Bytes pool(pooled.data(), pooled.size());
      std::vector<std::byte> received(heap.size());
      Aggregator<Bytes> read(pe), posted(pe);
      std::size_t handled = 0;
      read.on([&](Bytes) { ++handled; });
      posted.on_posted([&](std::size_t size) { return std::span(received).first(size); }, [&](Bytes) { ++handled; });
      const auto is_in_message = [&](Aggregator<Bytes>& blocks, Bytes content) {
        const std::uint64_t before = blocks.statistics().payload_bytes;
        blocks.send(1 - pe.id(), send_buffer(content, [] {}));
        pe.quiesce();
        return blocks.statistics().payload_bytes - before >= content.size();
      };
      const Bytes mapped = is_one_process ? Bytes(heap) : pool;
      EXPECT_TRUE(is_in_message(posted, mapped.first(keyed_min - 1)));
      EXPECT_FALSE(is_in_message(posted, mapped.first(keyed_min)));
      EXPECT_TRUE(is_in_message(read, mapped.first(in_slot_max)));
      std::size_t sent = 3;
      if (!is_one_process) {
        EXPECT_TRUE(is_in_message(posted, Bytes(heap).first(cutoff)));
        EXPECT_FALSE(is_in_message(posted, Bytes(heap).first(cutoff + 1)));
        EXPECT_TRUE(is_in_message(read, heap));
        sent += 3;
      }
      EXPECT_EQ(handled, sent);
    });
  }
}

TEST(SendBuffer, is_not_copied_where_it_is_mapped_and_once_where_it_is_not) {
  for (const auto& [way, copies] : {std::pair("mapped", 0), std::pair("cma", 1)}) {
    if (copies != 0 && !can_attach()) continue;
    expect_run({2, 1},
               [copies = copies](Pe& pe) {
                 Aggregator<Words> blocks(pe);
                 std::size_t words_handled = 0;
                 blocks.on([&](Words words) { words_handled += words.size(); });
                 PooledArray<std::uint64_t> field(pe, 10000);
                 std::ranges::fill(field, 1);
                 for (int i = 0; i < 5; ++i) blocks.send(1 - pe.id(), send_buffer(field, [] {}));
                 pe.quiesce();
                 EXPECT_EQ(words_handled, 50000);
                 const AggregatorStatistics statistics = blocks.statistics();
                 EXPECT_EQ(statistics.copied_bytes - statistics.payload_bytes, 5u * copies * 80000);
                 EXPECT_LT(statistics.payload_bytes, 1000);  // keys
               },
               {{"HEADWAY_TRANSFER", way}});
  }
}

TEST(OnPosted, puts_content_where_the_receiver_wants_it) {
  by_every_way([](Pe& pe) {
    constexpr std::size_t n = 6000;
    Aggregator<std::uint64_t, Words> blocks(pe);
    std::vector<std::uint64_t> field(n * pe.size());
    std::size_t arrived = 0;
    blocks.on_posted([&](std::uint64_t i, std::size_t size) { return std::span(field).subspan(i * n, size); },
                     [&](PeId source, std::uint64_t i, Words block) {
                       EXPECT_EQ(source, i);
                       EXPECT_EQ(block.data(), field.data() + i * n);
                       EXPECT_TRUE(are_words_of(i, block));
                       ++arrived;
                     });
    const auto mine = words_of(pe.id(), n);
    std::size_t done = 0;
    for (std::size_t to = 0; to < pe.size(); ++to) {
      blocks.send(to, std::uint64_t(pe.id()), Words(mine).first(7));  // short, and with a copy
      blocks.send(to, std::uint64_t(pe.id()), send_buffer(mine, [&] { ++done; }));
      blocks.send(to, std::uint64_t(pe.id()), mine);
    }
    pe.quiesce();
    EXPECT_EQ(arrived, 3 * pe.size());
    EXPECT_EQ(done, pe.size());
    for (std::size_t p = 0; p < pe.size(); ++p) EXPECT_TRUE(are_words_of(p, Words(field).subspan(p * n, n)));
  });
}

}  // namespace
}  // namespace headway
