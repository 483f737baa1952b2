// SPDX-License-Identifier: BSD-3-Clause
// Whether busy-waits kept their times, with a clock that the test moves.
#include <gtest/gtest.h>

#include <array>
#include <headway/transport/dial/endpoint.hpp>

namespace headway::dial {
namespace {

constexpr std::array<std::size_t, 1> first_of_host = {0};

/// PE 0 of two on a transport that takes all frames. Each look at its clock takes `look_ns`.
class Clock final : public transport::Endpoint, private transport::SharedMemory {
 public:
  explicit Clock(std::int64_t look_ns)
      : transport::Endpoint({.id = 0, .size = 2, .pes_per_process = 1, .host_firsts = first_of_host}, *this),
        look_ns_(look_ns) {}

  transport::Frame* try_claim(std::size_t, std::uint64_t) override { return nullptr; }
  std::size_t block_bytes(std::size_t frame_bytes) const override { return frame_bytes; }
  void drop(transport::Frame*) override {}
  Posted try_post(std::size_t, transport::Frame*, const std::byte*, bool) override { return Posted::copied; }
  std::size_t by_value_bytes_max() const override { return transport::by_value_bytes_most; }
  std::size_t reclaim(void (*)(void*, std::size_t, std::uint64_t), void*) override { return 0; }
  bool poll(transport::Arrival&) override { return false; }
  void release(const transport::Arrival&) override {}
  void sleep(std::int64_t) override {}
  transport::TransportCosts costs() const override { return {1, 1, 1}; }
  std::int64_t now() const override { return now_ += look_ns_; }

 private:
  std::span<std::byte> board(std::size_t) override { return {}; }

  std::int64_t look_ns_;
  mutable std::int64_t now_ = 0;
};

DialledEndpoint::Kept kept_after_posts(double overhead_ns, std::int64_t look_ns, int posts) {
  Clock clock(look_ns);
  DialledEndpoint endpoint(clock, {{.overhead_ns = overhead_ns}});
  for (int i = 0; i < posts; ++i) {
    transport::SmallFrame small{};
    EXPECT_EQ(endpoint.try_post(1, &small.frame, small.message, false), transport::Endpoint::Posted::copied);
  }
  return endpoint.kept();
}

TEST(DialsKept, busy_waits_that_end_in_time_are_kept) {
  const auto kept = kept_after_posts(10e3, 25, 100);
  EXPECT_EQ(kept.waits, 100);
  EXPECT_EQ(kept.dialled_ns, 1'000'000);
  EXPECT_LE(kept.longer_ns, 100 * 25);
  EXPECT_FALSE(kept.is_exceeded());
}

TEST(DialsKept, busy_waits_during_which_the_pe_does_not_run_are_exceeded) {
  const auto kept = kept_after_posts(10e3, 4'000, 100);  // each wait takes three looks of 4 us
  EXPECT_EQ(kept.longer_ns, 100 * 2'000);
  EXPECT_TRUE(kept.is_exceeded());
}

TEST(DialsKept, up_to_200_ns_or_5_percent_are_in_time) {
  EXPECT_FALSE(kept_after_posts(100, 150, 100).is_exceeded());       // 50 % of 100 ns
  EXPECT_FALSE(kept_after_posts(100e3, 26'000, 100).is_exceeded());  // 4 us of 100 us
  EXPECT_TRUE(kept_after_posts(100e3, 27'000, 100).is_exceeded());   // 8 us of 100 us
}

TEST(DialsKept, without_waits_nothing_is_exceeded) { EXPECT_FALSE(kept_after_posts(0, 1'000, 10).is_exceeded()); }

}  // namespace
}  // namespace headway::dial
