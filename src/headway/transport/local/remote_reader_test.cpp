// SPDX-License-Identifier: BSD-3-Clause
// RemoteReader, and the blocks that LocalEndpoint samples for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <headway/transport/local/local.hpp>
#include <headway/transport/local/remote_reader.hpp>
#include <memory>
#include <tuple>

namespace headway::local {
namespace {

constexpr std::size_t arena_bytes = std::size_t(1) << 20;

TEST(RemoteReader, several_slow_samples_and_not_one_make_a_reader_remote) {
  for (const double together : {3.0, 5.0, 8.0, 11.0}) {
    RemoteReader lines;
    for (int i = 0; i < 30; ++i) lines.add_sample(together);
    lines.add_sample(1000);  // an interruption
    EXPECT_FALSE(lines.choose_past_caches()) << together;
    for (int i = 0; i < 5; ++i) lines.add_sample(27);
    EXPECT_TRUE(lines.choose_past_caches()) << together;
    for (int i = 0; i < 5; ++i) lines.add_sample(together);
    EXPECT_FALSE(lines.choose_past_caches()) << together;
  }
}

TEST(RemoteReader, a_reader_with_a_shared_cache_whose_blocks_are_new_does_not_become_remote) {
  RemoteReader lines;
  for (const double ns : {13, 15, 17, 13, 15, 15, 16, 15, 15, 17, 15, 18, 14, 20, 11, 19}) {  // a Xeon's
    lines.add_sample(ns);
    EXPECT_FALSE(lines.choose_past_caches()) << ns;
  }
}

/// Counts the samples of `blocks` blocks, each of which can be sampled.
int samples_of(RemoteReader& lines, int blocks, double ns_per_line) {
  int samples = 0;
  for (int i = 0; i < blocks; ++i) {
    if (!lines.is_sample_due()) continue;
    lines.add_sample(ns_per_line);
    ++samples;
  }
  return samples;
}

TEST(RemoteReader, a_reader_that_stays_as_it_is_is_sampled_seldom_and_one_that_changes_at_once) {
  RemoteReader lines;
  EXPECT_LT(samples_of(lines, 6400, 4), 110);
  EXPECT_GT(samples_of(lines, 6400, 4), 90);
  int blocks = 0;
  for (; !lines.choose_past_caches(); ++blocks) samples_of(lines, 1, 27);
  EXPECT_LE(blocks, 64 + 6) << "one sample in its turn, the others at once";
  EXPECT_LT(samples_of(lines, 6400, 27), 110);
  EXPECT_GT(samples_of(lines, 6400, 27), 90);
  for (blocks = 0; blocks < 100 && (lines.choose_past_caches() || lines.choose_past_caches()); ++blocks)
    samples_of(lines, 1, 11);
  EXPECT_LE(blocks, 64 + 6);
}

TEST(RemoteReader, a_sample_that_a_block_does_not_allow_is_due_for_the_next_block) {
  RemoteReader lines;
  samples_of(lines, 6400, 4);
  while (!lines.is_sample_due()) continue;
  EXPECT_TRUE(lines.is_sample_due());
}

TEST(RemoteReader, a_remote_reader_has_a_plain_block_now_and_then_and_the_next_one_after_a_fast_sample) {
  RemoteReader lines;
  for (int i = 0; i < 10; ++i) lines.add_sample(27);
  int plain = 0;
  for (int i = 0; i < 1280; ++i) plain += !lines.choose_past_caches();
  EXPECT_EQ(plain, 10);
  lines.add_sample(11);
  EXPECT_FALSE(lines.choose_past_caches());
}

TEST(RemoteReader, old_samples_are_forgotten) {
  RemoteReader lines;
  for (int i = 0; i < 10; ++i) lines.add_sample(27);
  int blocks = 0;
  for (int round = 0; round < 10'000 && lines.choose_past_caches() + lines.choose_past_caches() != 0; ++round, ++blocks)
    lines.is_sample_due();
  EXPECT_GT(blocks, 1000);
  EXPECT_LT(blocks, 6000);
}

/// Two endpoints in one thread: PE 0 claims a frame, fills it with 0xEE and posts it to PE 1, which releases it.
class Sampling {
 public:
  bool claim(std::size_t payload, bool ask = true, std::size_t target = 1) {
    transport::Frame* const frame = take(payload);
    const bool sampled = ask && is_sampled(frame);
    fill(frame, payload);
    EXPECT_EQ(sender_->try_post(target, frame, frame->payload() + payload, true), transport::Endpoint::Posted::lent);
    transport::Endpoint& receiver = target == 0 ? *sender_ : *receiver_;
    transport::Arrival arrival;
    EXPECT_TRUE(receiver.poll(arrival));
    receiver.release(arrival);
    sender_->reclaim([](void*, std::size_t, std::uint64_t) {}, nullptr);
    return sampled;
  }
  bool claim_and_drop(std::size_t payload) {
    transport::Frame* const frame = take(payload);
    const bool sampled = is_sampled(frame);
    fill(frame, payload);
    sender_->drop(frame);
    return sampled;
  }

 private:
  /// The arena reuses the last freed block: always the same one.
  transport::Frame* take(std::size_t payload) { return sender_->try_claim(transport::frame_overhead + payload, 0); }
  static void fill(transport::Frame* frame, std::size_t payload) {
    frame->header = {};
    frame->header.payload_bytes = std::uint32_t(payload);
    frame->header.count = 1;
    std::memset(frame->payload(), 0xEE, payload);
  }
  /// A sample leaves zeros.
  bool is_sampled(transport::Frame* frame) {
    const auto* const lines = reinterpret_cast<const std::byte*>(frame) + RemoteReader::line_bytes;
    const auto are_all = [&](std::byte value) {
      return std::all_of(lines, lines + RemoteReader::sampled_bytes, [&](std::byte b) { return b == value; });
    };
    const bool was_filled = are_all(std::byte(0xEE));
    std::ignore = sender_->should_write_past_caches(frame);
    return was_filled && are_all(std::byte(0));
  }

  Segment segment_{2, 1, 2, arena_bytes};
  std::unique_ptr<transport::Endpoint> sender_ = make_endpoint(segment_, 0), receiver_ = make_endpoint(segment_, 1);
};

TEST(LocalEndpoint, samples_blocks_that_another_pe_has_read_and_no_others) {
  constexpr std::size_t long_enough = 1800, too_short = 1500, small = 900;
  {
    Sampling pe;
    EXPECT_FALSE(pe.claim(long_enough)) << "no PE has read it";
    EXPECT_TRUE(pe.claim(long_enough));
  }
  {
    Sampling pe;
    pe.claim(too_short);
    EXPECT_FALSE(pe.claim(long_enough)) << "bytes that were not filled were not read";
    EXPECT_TRUE(pe.claim(long_enough));
  }
  {
    Sampling pe;
    pe.claim(long_enough, true, 0);
    EXPECT_FALSE(pe.claim(long_enough)) << "this PE has read it";
  }
  {
    Sampling pe;
    pe.claim(long_enough, false);
    EXPECT_FALSE(pe.claim(long_enough)) << "how it was written is not known";
    EXPECT_TRUE(pe.claim(long_enough));
  }
  {
    Sampling pe;
    pe.claim(long_enough);
    EXPECT_TRUE(pe.claim_and_drop(long_enough));
    EXPECT_FALSE(pe.claim(long_enough)) << "it was not read since";
  }
  {
    Sampling pe;
    pe.claim(small);
    EXPECT_FALSE(pe.claim(small)) << "a block of 1 KiB";
  }
}

}  // namespace
}  // namespace headway::local
