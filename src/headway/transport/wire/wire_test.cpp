// SPDX-License-Identifier: BSD-3-Clause
// The endpoint over a fake wire, several processes in one thread, by seeds: exactly once, in order, unchanged, refusals
// that change nothing, all memory back, and no more of it than credit allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <headway/base/random.hpp>
#include <headway/transport/wire/endpoint.hpp>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "fake_wire.hpp"

namespace headway::wire {
namespace {

constexpr std::size_t budget_bytes = std::size_t(1) << 20, posted_bytes = 4096;
constexpr std::size_t frames_to_each = 120, payload_bytes_max = 20'000, hops_max = 3;

/// The processes of one run, their PEs' endpoints by number.
struct Processes {
  FakeNetwork network;
  std::vector<std::unique_ptr<local::Segment>> segments;
  std::vector<std::unique_ptr<Port>> ports;
  std::vector<std::unique_ptr<WireEndpoint>> endpoints;

  Processes(std::size_t pes, std::size_t pes_per_process, std::uint64_t seed, std::size_t credit_bytes,
            std::size_t sends_max = 32, std::size_t budget = budget_bytes)
      : network((pes + pes_per_process - 1) / pes_per_process, seed) {
    const std::size_t processes = (pes + pes_per_process - 1) / pes_per_process;
    for (std::size_t p = 0; p < processes; ++p) {
      const std::size_t first = p * pes_per_process, own = std::min(pes_per_process, pes - first);
      segments.push_back(std::make_unique<local::Segment>(own, 1, own, budget));
      segments[p]->header().first_pe = first;
      ports.push_back(std::make_unique<Port>(PortOptions{.functions = &FakeNetwork::functions(),
                                                         .wire = network.end(p),
                                                         .process = p,
                                                         .processes = processes,
                                                         .pes = pes,
                                                         .pes_per_process = pes_per_process,
                                                         .credit_bytes = credit_bytes,
                                                         .posted_bytes = posted_bytes,
                                                         .posted = 4,
                                                         .sends_max = sends_max},
                                             *segments[p], 0));
      for (std::size_t i = 0; i < own; ++i) {
        endpoints.push_back(std::make_unique<WireEndpoint>(*segments[p], *ports[p], i));
      }
    }
  }

  void close() {
    std::vector<std::thread> threads;
    for (auto& port : ports) threads.emplace_back([&port] { port->close(); });
    for (std::thread& thread : threads) thread.join();
  }
};

std::byte pattern(std::size_t source, std::size_t number, std::size_t at) {
  return std::byte(source * 31 + number * 7 + at * 13);
}

/// A PE that sends numbered frames to all and checks those that arrive.
class Participant {
 public:
  /// `sibling` is of the same process, and sometimes posts a frame of this one's.
  Participant(WireEndpoint& endpoint, WireEndpoint& sibling, std::uint64_t seed)
      : endpoint_(&endpoint), sibling_(&sibling), random_(seed), sent_(endpoint.size()), expected_(endpoint.size()) {}

  void turn() {
    reclaim();
    for (int i = 0; i < 3; ++i) send_one(random_.below(endpoint_->size()));
    receive_some();
    release_some();
  }
  bool has_sent_all() const {
    return std::ranges::all_of(sent_, [](std::uint64_t sent) { return sent == frames_to_each; });
  }
  bool is_done() const {
    return has_sent_all() && claimed_bytes_ == 0 && held_.empty() &&
           std::ranges::all_of(expected_, [](std::uint64_t n) { return n == frames_to_each; });
  }
  const std::optional<std::string>& wrong() const { return wrong_; }

 private:
  void reclaim() {
    endpoint_->reclaim(
        [](void* self, std::size_t bytes, std::uint64_t tag) {
          auto& me = *static_cast<Participant*>(self);
          me.claimed_bytes_ -= bytes;
          if (tag != bytes) me.wrong_ = "a tag has changed";
        },
        this);
  }

  void send_one(std::size_t target) {
    if (sent_[target] == frames_to_each) return;
    const std::size_t payload = random_.size(0, payload_bytes_max), tail = random_.size(0, 300),
                      spare = random_.below(100);
    const std::size_t bytes = transport::frame_overhead + payload + spare + tail;
    transport::Frame* const frame = endpoint_->try_claim(bytes, endpoint_->block_bytes(bytes));
    if (frame == nullptr) return;
    std::byte* const end = reinterpret_cast<std::byte*>(frame) + bytes;
    frame->header = {std::uint32_t(payload),
                     std::uint32_t(tail),
                     std::uint32_t(sent_[target]),
                     std::uint16_t(endpoint_->id()),
                     0,
                     std::uint8_t(random_.below(hops_max)),
                     0,
                     0,
                     0,
                     0};
    for (std::size_t i = 0; i < payload; ++i) frame->payload()[i] = pattern(endpoint_->id(), sent_[target], i);
    for (std::size_t i = 0; i < tail; ++i) (end - tail)[i] = pattern(endpoint_->id(), sent_[target], i + 99);
    const auto* const content = reinterpret_cast<const std::byte*>(&frame->header);
    const std::vector<std::byte> before(content, static_cast<const std::byte*>(end));
    const std::size_t block = endpoint_->block_bytes(bytes);
    const bool as_spilled = random_.one_in(4);
    // Between PEs of one process no order is promised of frames that two have posted.
    const bool leaves =
        target / endpoint_->host_map().pes_per_process != endpoint_->id() / endpoint_->host_map().pes_per_process;
    WireEndpoint& poster = leaves && !as_spilled && random_.one_in(3) ? *sibling_ : *endpoint_;
    switch (poster.try_post(target, frame, end, !as_spilled)) {
      case transport::Endpoint::Posted::refused:
        if (!std::equal(before.begin(), before.end(), content)) wrong_ = "a refusal has changed the frame";
        return endpoint_->drop(frame);
      case transport::Endpoint::Posted::copied: endpoint_->drop(frame); break;
      case transport::Endpoint::Posted::lent:
        if (as_spilled) wrong_ = "memory was lent that is none";
        claimed_bytes_ += block;
        break;
    }
    ++sent_[target];
  }

  void receive_some() {
    transport::Arrival arrival;
    for (int i = 0; i < 4 && endpoint_->poll(arrival); ++i) {
      check(arrival);
      if (arrival.owned != 0) held_.push_back(arrival);
    }
  }
  void check(const transport::Arrival& arrival) {
    const transport::FrameHeader& header = arrival.header;
    if (header.count != expected_[header.source]++) wrong_ = "a frame is missing, or out of order";
    if (reinterpret_cast<std::uintptr_t>(arrival.payload) % 32 != 0) wrong_ = "a payload is not aligned";
    for (std::size_t i = 0; i < header.payload_bytes; ++i) {
      if (arrival.payload[i] != pattern(header.source, header.count, i)) wrong_ = "a payload has changed";
    }
    for (std::size_t i = 0; i < header.tail_bytes; ++i) {
      if ((arrival.tail_end - header.tail_bytes)[i] != pattern(header.source, header.count, i + 99)) {
        wrong_ = "a tail has changed";
      }
    }
  }
  /// Not in their order, and some late.
  void release_some() {
    for (int i = 0; i < 5 && !held_.empty(); ++i) {
      const std::size_t at = random_.below(held_.size());
      if (random_.one_in(3)) continue;
      check_again(held_[at]);
      endpoint_->release(held_[at]);
      held_.erase(held_.begin() + std::ptrdiff_t(at));
    }
  }
  void check_again(const transport::Arrival& arrival) {
    if (arrival.header.payload_bytes != 0 &&
        arrival.payload[0] != pattern(arrival.header.source, arrival.header.count, 0)) {
      wrong_ = "a frame that is held has changed";
    }
  }

  WireEndpoint* endpoint_;
  WireEndpoint* sibling_;
  Random random_;
  std::vector<std::uint64_t> sent_, expected_;
  std::vector<transport::Arrival> held_;
  std::size_t claimed_bytes_ = 0;
  std::optional<std::string> wrong_;
};

TEST(Wire, costs_say_how_long_a_frame_may_be_that_waits_for_no_answer) {
  FakeNetwork network(1, 1);
  local::Segment segment(1, 1, 1, budget_bytes);
  const auto said = [&](std::size_t eager_bytes) {
    Port port({.functions = &FakeNetwork::functions(),
               .wire = network.end(0),
               .credit_bytes = 64_KiB,
               .eager_bytes = eager_bytes},
              segment, 0);
    const std::size_t bytes = WireEndpoint(segment, port, 0).costs().eager_bytes;
    port.close();
    return bytes;
  };
  EXPECT_EQ(said(0), 255_KiB) << "no bound is known but what is kept posted";
  EXPECT_EQ(said(64_KiB), 63_KiB);
  EXPECT_EQ(said(1024_KiB), 255_KiB);
  EXPECT_EQ(said(100), 1_KiB) << "the library's header must find room";
}

/// Many frames in flight, one after the other, and read by no PE of this host: returned blocks are reused at once, so
/// that they stay in the cache.
TEST(Wire, memory_of_a_frame_that_has_left_is_used_again_at_once) {
  Processes run(2, 1, 1, 1_MiB);
  WireEndpoint& sender = *run.endpoints[0];
  std::set<transport::Frame*> used;
  for (int i = 0; i < 200; ++i) {
    transport::Frame* const frame = sender.try_claim(4096, 0);
    ASSERT_NE(frame, nullptr);
    used.insert(frame);
    frame->header = {};
    frame->header.payload_bytes = 3000;
    frame->header.count = 100;
    const transport::Endpoint::Posted posted = sender.try_post(1, frame, frame->payload() + 3000, true);
    ASSERT_NE(posted, transport::Endpoint::Posted::refused);
    if (posted == transport::Endpoint::Posted::copied) sender.drop(frame);
    for (int looks = 0; looks < 1000 && !sender.reclaim([](void*, std::size_t, std::uint64_t) {}, nullptr) &&
                        posted == transport::Endpoint::Posted::lent;
         ++looks) {
      transport::Arrival arrival;
      sender.poll(arrival);
      while (run.endpoints[1]->poll(arrival)) run.endpoints[1]->release(arrival);
    }
  }
  EXPECT_LE(used.size(), 2u);
  run.close();
}

/// Limit of the memory for frames of other processes, by credit: blocks are at most twice as large as their frames.
std::size_t receive_bytes_bound(const Processes& run, std::size_t pes, std::size_t pes_per_process,
                                std::size_t credit_bytes) {
  const std::size_t largest = transport::frame_overhead + payload_bytes_max + 300 + 64;
  const std::size_t of_a_pair = credit_bytes + hops_max * (largest + credit_bytes / 4);
  const std::size_t kept = (4 + ReceiveMemory::lent_in_place_max + ReceiveMemory::free_max) * posted_bytes;
  static_cast<void>(run);
  return 2 * of_a_pair * pes_per_process * (pes - 1) + kept;
}

class WireSeeds : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(WireSeeds, frames_arrive_once_in_order_and_unchanged_and_all_memory_comes_back) {
  const std::uint64_t seed = GetParam();
  const std::size_t pes = 2 + seed % 4, pes_per_process = 1 + seed % 3;
  const std::size_t credit_bytes = seed % 2 == 0 ? 8192 : 65536;
  SCOPED_TRACE(testing::Message() << pes << " PEs, " << pes_per_process << " in a process");
  Processes run(pes, pes_per_process, seed, credit_bytes, 4 + seed % 30);
  std::vector<Participant> participants;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    const std::size_t sibling = pe % pes_per_process == 0 ? std::min(pe + pes_per_process, pes) - 1 : pe - 1;
    participants.emplace_back(*run.endpoints[pe], *run.endpoints[sibling], seed * 100 + pe);
  }
  Random order(seed);
  const auto all_done = [&] { return std::ranges::all_of(participants, &Participant::is_done); };
  for (std::size_t turns = 0; !all_done(); ++turns) {
    ASSERT_LT(turns, 1'000'000u) << "nothing moves any more";
    Participant& one = participants[order.below(pes)];
    one.turn();
    ASSERT_EQ(one.wrong().value_or(""), "");
    ASSERT_EQ(run.network.broken(), nullptr) << run.network.broken();
  }
  for (auto& endpoint : run.endpoints) {
    transport::Frame* const all = endpoint->try_claim(budget_bytes, 0);
    EXPECT_NE(all, nullptr) << "of PE " << endpoint->id() << " some frame memory is missing";
  }
  for (auto& port : run.ports) {
    EXPECT_LE(port->receive_bytes_peak(), receive_bytes_bound(run, pes, pes_per_process, credit_bytes));
  }
  run.close();
}

INSTANTIATE_TEST_SUITE_P(, WireSeeds, ::testing::Range<std::uint64_t>(1, 41));

/// Posts a frame of `payload` bytes from PE 0 to PE 1.
transport::Endpoint::Posted post(Processes& run, std::size_t payload, std::uint8_t hops_left,
                                 transport::FrameKind kind = transport::FrameKind::messages) {
  WireEndpoint& sender = *run.endpoints[0];
  sender.reclaim([](void*, std::size_t, std::uint64_t) {}, nullptr);
  transport::Frame* const frame = sender.try_claim(transport::frame_overhead + payload, 0);
  if (frame == nullptr) return transport::Endpoint::Posted::refused;
  frame->header = {std::uint32_t(payload), 0, 1, 0, std::uint8_t(kind), hops_left, 0, 0, 0, 0};
  const auto posted = sender.try_post(1, frame, frame->payload() + payload, true);
  if (posted != transport::Endpoint::Posted::lent) sender.drop(frame);
  return posted;
}

std::size_t post_until_refused(Processes& run, std::size_t payload, std::uint8_t hops_left) {
  std::size_t frames = 0;
  for (int refusals = 0; refusals < 1000;) {
    if (post(run, payload, hops_left) == transport::Endpoint::Posted::refused) {
      ++refusals;
      run.ports[0]->progress();
      run.ports[1]->progress();
    } else {
      ++frames;
    }
  }
  return frames;
}

TEST(Credit, bounds_the_memory_of_a_receiver_that_releases_nothing) {
  Processes run(2, 1, 7, 32768);
  const std::size_t frames = post_until_refused(run, 1000, 0);
  EXPECT_GE(frames * 1000, 20'000u);
  EXPECT_LE(frames * 1032, 32768u);
  EXPECT_LE(run.ports[1]->receive_bytes_peak(), receive_bytes_bound(run, 2, 1, 32768));
  run.close();
}

TEST(Credit, of_frames_with_hops_left_leaves_credit_for_frames_with_fewer_and_for_control_messages) {
  Processes run(2, 1, 7, 32768);
  EXPECT_GT(post_until_refused(run, 1000, 2), 5u);
  EXPECT_GT(post_until_refused(run, 1000, 1), 1u);
  EXPECT_GT(post_until_refused(run, 1000, 0), 1u);
  EXPECT_NE(post(run, 20, 0, transport::FrameKind::control), transport::Endpoint::Posted::refused);
  run.close();
}

TEST(Credit, of_released_frames_comes_back_also_for_one_larger_than_all_of_it) {
  Processes run(2, 1, 7, 8192);
  for (int i = 0; i < 20; ++i) {
    post_until_refused(run, 500, 0);
    transport::Arrival arrival;
    for (int looks = 0; looks < 2000; ++looks) {
      run.ports[0]->progress();
      if (run.endpoints[1]->poll(arrival)) run.endpoints[1]->release(arrival);
    }
    ASSERT_NE(post(run, 15'000, 0), transport::Endpoint::Posted::refused);
  }
  run.close();
}

TEST(Wire, frames_of_one_process_reach_their_pe_without_it) {
  Processes run(4, 2, 3, 32768);
  WireEndpoint& sender = *run.endpoints[2];
  transport::Frame* const frame = sender.try_claim(transport::frame_overhead + 300, 0);
  frame->header = {300, 0, 1, 2, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(sender.try_post(3, frame, frame->payload() + 300, true), transport::Endpoint::Posted::lent);
  transport::Arrival arrival;
  ASSERT_TRUE(run.endpoints[3]->poll(arrival));
  EXPECT_EQ(arrival.header.source, 2u);
  run.endpoints[3]->release(arrival);
  std::size_t back = sender.reclaim([](void*, std::size_t, std::uint64_t) {}, nullptr);
  EXPECT_EQ(back, 1u);
  EXPECT_EQ(run.network.messages(), 0u);
}

TEST(Wire, frames_are_written_where_they_arrive_within_a_host_and_while_their_receiver_accepts_that) {
  Processes run(4, 2, 3, 32768, 32, 16_MiB);
  WireEndpoint &sender = *run.endpoints[2], &receiver = *run.endpoints[3];
  for (const std::size_t target : {0, 1, 2}) EXPECT_EQ(sender.try_begin_in_place(target), nullptr) << target;
  receiver.accept_in_place(false);
  EXPECT_EQ(sender.try_begin_in_place(3), nullptr);
  receiver.accept_in_place(true);
  std::byte* const at = sender.try_begin_in_place(3);
  ASSERT_NE(at, nullptr);
  for (std::size_t i = 0; i < transport::in_place_bytes_most; ++i) at[i] = pattern(2, 0, i);
  sender.post_in_place(3, {transport::in_place_bytes_most, 0, 1, 2, 0, 0, 0, 0, 0, 0});
  transport::Arrival arrival;
  ASSERT_TRUE(receiver.poll(arrival));
  EXPECT_EQ(arrival.header.source, 2u);
  EXPECT_EQ(arrival.header.kind, 0);
  EXPECT_EQ(arrival.owned, 0u);
  ASSERT_EQ(arrival.header.payload_bytes, transport::in_place_bytes_most);
  for (std::size_t i = 0; i < transport::in_place_bytes_most; ++i) ASSERT_EQ(arrival.payload[i], pattern(2, 0, i)) << i;
  EXPECT_EQ(run.network.messages(), 0u);
}

TEST(Wire, frames_that_may_go_by_value_need_no_memory_of_their_sender_and_are_read_aligned) {
  for (const std::size_t payload : {0, 8, 33, 96, 97, 200, int(transport::by_value_bytes_most)}) {
    Processes run(2, 1, payload + 1, 32768);
    ASSERT_EQ(run.endpoints[0]->by_value_bytes_max(), transport::by_value_bytes_most);
    transport::SmallFrame small{{}, {}};
    small.frame.header.payload_bytes = std::uint32_t(payload);
    for (std::size_t i = 0; i < payload; ++i) small.message[i] = pattern(0, 0, i);
    ASSERT_EQ(run.endpoints[0]->try_post(1, &small.frame, small.message + payload, false),
              transport::Endpoint::Posted::copied);
    std::ranges::fill(small.message, std::byte(0xee));
    transport::Arrival arrival;
    bool has_come = false;
    for (int looks = 0; looks < 1000 && !has_come; ++looks) {
      run.ports[0]->progress();
      has_come = run.endpoints[1]->poll(arrival);
    }
    ASSERT_TRUE(has_come);
    EXPECT_EQ(arrival.owned, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arrival.payload) % 64, 32u);
    for (std::size_t i = 0; i < payload; ++i) ASSERT_EQ(arrival.payload[i], pattern(0, 0, i)) << i << " of " << payload;
    run.close();
  }
}

/// True if polling the injected message throws InvalidFrame.
bool is_refused(Processes& run) {
  try {
    transport::Arrival arrival;
    for (int looks = 0; looks < 1000; ++looks) {
      if (run.endpoints[1]->poll(arrival)) return false;
    }
  } catch (const transport::InvalidFrame&) {
    return true;
  }
  return false;
}

TEST(Wire, invalid_messages_are_refused) {
  const auto bytes_of_frame = [](transport::Frame frame, std::size_t bytes) {
    std::vector<std::byte> message(bytes);
    std::copy_n(reinterpret_cast<const std::byte*>(&frame), std::min(bytes, sizeof frame), message.begin());
    return message;
  };
  const transport::Frame good{make_link(Kind::frame, 0), {100, 0, 1, 0, 0, 0, 0, 0, 0, 0}};
  transport::Frame wrong_kind = good, wrong_target = good, wrong_source = good, no_source = good, announced = good,
                   credit = good;
  wrong_kind.link = make_link(Kind(77), 0);
  wrong_target.link = make_link(Kind::frame, 5);
  wrong_source.header.source = 1;
  no_source.header.source = 99;
  announced.link = make_link(Kind::announcement, 0);
  credit.link = make_link(Kind::credit, 0);
  for (const auto& message :
       {bytes_of_frame(good, 131), bytes_of_frame(good, 133), bytes_of_frame(good, 31), bytes_of_frame(good, 0),
        bytes_of_frame(wrong_kind, 132), bytes_of_frame(wrong_target, 132), bytes_of_frame(wrong_source, 132),
        bytes_of_frame(no_source, 132), bytes_of_frame(announced, 40), bytes_of_frame(announced, 33),
        bytes_of_frame(credit, 63), bytes_of_frame(credit, 100)}) {
    Processes run(2, 1, 5, 32768);
    run.network.inject(0, 1, message);
    EXPECT_TRUE(is_refused(run)) << message.size() << " bytes";
  }
  Processes run(2, 1, 5, 32768);
  run.network.inject(0, 1, bytes_of_frame(good, 132));
  EXPECT_FALSE(is_refused(run));
}

TEST(Wire, services_overtake_frames_that_wait_for_credit) {
  Processes run(2, 1, 5, 8192);
  post_until_refused(run, 500, 0);
  const std::vector<std::byte> bytes(1000, std::byte(7));
  run.ports[0]->send_service(1, bytes);
  std::vector<Port::Service> services;
  for (int looks = 0; looks < 1000 && services.empty(); ++looks) {
    run.ports[0]->progress();
    run.ports[1]->progress();
    services = run.ports[1]->take_services();
  }
  ASSERT_EQ(services.size(), 1u);
  EXPECT_EQ(services[0].process, 0u);
  EXPECT_EQ(services[0].bytes, bytes);
  run.close();
}

}  // namespace
}  // namespace headway::wire
