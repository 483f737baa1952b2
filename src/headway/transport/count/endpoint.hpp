// SPDX-License-Identifier: BSD-3-Clause
/// An endpoint that counts the frames of another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/transport/count/counts.hpp>
#include <headway/transport/count/phases.hpp>
#include <headway/transport/count/time_split.hpp>
#include <headway/transport/forwarding_endpoint.hpp>
#include <headway/transport/observer.hpp>
#include <string_view>
#include <vector>

namespace headway::count {

/// The activity of a PE, as far as frames can end it.
enum class Activity {
  working,
  handling,     // a handler runs
  sending,      // waits for memory, or for a place in a queue
  waiting,      // for some messages of other PEs
  waiting_all,  // for the end of all messages: quiescence, an epoch. Handlers work meanwhile
};

/// Exists only in runs that are counted (HEADWAY_COUNTS). All calls pass to `inner`.
class CountedEndpoint final : public transport::ForwardingEndpoint, public transport::Observer {
 public:
  /// `inner` outlives it. `activity` is called on the PE's thread.
  /// `times`: what measures the time of an endpoint without a simulated clock.
  CountedEndpoint(transport::Endpoint& inner, std::function<Activity()> activity,
                  TimeSplit::Clock times = TimeSplit::Clock::cycles);

  /// The counts of a PE's endpoint; nullptr in a run that is not counted.
  static CountedEndpoint* of(transport::Endpoint& endpoint) {
    if (!transport::is_observed()) [[likely]]
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

  transport::Observer* observer() override { return this; }
  void leave_wait() override;
  void end_handler() override;
  void begin_phase(std::string_view name) override;
  void end_phase() override;
  void begin_work(Work work) override;
  void end_work() override;

  /// All counts since the endpoint was made.
  PeCounts counts();
  /// Of phases that have ended, up to the time of counts().
  std::vector<PhaseCounts> phases() { return phases_.counts(counts_.run_ns); }

  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  void post_in_place(std::size_t target, const transport::FrameHeader& header) override;
  bool poll(transport::Arrival& arrival) override;

 private:
  struct Source {
    const void* self;
    ReadCounts read;
  };

  void count_sent(std::size_t target, const transport::FrameHeader& header);
  void look_for_wait(bool arrived, Activity activity);
  void end_burst(PeCounts& counts, std::int64_t at) const;
  void end_wait(Activity activity);

  std::function<Activity()> activity_;
  PeCounts counts_;
  std::vector<bool> sent_to_;
  std::vector<Source> aggregators_;
  std::int64_t begin_ns_, last_burst_ns_, burst_begin_ns_ = 0, wait_begin_ns_ = 0;
  std::uint64_t burst_frames_ = 0;
  TimeSplit split_;
  Phases phases_;
  Spending outside_ = Spending::program;  // of handlers
  std::vector<Spending> works_;           // states before begin_work()
  bool polls_are_quick_;
  Activity waits_ = Activity::working;
  bool had_turn_ = false;  // in the present wait
};

}  // namespace headway::count
