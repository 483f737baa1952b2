// SPDX-License-Identifier: BSD-3-Clause
/// An endpoint that counts the frames of another one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/transport/count/counts.hpp>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/simulated_clock.hpp>
#include <vector>

namespace headway::count {

/// The activity of a PE, as far as frames can end it.
enum class Activity {
  working,      // or it waits for memory or for a place in a queue
  waiting,      // for some messages of other PEs
  waiting_all,  // for the end of all messages: quiescence, an epoch. Handlers work meanwhile
};

/// Exists only in runs that are counted (HEADWAY_COUNTS). All calls pass to `inner`.
class CountedEndpoint final : public transport::Endpoint, public transport::SimulatedClock {
 public:
  /// `inner` outlives it. `activity` is called on the PE's thread.
  CountedEndpoint(transport::Endpoint& inner, std::function<Activity()> activity);
  ~CountedEndpoint() override;

  /// The counts of a PE's endpoint; nullptr in a run that is not counted.
  static CountedEndpoint* of(transport::Endpoint& endpoint) {
    if (existing.load(std::memory_order_relaxed) == 0) [[likely]]
      return nullptr;
    return dynamic_cast<CountedEndpoint*>(&endpoint);
  }

  /// An aggregator calls them when it is made and destroyed. `read` gives the counts of `self`.
  using ReadCounts = AggregatorCounts (*)(const void* self);
  void enter(const void* self, ReadCounts read) { aggregators_.push_back({self, read}); }
  void leave(const void* self);

  void count_barrier() { ++counts_.barriers; }
  void count_read() { ++counts_.reads; }
  void count_bulk() { ++counts_.bulk; }
  /// The PE's wait has ended, with or without a frame.
  void leave_wait() {
    waits_ = Activity::working;
    had_turn_ = false;
  }

  /// All counts since the endpoint was made.
  PeCounts counts() const;

  transport::Services* services() override { return inner_->services(); }
  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override {
    return inner_->try_claim(frame_bytes, tag);
  }
  bool should_write_past_caches(transport::Frame* claimed) override {
    return inner_->should_write_past_caches(claimed);
  }
  std::size_t block_bytes(std::size_t frame_bytes) const override { return inner_->block_bytes(frame_bytes); }
  void drop(transport::Frame* frame) override { inner_->drop(frame); }
  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  std::size_t by_value_bytes_max() const override { return inner_->by_value_bytes_max(); }
  std::byte* try_begin_in_place(std::size_t target) override { return inner_->try_begin_in_place(target); }
  void post_in_place(std::size_t target, const transport::FrameHeader& header) override;
  void accept_in_place(bool accepts) override { inner_->accept_in_place(accepts); }
  std::size_t reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) override {
    return inner_->reclaim(returned, context);
  }
  bool poll(transport::Arrival& arrival) override;
  void release(const transport::Arrival& arrival) override { inner_->release(arrival); }
  void sleep(std::int64_t ns_max) override { inner_->sleep(ns_max); }
  transport::TransportCosts costs() const override { return inner_->costs(); }
  transport::TransportCosts costs_within_host() const override { return inner_->costs_within_host(); }
  std::int64_t now() const override { return inner_->now(); }
  /// Nothing if `inner` has no simulated clock.
  void charge(std::int64_t ns) override;

 private:
  struct Source {
    const void* self;
    ReadCounts read;
  };

  void count_sent(std::size_t target, const transport::FrameHeader& header);
  void look_for_wait(bool arrived);
  void end_burst(PeCounts& counts, std::int64_t at) const;
  void end_wait();

  static std::atomic<std::size_t> existing;  // in this process

  transport::Endpoint* inner_;
  std::function<Activity()> activity_;
  PeCounts counts_;
  std::vector<bool> sent_to_;
  std::vector<Source> aggregators_;
  std::int64_t begin_ns_, last_burst_ns_, burst_begin_ns_ = 0, wait_begin_ns_ = 0;
  std::uint64_t burst_frames_ = 0;
  Activity waits_ = Activity::working;
  bool had_turn_ = false;  // in the present wait
};

}  // namespace headway::count
