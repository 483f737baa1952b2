// SPDX-License-Identifier: BSD-3-Clause
// The arena: the order of reuse. LocalEndpoint among threads: frames of all sizes arrive exactly once, unchanged and in
// order, and all memory returns.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <headway/base/random.hpp>
#include <headway/transport/local/arena.hpp>
#include <headway/transport/local/local.hpp>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace headway::local {
namespace {

constexpr std::size_t arena_bytes = std::size_t(1) << 20;
constexpr std::int64_t a_second = 1'000'000'000;

constexpr std::size_t block_bytes = 4096, blocks_delayed = 4;

// Memory of that many blocks, of which the reuse of at most an eighth may be delayed.
struct Blocks {
  std::vector<std::byte> memory = std::vector<std::byte>(arena_bytes);
  Arena arena{memory.data(), arena_bytes, block_bytes* blocks_delayed};
  std::byte* claim() { return arena.try_allocate(block_bytes, 0); }
};

TEST(Arena, takes_next_what_was_freed) {
  Blocks blocks;
  std::byte* const first = blocks.claim();
  blocks.arena.free(first);
  EXPECT_EQ(blocks.claim(), first);
}

TEST(Arena, reuses_a_delayed_block_when_enough_bytes_have_returned_after_it) {
  Blocks blocks;
  std::vector<std::byte*> taken;
  for (std::size_t i = 0; i < 3 * (blocks_delayed + 1); ++i) {
    taken.push_back(blocks.claim());
    blocks.arena.free_delayed(taken.back());
    if (i <= blocks_delayed) {
      EXPECT_EQ(std::ranges::count(taken, taken.back()), 1) << i;
    } else {
      EXPECT_EQ(taken.back(), taken[i - blocks_delayed - 1]) << i;
    }
  }
}

TEST(Arena, reuses_a_delayed_block_early_if_no_other_is_free) {
  Blocks blocks;
  std::vector<std::byte*> all;
  while (std::byte* block = blocks.claim()) all.push_back(block);
  ASSERT_EQ(all.size(), arena_bytes / block_bytes);
  blocks.arena.free_delayed(all[0]);
  EXPECT_EQ(blocks.claim(), all[0]);
  for (std::byte* block : all) blocks.arena.free_delayed(block);
  EXPECT_EQ(blocks.arena.try_allocate(arena_bytes, 0), blocks.memory.data()) << "all of it merged again";
}

/// One PE: sends numbered frames to all, itself included, and checks those that arrive.
class Participant {
 public:
  Participant(Segment& segment, std::size_t pe, std::size_t frames_to_each)
      : endpoint_(make_endpoint(segment, pe)),
        random_(pe),
        frames_to_each_(frames_to_each),
        sent_(segment.header().pes),
        arrived_(segment.header().pes) {}

  void run() {
    while (!done()) {
      bool any = reclaim();
      for (std::size_t target = 0; target < endpoint_->size(); ++target) any |= send_some(target);
      any |= receive();
      if (!any)
        endpoint_->sleep(sent_all() ? a_second : a_second / 1000);  // no PE rings when the queue has space again
    }
  }

  std::size_t outstanding() const { return outstanding_; }
  bool in_order() const { return in_order_; }
  const std::vector<std::uint64_t>& arrived() const { return arrived_; }

 private:
  bool sent_all() const {
    for (const std::uint64_t sent : sent_) {
      if (sent != frames_to_each_) return false;
    }
    return true;
  }
  bool done() const {
    for (const std::uint64_t arrived : arrived_) {
      if (arrived != frames_to_each_) return false;
    }
    return sent_all() && outstanding_ == 0;
  }

  bool send_some(std::size_t target) {
    bool any = false;
    while (sent_[target] < frames_to_each_ && send(target)) any = true;
    return any;
  }

  /// A third of the frames is written in place, half of the others fit into a cell. The payload repeats the frame's
  /// number, and is aligned.
  bool send(std::size_t target) {
    constexpr std::size_t words_most = transport::by_value_bytes_most / sizeof(std::uint64_t);
    if (random_.one_in(3)) return send_in_place(target);
    const std::size_t words = random_.one_in(2) ? random_.between(1, words_most) : random_.between(words_most + 1, 600);
    const std::size_t bytes = words * sizeof(std::uint64_t);
    transport::Frame* frame = endpoint_->try_claim(transport::frame_overhead + bytes, target);
    if (frame == nullptr) return false;
    if (random_.one_in(2))
      std::ignore = endpoint_->should_write_past_caches(frame);  // may sample, which writes to the frame
    frame->header = {};
    frame->header.payload_bytes = std::uint32_t(bytes);
    frame->header.count = 1;
    frame->header.source = std::uint16_t(endpoint_->id());
    for (std::size_t i = 0; i < words; ++i) std::memcpy(frame->payload() + i * 8, &sent_[target], 8);
    const transport::Endpoint::Posted posted = endpoint_->try_post(target, frame, frame->payload() + bytes, true);
    if (posted != transport::Endpoint::Posted::lent) endpoint_->drop(frame);
    if (posted == transport::Endpoint::Posted::refused) return false;
    if (posted == transport::Endpoint::Posted::lent) ++outstanding_;
    ++sent_[target];
    return true;
  }

  bool send_in_place(std::size_t target) {
    std::byte* const at = endpoint_->try_begin_in_place(target);
    if (at == nullptr) return false;
    const std::size_t words = random_.between(1, transport::in_place_bytes_most / sizeof(std::uint64_t));
    transport::FrameHeader header{};
    header.payload_bytes = std::uint32_t(words * sizeof(std::uint64_t));
    header.count = 1;
    header.source = std::uint16_t(endpoint_->id());
    for (std::size_t i = 0; i < words; ++i) std::memcpy(at + i * 8, &sent_[target], 8);
    endpoint_->post_in_place(target, header);
    ++sent_[target];
    return true;
  }

  bool receive() {
    bool any = false;
    for (transport::Arrival arrival; endpoint_->poll(arrival); any = true) {
      std::uint64_t& expected = arrived_[arrival.header.source];
      in_order_ &= reinterpret_cast<std::uintptr_t>(arrival.payload) % 64 == 32;
      for (std::size_t at = 0; at < arrival.header.payload_bytes; at += 8) {
        in_order_ &= std::memcmp(arrival.payload + at, &expected, 8) == 0;
      }
      ++expected;
      endpoint_->release(arrival);
    }
    return any;
  }

  bool reclaim() {
    const std::size_t count = endpoint_->reclaim([](void*, std::size_t, std::uint64_t) {}, nullptr);
    outstanding_ -= count;
    return count != 0;
  }

  std::unique_ptr<transport::Endpoint> endpoint_;
  Random random_;
  std::size_t frames_to_each_;
  std::vector<std::uint64_t> sent_, arrived_;  // per PE
  std::size_t outstanding_ = 0;
  bool in_order_ = true;
};

constexpr std::size_t arena_bytes_with_eager_slots = std::size_t(16) << 20;

void exchange(std::size_t pes, std::size_t frames_to_each) {
  Segment segment(pes, 1, pes, arena_bytes_with_eager_slots);
  std::vector<std::unique_ptr<Participant>> participants;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    participants.push_back(std::make_unique<Participant>(segment, pe, frames_to_each));
  }
  std::vector<std::thread> threads;
  for (auto& participant : participants) threads.emplace_back([&] { participant->run(); });
  for (std::thread& thread : threads) thread.join();
  for (auto& participant : participants) {
    EXPECT_TRUE(participant->in_order());
    EXPECT_EQ(participant->outstanding(), 0u);
    EXPECT_EQ(participant->arrived(), std::vector<std::uint64_t>(pes, frames_to_each));
  }
}

TEST(LocalEndpoint, moves_frames_of_all_sizes_among_threads_exactly_once_and_in_order) {
  exchange(1, 3 * inbox_cells);
  exchange(2, 5 * inbox_cells);
  exchange(5, 2 * inbox_cells);
}

TEST(LocalEndpoint, wakes_a_sleeper_for_each_of_many_frames_that_go_to_and_fro) {
  Segment segment(2, 1, 2, arena_bytes);
  constexpr std::uint64_t rounds = 2000;
  auto play = [&](std::size_t pe) {
    const std::unique_ptr<transport::Endpoint> endpoint = make_endpoint(segment, pe);
    transport::SmallFrame small{};
    small.frame.header.payload_bytes = 8;
    small.frame.header.source = std::uint16_t(pe);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      if (round % 2 == pe) {
        std::memcpy(small.frame.payload(), &round, 8);
        EXPECT_EQ(endpoint->try_post(1 - pe, &small.frame, small.frame.payload() + 8, false),
                  transport::Endpoint::Posted::copied);
        continue;
      }
      transport::Arrival arrival;
      // A wake-up that is lost costs a minute: the test's time limit ends it.
      while (!endpoint->poll(arrival)) endpoint->sleep(60 * a_second);
      EXPECT_EQ(std::memcmp(arrival.payload, &round, 8), 0);
      endpoint->release(arrival);
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}

struct Frames {
  Segment segment{2, 1, 2, arena_bytes};
  std::unique_ptr<transport::Endpoint> sender = make_endpoint(segment, 0), receiver = make_endpoint(segment, 1);
  transport::SmallFrame frame{};

  /// Posts a frame of consecutive byte values.
  transport::Endpoint::Posted post(std::size_t target, std::size_t payload, std::size_t tail) {
    std::array<std::byte, transport::by_value_bytes_most + 1> tail_memory{};
    for (std::size_t i = 0; i < payload; ++i) frame.message[i] = std::byte(i);
    for (std::size_t i = 0; i < tail; ++i) tail_memory[i] = std::byte(payload + i);
    frame.frame.header.payload_bytes = std::uint32_t(payload);
    frame.frame.header.tail_bytes = std::uint32_t(tail);
    return sender->try_post(target, &frame.frame, tail_memory.data() + tail, false);
  }
};

TEST(LocalEndpoint, frames_of_every_length_that_go_by_value_arrive_whole_and_nothing_else_is_written) {
  Frames frames;
  for (std::size_t i = 0; i < inbox_cells; ++i) std::ranges::fill(frames.segment.inbox(1)[i].bytes, std::byte(0xee));
  for (const std::size_t target : {std::size_t(1), std::size_t(0)}) {
    for (std::size_t bytes = 0; bytes <= transport::by_value_bytes_most; ++bytes) {
      for (const std::size_t tail : {std::size_t(0), bytes / 3, bytes}) {
        ASSERT_EQ(frames.post(target, bytes - tail, tail), transport::Endpoint::Posted::copied);
        transport::Arrival arrival;
        ASSERT_TRUE((target == 0 ? frames.sender : frames.receiver)->poll(arrival));
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(arrival.payload) % 64, 32u);
        ASSERT_EQ(arrival.tail_end, arrival.payload + bytes);
        for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(arrival.payload[i], std::byte(i)) << bytes;
        // Cells of the first generation were written for this frame alone.
        if (target == 1 && 3 * bytes + 2 < inbox_cells && bytes < transport::by_value_bytes_most) {
          ASSERT_EQ(arrival.payload[bytes], std::byte(0xee)) << bytes;
        }
      }
    }
  }
}

TEST(LocalEndpoint, a_frame_that_is_too_long_for_a_cell_needs_memory_of_its_sender) {
  Frames frames;
  for (const std::size_t tail : {std::size_t(0), std::size_t(1), std::size_t(50), transport::by_value_bytes_most}) {
    const std::size_t payload = transport::by_value_bytes_most - tail;
    EXPECT_EQ(frames.post(1, payload, tail), transport::Endpoint::Posted::copied);
    EXPECT_EQ(frames.post(1, payload, tail + 1), transport::Endpoint::Posted::refused);
  }
}

TEST(LocalEndpoint, a_cell_that_says_to_hold_more_than_a_cell_does_is_refused) {
  constexpr std::uint32_t most = transport::by_value_bytes_most, all = ~std::uint32_t(0);
  constexpr std::pair<std::uint32_t, std::uint32_t> lengths[] = {{most + 1, 0},          {most, 1}, {0, most + 1},
                                                                 {all - most + 1, most}, {1, all},  {all, all}};
  for (const auto& [payload, tail] : lengths) {
    Frames frames;
    ASSERT_EQ(frames.post(1, 8, 0), transport::Endpoint::Posted::copied);
    frames.segment.inbox(1)[0].header.payload_bytes = payload;
    frames.segment.inbox(1)[0].header.tail_bytes = tail;
    transport::Arrival arrival;
    EXPECT_THROW((void)frames.receiver->poll(arrival), transport::InvalidFrame) << payload << " and " << tail;
  }
}

TEST(LocalEndpoint, consecutive_cells_have_eager_slots_of_their_own_far_apart) {
  std::vector<bool> taken(inbox_cells);
  for (std::size_t cell = 0; cell < inbox_cells; ++cell) {
    EXPECT_FALSE(taken[eager_slot_of(cell)]) << cell;
    taken[eager_slot_of(cell)] = true;
    const auto apart = std::ptrdiff_t(eager_slot_of((cell + 1) % inbox_cells) - eager_slot_of(cell));
    EXPECT_GT(std::abs(apart), 16) << cell;
  }
}

TEST(LocalEndpoint, frames_written_in_place_keep_their_order_and_find_a_full_queue) {
  Segment segment(2, 1, 2, arena_bytes_with_eager_slots);
  const std::unique_ptr<transport::Endpoint> sender = make_endpoint(segment, 0), receiver = make_endpoint(segment, 1);
  const auto post = [&](std::size_t number) {
    if (number % 3 == 0) {
      transport::SmallFrame small{};
      small.frame.header.payload_bytes = sizeof number;
      std::memcpy(small.message, &number, sizeof number);
      return sender->try_post(1, &small.frame, small.message + sizeof number, false) ==
             transport::Endpoint::Posted::copied;
    }
    std::byte* const at = sender->try_begin_in_place(1);
    if (at == nullptr) return false;
    const std::size_t bytes = transport::in_place_bytes_most - 8 * (number % 500);
    std::memcpy(at, &number, sizeof number);
    std::memcpy(at + bytes - sizeof number, &number, sizeof number);
    transport::FrameHeader header{};
    header.payload_bytes = std::uint32_t(bytes);
    sender->post_in_place(1, header);
    return true;
  };
  const auto take = [&](std::size_t number) {
    transport::Arrival arrival;
    if (!receiver->poll(arrival)) return false;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arrival.payload) % 64, 32u);
    EXPECT_EQ(arrival.tail_end, arrival.payload + arrival.header.payload_bytes);
    EXPECT_EQ(std::memcmp(arrival.payload, &number, sizeof number), 0) << number;
    EXPECT_EQ(std::memcmp(arrival.tail_end - sizeof number, &number, sizeof number), 0) << number;
    return true;
  };
  EXPECT_EQ(sender->try_begin_in_place(0), nullptr) << "to itself";
  std::size_t posted = 0, taken = 0;
  for (int generation = 0; generation < 3; ++generation) {
    while (post(posted)) ++posted;
    EXPECT_EQ(sender->try_begin_in_place(1), nullptr);
    while (take(taken)) ++taken;
    EXPECT_EQ(taken, posted);
  }
  EXPECT_EQ(posted, 3 * inbox_cells);
}

TEST(LocalEndpoint, a_cell_that_refers_to_a_missing_or_too_short_eager_slot_is_refused) {
  for (const std::size_t arena : {arena_bytes_with_eager_slots, arena_bytes}) {
    Segment segment(2, 1, 2, arena);
    const std::unique_ptr<transport::Endpoint> sender = make_endpoint(segment, 0), receiver = make_endpoint(segment, 1);
    EXPECT_EQ(sender->try_begin_in_place(1) != nullptr, arena == arena_bytes_with_eager_slots);
    transport::FrameHeader header{};
    header.payload_bytes = arena == arena_bytes_with_eager_slots ? transport::in_place_bytes_most + 1 : 8;
    Cell& cell = segment.inbox(1)[0];
    cell.header = header;
    cell.header.kind |= kind_in_eager_slot;
    cell.sequence.store(1);
    transport::Arrival arrival;
    EXPECT_THROW((void)receiver->poll(arrival), transport::InvalidFrame);
  }
}

// docs/memory.md
TEST(LocalEndpoint, a_pe_has_276_KiB_of_inbox_control_and_board_pages) {
  const std::size_t inboxes = 2 * inbox_cells * sizeof(Cell);  // one of them for frames to itself
  EXPECT_EQ(inboxes + page_bytes + board_bytes, 276u * 1024);
  const std::size_t some = 1000, arenas = some * arena_bytes;
  const std::size_t each = (Segment::bytes_for(some, arena_bytes) - arenas) / some;
  EXPECT_NEAR(double(each), double(inboxes / 2 + page_bytes + board_bytes + report_bytes), 4096);
  EXPECT_EQ(inbox_cells * sizeof(EagerSlot), 2080u * 1024);
}

TEST(LocalEndpoint, a_full_queue_refuses_frames_until_a_cell_is_free) {
  Segment segment(2, 1, 2, arena_bytes);
  const std::unique_ptr<transport::Endpoint> sender = make_endpoint(segment, 0), receiver = make_endpoint(segment, 1);
  transport::Frame frame{};
  auto post = [&] { return sender->try_post(1, &frame, frame.payload(), false); };
  for (std::size_t i = 0; i < inbox_cells; ++i) ASSERT_EQ(post(), transport::Endpoint::Posted::copied);
  EXPECT_EQ(post(), transport::Endpoint::Posted::refused);
  transport::Arrival arrival;
  ASSERT_TRUE(receiver->poll(arrival));
  EXPECT_EQ(post(), transport::Endpoint::Posted::refused) << "a frame that is read in place holds its cell";
  ASSERT_TRUE(receiver->poll(arrival));
  EXPECT_EQ(post(), transport::Endpoint::Posted::copied);
  for (std::size_t left = inbox_cells - 1; left > 0; --left) ASSERT_TRUE(receiver->poll(arrival));
  EXPECT_FALSE(receiver->poll(arrival));
}

}  // namespace
}  // namespace headway::local
