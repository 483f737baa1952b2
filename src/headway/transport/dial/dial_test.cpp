// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <headway/transport/dial/endpoint.hpp>
#include <headway/transport/sim/world.hpp>
#include <string>
#include <vector>

namespace headway::dial {
namespace {

using Posted = transport::Endpoint::Posted;

constexpr std::int64_t second = 1'000'000'000;

/// One PE of a simulated world, with dials.
class Pe {
 public:
  Pe(sim::World& world, std::size_t pe, const base::DialSettings& dials)
      : endpoint(world.endpoint(pe), {dials, [&world, pe](std::int64_t ns) { world.pass_time(pe, ns); }}) {}

  /// Posts a frame. Its payload begins with `number`. False if it was refused.
  [[nodiscard]] bool try_send(std::size_t target, std::uint64_t number, std::size_t payload_bytes,
                              std::uint32_t count = 1, std::uint8_t hops_left = 0, std::size_t tail_bytes = 0) {
    transport::Frame* const frame =
        endpoint.try_claim(transport::frame_overhead + payload_bytes + tail_bytes, tag_of(number));
    if (frame == nullptr) return false;
    fill(*frame, number, payload_bytes, count, hops_left, tail_bytes);
    const Posted posted = endpoint.try_post(target, frame, frame->payload() + payload_bytes + tail_bytes, true);
    if (posted != Posted::lent) endpoint.drop(frame);
    outstanding += posted == Posted::lent;
    return posted != Posted::refused;
  }
  void send(std::size_t target, std::uint64_t number, std::size_t payload_bytes, std::uint32_t count = 1) {
    ASSERT_TRUE(try_send(target, number, payload_bytes, count));
  }

  void fill(transport::Frame& frame, std::uint64_t number, std::size_t payload_bytes, std::uint32_t count,
            std::uint8_t hops_left, std::size_t tail_bytes) const {
    frame.header = {};
    frame.header.payload_bytes = std::uint32_t(payload_bytes);
    frame.header.tail_bytes = std::uint32_t(tail_bytes);
    frame.header.count = count;
    frame.header.source = std::uint16_t(endpoint.id());
    frame.header.hops_left = hops_left;
    std::memset(frame.payload(), int(number % 251), payload_bytes + tail_bytes);
    std::memcpy(frame.payload(), &number, sizeof number);
  }

  /// Waits for a frame, and returns the time at which the PE has it.
  std::int64_t receive() {
    transport::Arrival arrival;
    while (!endpoint.poll(arrival)) endpoint.sleep(second);
    endpoint.release(arrival);
    return endpoint.now();
  }

  std::size_t reclaim() {
    return endpoint.reclaim([](void* self, std::size_t, std::uint64_t) { --static_cast<Pe*>(self)->outstanding; },
                            this);
  }

  static std::uint64_t tag_of(std::uint64_t number) { return number ^ 0xabcd; }

  DialledEndpoint endpoint;
  int outstanding = 0;
};

void run(std::size_t pes, const base::DialSettings& dials, const std::function<void(Pe&)>& body,
         const sim::Conditions& conditions = {}, std::uint64_t seed = 1) {
  sim::World world({.pes = pes, .seed = seed, .conditions = conditions, .frame_memory_bytes = std::size_t(1) << 20});
  const sim::World::End end = world.run(
      [&](std::size_t id) {
        Pe pe(world, id, dials);
        body(pe);
      },
      sim::forever / 2, [] { return true; });
  EXPECT_EQ(end, sim::World::End::finished);
  EXPECT_EQ(world.missing(), "");
}

/// Times of a burst of frames from PE 0 to PE 1.
struct Times {
  std::int64_t posts_ns;    // of all posts, at the sender
  std::int64_t one_way_ns;  // from before the first post until the receiver has the first frame
  std::int64_t between_ns;  // from the first to the last frame, at the receiver
};

Times measure(const base::DialSettings& dials, std::size_t frames, std::size_t payload_bytes, std::uint32_t count = 1) {
  Times times{};
  std::int64_t begin = 0;
  run(2, dials, [&](Pe& pe) {
    if (pe.endpoint.id() == 0) {
      begin = pe.endpoint.now();
      for (std::size_t i = 0; i < frames; ++i) pe.send(1, i, payload_bytes, count);
      times.posts_ns = pe.endpoint.now() - begin;
      pe.endpoint.drain();
      while (pe.outstanding != 0) {
        if (pe.reclaim() == 0) pe.endpoint.sleep(second);
      }
    } else {
      const std::int64_t first = pe.receive();
      std::int64_t last = first;
      for (std::size_t i = 1; i < frames; ++i) last = pe.receive();
      times.one_way_ns = first - begin;
      times.between_ns = last - first;
    }
  });
  return times;
}

void expect_added(std::int64_t with, std::int64_t without, double added) {
  EXPECT_NEAR(double(with - without), added, std::max(0.02 * added, 1.0)) << "dialled " << added << " ns";
}

constexpr double settings_ns[] = {5e3, 10e3, 20e3, 50e3, 100e3};

TEST(Dial, o_is_added_at_the_sender_and_at_the_receiver) {
  const Times without = measure({}, 1, 8);
  for (const double ns : settings_ns) {
    const Times with = measure({.overhead_ns = ns}, 1, 8);
    expect_added(with.posts_ns, without.posts_ns, ns);
    expect_added(with.one_way_ns, without.one_way_ns, 2 * ns);
  }
}

TEST(Dial, item_o_is_added_for_each_message_at_the_receiver) {
  const Times without = measure({}, 1, 80, 10);
  for (const double ns : settings_ns) {
    const Times with = measure({.item_overhead_ns = ns}, 1, 80, 10);
    expect_added(with.posts_ns, without.posts_ns, 0);
    expect_added(with.one_way_ns, without.one_way_ns, 10 * ns);
  }
}

TEST(Dial, the_count_of_a_damaged_header_does_not_stop_the_receiver) {
  const Times with = measure({.item_overhead_ns = 100e6}, 1, 8, 4'000'000'000);
  EXPECT_LT(with.one_way_ns, second);
}

TEST(Dial, latency_is_added_to_each_frame_and_not_between_frames) {
  const Times without = measure({}, 20, 8);
  for (const double ns : settings_ns) {
    const Times with = measure({.latency_ns = ns}, 20, 8);
    expect_added(with.posts_ns, without.posts_ns, 0);
    expect_added(with.one_way_ns, without.one_way_ns, ns);
    EXPECT_LT(with.between_ns, without.between_ns + 1'000);
  }
}

TEST(Dial, the_gap_lies_between_frames_and_the_host_does_not_wait_for_it) {
  const Times without = measure({}, 20, 8);
  for (const double ns : settings_ns) {
    const Times with = measure({.gap_ns = ns}, 20, 8);
    EXPECT_LE(with.posts_ns, without.posts_ns + 1'000);
    EXPECT_NEAR(double(with.one_way_ns), double(without.one_way_ns), 100);
    expect_added(with.between_ns, 0, 19 * ns);
  }
}

TEST(Dial, the_gap_per_byte_delays_a_frame_by_its_bytes_and_the_host_does_not_wait_for_it) {
  constexpr std::size_t bytes = 10'000;
  const Times without = measure({}, 10, bytes);
  for (const double ns_per_byte : {1.0, 2.0, 5.0, 10.0, 100.0}) {
    const Times with = measure({.gap_per_byte_ns = ns_per_byte}, 10, bytes);
    const double frame_ns = ns_per_byte * double(bytes + sizeof(transport::FrameHeader));
    EXPECT_LE(with.posts_ns, without.posts_ns + 1'000);
    expect_added(with.one_way_ns, without.one_way_ns, frame_ns);
    expect_added(with.between_ns, 0, 9 * frame_ns);
  }
}

TEST(Dial, random_delays_lie_between_0_and_twice_their_value_and_have_it_as_mean) {
  constexpr std::size_t trips = 2'000;
  const double base_ns = double(measure({}, 1, 8).one_way_ns), dialled_ns = 20e3;
  double sum = 0, least = 1e9, most = 0;
  std::int64_t begin = 0;
  run(2, {.latency_ns = dialled_ns, .random = true, .seed = 3}, [&](Pe& pe) {
    for (std::size_t trip = 0; trip < trips; ++trip) {
      if (pe.endpoint.id() == 0) {
        begin = pe.endpoint.now();
        pe.send(1, trip, 8);
        pe.receive();
      } else {
        const double delay_ns = double(pe.receive() - begin) - base_ns;
        sum += delay_ns;
        least = std::min(least, delay_ns);
        most = std::max(most, delay_ns);
        pe.send(0, trip, 8);
      }
    }
  });
  EXPECT_NEAR(sum / trips, dialled_ns, 0.05 * dialled_ns);
  EXPECT_GT(least, -100);
  EXPECT_LT(least, 0.01 * dialled_ns);
  EXPECT_GT(most, 1.98 * dialled_ns);
  EXPECT_LT(most, 2 * dialled_ns + 100);
}

TEST(Dial, a_frame_that_the_transport_refuses_pays_o_once) {
  sim::Conditions conditions;
  conditions.inbox_frames = 1;
  run(
      2, {.overhead_ns = 100e3},
      [](Pe& pe) {
        if (pe.endpoint.id() == 1) {
          for (std::int64_t left = 1'000'000; left > 0; left = 1'000'000 - pe.endpoint.now()) pe.endpoint.sleep(left);
          pe.receive();
          pe.receive();
          return;
        }
        pe.send(1, 0, 8);
        std::int64_t begin = pe.endpoint.now();
        EXPECT_FALSE(pe.try_send(1, 1, 8));
        EXPECT_NEAR(double(pe.endpoint.now() - begin), 100e3, 1'000);
        begin = pe.endpoint.now();
        EXPECT_FALSE(pe.try_send(1, 1, 8));
        EXPECT_LT(pe.endpoint.now() - begin, 1'000);
        while (!pe.try_send(1, 1, 8)) pe.endpoint.sleep(10'000);
      },
      conditions);
}

TEST(Dial, frames_of_a_pe_to_itself_are_not_delayed) {
  run(1, {.overhead_ns = 1e6, .item_overhead_ns = 1e6, .gap_ns = 1e6, .latency_ns = 1e6, .gap_per_byte_ns = 1000},
      [](Pe& pe) {
        const std::int64_t begin = pe.endpoint.now();
        for (std::size_t i = 0; i < 10; ++i) pe.send(0, i, 100);
        for (std::size_t i = 0; i < 10; ++i) pe.receive();
        EXPECT_LT(pe.endpoint.now() - begin, 100'000);
      });
}

TEST(Dial, sleep_ends_after_its_time_while_a_frame_is_delayed) {
  run(2, {.latency_ns = 50e6}, [](Pe& pe) {
    if (pe.endpoint.id() == 0) return pe.send(1, 1, 8);
    transport::Arrival arrival;
    pe.endpoint.sleep(second);  // until the frame arrives
    EXPECT_FALSE(pe.endpoint.poll(arrival));
    const std::int64_t begin = pe.endpoint.now();
    pe.endpoint.sleep(10'000);
    EXPECT_NEAR(double(pe.endpoint.now() - begin), 10'000, 100);
    EXPECT_FALSE(pe.endpoint.poll(arrival));
    pe.endpoint.sleep(second);
    EXPECT_NEAR(double(pe.endpoint.now() - begin), 50e6, 0.01 * 50e6);
    EXPECT_TRUE(pe.endpoint.poll(arrival));
  });
}

TEST(Dial, a_full_delay_queue_and_a_full_injector_hold_the_sender_back_and_lose_nothing) {
  constexpr std::size_t frames = 10'000;
  for (const base::DialSettings& dials : {base::DialSettings{.latency_ns = 50e6}, base::DialSettings{.gap_ns = 5e3}}) {
    std::size_t refused = 0;
    run(2, dials, [&](Pe& pe) {
      if (pe.endpoint.id() == 0) {
        EXPECT_EQ(pe.endpoint.try_begin_in_place(1), nullptr);
        for (std::size_t i = 0; i < frames;) {
          if (pe.try_send(1, i, 8)) {
            ++i;
          } else {
            ++refused;
            pe.endpoint.sleep(100'000);
          }
        }
        pe.endpoint.drain();
      } else {
        for (std::size_t i = 0; i < frames; ++i) pe.receive();
      }
    });
    EXPECT_GT(refused, 0u);
  }
}

// --- exactly once and in order, with all dials

struct Traffic {
  std::size_t pes = 0;
  std::uint64_t frames = 0;  // of each PE
  std::uint64_t received = 0;
  std::vector<std::uint64_t> next;  // by source and target: the number that the target expects

  std::uint64_t& next_of(std::size_t source, std::size_t target) { return next[source * pes + target]; }
};

std::uint8_t hops_of(std::size_t source, std::size_t target) { return (source + target) % 3 == 0 ? 1 : 0; }

class Player {
 public:
  Player(Pe& pe, Traffic& traffic, std::uint64_t seed)
      : pe_(&pe), traffic_(&traffic), random_(seed * 1000 + pe.endpoint.id()), sent_to_(traffic.pes) {}

  void play() {
    std::uint64_t sent = 0;
    while (sent < traffic_->frames || traffic_->received < traffic_->frames * traffic_->pes || !held_.empty() ||
           pe_->outstanding != 0) {
      bool moved = sent < traffic_->frames && random_.one_in(2) && send();
      sent += moved;
      moved |= receive();
      moved |= pe_->reclaim() != 0;
      if (!moved) pe_->endpoint.sleep(std::int64_t(random_.between(1'000, 200'000)));
    }
    pe_->endpoint.drain();
  }

 private:
  bool send() {
    const std::size_t target = random_.below(traffic_->pes);
    const std::uint64_t number = sent_to_[target];
    const std::uint8_t hops_left = hops_of(pe_->endpoint.id(), target);
    const std::size_t payload_bytes = random_.size(sizeof number, 8'000), tail_bytes = random_.one_in(2) ? 0 : 6;
    const auto count = std::uint32_t(random_.between(1, 5));
    bool posted = false;
    if (payload_bytes + tail_bytes <= pe_->endpoint.by_value_bytes_max() && hops_left == 0 && random_.one_in(2)) {
      transport::SmallFrame small;
      pe_->fill(small.frame, number, payload_bytes, count, 0, tail_bytes);
      posted = pe_->endpoint.try_post(target, &small.frame, small.message + payload_bytes + tail_bytes, false) ==
               Posted::copied;
    } else {
      posted = pe_->try_send(target, number, payload_bytes, count, hops_left, tail_bytes);
    }
    sent_to_[target] += posted;
    return posted;
  }

  bool receive() {
    transport::Arrival arrival;
    if (!held_.empty() && random_.one_in(3)) {
      check(held_.front());  // still there
      pe_->endpoint.release(held_.front());
      held_.pop_front();
    }
    if (!pe_->endpoint.poll(arrival)) return false;
    std::uint64_t& expected = traffic_->next_of(arrival.header.source, pe_->endpoint.id());
    EXPECT_EQ(check(arrival), expected) << "from PE " << arrival.header.source << " to PE " << pe_->endpoint.id();
    ++expected;
    ++traffic_->received;
    if (arrival.owned != 0) {
      held_.push_back(arrival);
    } else {
      pe_->endpoint.release(arrival);
    }
    return true;
  }

  /// Checks the content, and returns the frame's number.
  static std::uint64_t check(const transport::Arrival& arrival) {
    std::uint64_t number = 0;
    std::memcpy(&number, arrival.payload, sizeof number);
    const auto is_filled = [&](std::byte byte) { return byte == std::byte(number % 251); };
    EXPECT_TRUE(
        std::all_of(arrival.payload + sizeof number, arrival.payload + arrival.header.payload_bytes, is_filled));
    EXPECT_TRUE(std::all_of(arrival.tail_end - arrival.header.tail_bytes, arrival.tail_end, is_filled));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arrival.payload) % 64, 32u);
    return number;
  }

  Pe* pe_;
  Traffic* traffic_;
  Random random_;
  std::vector<std::uint64_t> sent_to_;
  std::deque<transport::Arrival> held_;
};

base::DialSettings random_dials(Random& random, std::uint64_t seed) {
  return {.overhead_ns = double(random.size(1, 20'000)),
          .item_overhead_ns = double(random.size(1, 2'000)),
          .gap_ns = double(random.size(1, 50'000)),
          .latency_ns = double(random.size(1, 500'000)),
          .gap_per_byte_ns = random.one_in(2) ? 0 : random.fraction() * 10,
          .random = random.one_in(2),
          .seed = seed};
}

TEST(Dial, frames_arrive_exactly_once_and_in_order_with_all_dials) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Traffic traffic{.pes = random.between(1, 6), .frames = random.between(20, 100), .next = {}};
    traffic.next.resize(traffic.pes * traffic.pes);
    sim::Conditions conditions = sim::random_conditions(random, traffic.pes);
    const base::DialSettings dials = random_dials(random, seed);
    run(
        traffic.pes, dials, [&](Pe& pe) { Player(pe, traffic, seed).play(); }, conditions, seed);
    EXPECT_EQ(traffic.received, traffic.frames * traffic.pes);
    if (HasFailure()) return;
  }
}

// --- memory that the transport gives back at once

/// Sends every frame at once, so that its memory belongs to the caller again.
class AtOnce final : public transport::Endpoint {
 public:
  explicit AtOnce(transport::Endpoint& claims)
      : transport::Endpoint(claims.host_map(), claims.shared_memory()), claims_(&claims) {}

  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override {
    return claims_->try_claim(frame_bytes, tag);
  }
  std::size_t block_bytes(std::size_t frame_bytes) const override { return claims_->block_bytes(frame_bytes); }
  void drop(transport::Frame* frame) override {
    ++dropped;
    claims_->drop(frame);
  }
  Posted try_post(std::size_t, transport::Frame* frame, const std::byte*, bool) override {
    if (refusals-- > 0) return Posted::refused;
    counts.push_back(frame->header.count);
    return Posted::copied;
  }
  std::size_t by_value_bytes_max() const override { return claims_->by_value_bytes_max(); }
  std::size_t reclaim(void (*)(void*, std::size_t, std::uint64_t), void*) override { return 0; }
  bool poll(transport::Arrival&) override { return false; }
  void release(const transport::Arrival&) override {}
  void sleep(std::int64_t ns_max) override { claims_->sleep(ns_max); }
  transport::TransportCosts costs() const override { return claims_->costs(); }
  std::int64_t now() const override { return claims_->now(); }

  int dropped = 0, refusals = 0;      // refusals: of the next posts
  std::vector<std::uint32_t> counts;  // of the frames' headers, in the order of the posts

 private:
  transport::Endpoint* claims_;
};

TEST(Dial, memory_that_the_transport_gives_back_at_once_is_reclaimed_with_its_tag) {
  sim::World world({.pes = 2});
  world.run(
      [&](std::size_t pe) {
        if (pe != 0) return;
        AtOnce inner(world.endpoint(0));
        DialledEndpoint endpoint(inner, {{.gap_ns = 1e6}, [&](std::int64_t ns) { world.pass_time(0, ns); }});
        std::vector<std::uint64_t> tags;
        const auto reclaim = [&] {
          return endpoint.reclaim(
              [](void* all, std::size_t block_bytes, std::uint64_t tag) {
                EXPECT_GE(block_bytes, 1'000u);
                static_cast<std::vector<std::uint64_t>*>(all)->push_back(tag);
              },
              &tags);
        };
        for (std::uint64_t tag = 7; tag < 10; ++tag) {
          transport::Frame* const frame = endpoint.try_claim(transport::frame_overhead + 1'000, tag);
          ASSERT_NE(frame, nullptr);
          frame->header = {};
          frame->header.payload_bytes = 1'000;
          const Posted posted = endpoint.try_post(1, frame, frame->payload() + 1'000, true);
          EXPECT_EQ(posted, tag == 7 ? Posted::copied : Posted::lent);  // the first one leaves at once
          if (posted == Posted::copied) endpoint.drop(frame);
        }
        EXPECT_EQ(reclaim(), 0u);
        EXPECT_EQ(inner.dropped, 1);
        endpoint.sleep(second);
        EXPECT_EQ(reclaim(), 1u);
        endpoint.drain();
        EXPECT_EQ(reclaim(), 1u);
        EXPECT_EQ(reclaim(), 0u);
        EXPECT_EQ(tags, (std::vector<std::uint64_t>{8, 9}));
        EXPECT_EQ(inner.dropped, 3);
      },
      sim::forever / 2, [] { return true; });
  EXPECT_EQ(world.missing(), "");
}

TEST(Dial, no_frame_overtakes_one_that_the_transport_has_refused) {
  sim::World world({.pes = 2});
  world.run(
      [&](std::size_t pe) {
        if (pe != 0) return;
        AtOnce inner(world.endpoint(0));
        DialledEndpoint endpoint(inner, {{.gap_ns = 10e3}, [&](std::int64_t ns) { world.pass_time(0, ns); }});
        for (std::uint32_t count = 1; count <= 3; ++count) {
          transport::SmallFrame small;
          small.frame.header = {};
          small.frame.header.count = count;
          if (count == 3) {
            world.pass_time(0, 100'000);
            inner.refusals = 2;  // the second frame, in both calls that move frames
          }
          EXPECT_EQ(endpoint.try_post(1, &small.frame, small.message, false), Posted::copied);
        }
        endpoint.drain();
        EXPECT_EQ(inner.counts, (std::vector<std::uint32_t>{1, 2, 3}));
      },
      sim::forever / 2, [] { return true; });
}

}  // namespace
}  // namespace headway::dial
