// SPDX-License-Identifier: BSD-3-Clause
/// An endpoint that counts the frames of another one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/transport/count/counts.hpp>
#include <headway/transport/forwarding_endpoint.hpp>
#include <vector>

namespace headway::count {

/// The activity of a PE, as far as frames can end it.
enum class Activity {
  working,      // or it waits for memory or for a place in a queue
  waiting,      // for some messages of other PEs
  waiting_all,  // for the end of all messages: quiescence, an epoch. Handlers work meanwhile
};

/// Endpoints of this process that count or trace. 0 in all other runs, where calls for them are skipped.
inline std::atomic<std::size_t> observers{0};
inline bool is_observed() { return observers.load(std::memory_order_relaxed) != 0; }

/// Exists only in runs that are counted (HEADWAY_COUNTS). All calls pass to `inner`.
class CountedEndpoint final : public transport::ForwardingEndpoint {
 public:
  /// `inner` outlives it. `activity` is called on the PE's thread.
  CountedEndpoint(transport::Endpoint& inner, std::function<Activity()> activity);
  ~CountedEndpoint() override;

  /// The counts of a PE's endpoint; nullptr in a run that is not counted.
  static CountedEndpoint* of(transport::Endpoint& endpoint) {
    if (!is_observed()) [[likely]]
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
  void leave_wait() override {
    waits_ = Activity::working;
    had_turn_ = false;
    inner().leave_wait();
  }

  /// All counts since the endpoint was made.
  PeCounts counts() const;

  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  void post_in_place(std::size_t target, const transport::FrameHeader& header) override;
  bool poll(transport::Arrival& arrival) override;

 private:
  struct Source {
    const void* self;
    ReadCounts read;
  };

  void count_sent(std::size_t target, const transport::FrameHeader& header);
  void look_for_wait(bool arrived);
  void end_burst(PeCounts& counts, std::int64_t at) const;
  void end_wait();

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
