// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/model/prediction.hpp>
#include <headway/transport/count/endpoint.hpp>
#include <utility>

namespace headway::count {

void AggregatorCounts::add(const AggregatorCounts& other) {
  messages += other.messages;
  payload_bytes += other.payload_bytes;
  forwarded += other.forwarded;
  alone += other.alone;
  full += other.full;
  timeout += other.timeout;
  idle += other.idle;
  requested += other.requested;
  peak_buffer_bytes += other.peak_buffer_bytes;
  buffer_bytes = std::max(buffer_bytes, other.buffer_bytes);
  // of the PE, not of the aggregator
  spilled_frames = std::max(spilled_frames, other.spilled_frames);
  spilled_bytes_peak = std::max(spilled_bytes_peak, other.spilled_bytes_peak);
}

namespace {

/// nullptr in real time.
const transport::SimulatedClock* simulated_clock(const transport::Endpoint& endpoint) {
  const auto* const clock = dynamic_cast<const transport::SimulatedClock*>(&endpoint);
  return clock != nullptr && clock->times() ? clock : nullptr;
}

/// Of a transport in shared memory a poll takes about as long as a look at the clock.
bool polls_are_quick(const transport::Endpoint& endpoint, TimeSplit::Clock times) {
  return times == TimeSplit::Clock::cycles &&
         dynamic_cast<const transport::ForwardingEndpoint*>(&endpoint) == nullptr &&
         simulated_clock(endpoint) == nullptr && endpoint.costs().overhead_ns <= 100;
}

bool waits(Activity activity) { return activity == Activity::waiting || activity == Activity::waiting_all; }

}  // namespace

CountedEndpoint::CountedEndpoint(transport::Endpoint& inner, std::function<Activity()> activity, TimeSplit::Clock times)
    : transport::ForwardingEndpoint(inner),
      transport::Observer(inner.observer()),
      activity_(std::move(activity)),
      sent_to_(inner.size()),
      begin_ns_(inner.now()),
      last_burst_ns_(begin_ns_),
      split_(inner, simulated_clock(inner), times),
      phases_(split_, times == TimeSplit::Clock::run || simulated_clock(inner) != nullptr),
      polls_are_quick_(polls_are_quick(inner, times)) {}

void CountedEndpoint::leave(const void* self) {
  const auto source = std::ranges::find(aggregators_, self, &Source::self);
  if (source == aggregators_.end()) return;
  counts_.aggregators.add(source->read(self));
  aggregators_.erase(source);
}

PeCounts CountedEndpoint::counts() {
  PeCounts counts = counts_;
  for (const Source& source : aggregators_) counts.aggregators.add(source.read(source.self));
  counts.receivers = std::uint64_t(std::ranges::count(sent_to_, true));
  const std::int64_t at = now();
  if (burst_frames_ != 0) end_burst(counts, at);
  counts_.run_ns = counts.run_ns = std::uint64_t(at - begin_ns_);
  TimeSplit::to_ns(split_.sums(), counts.run_ns, counts.spent_ns);
  counts.hardware_errno = std::uint64_t(phases_.hardware_errno());
  return counts;
}

void CountedEndpoint::count_sent(std::size_t target, const transport::FrameHeader& header) {
  if (target == id()) return;
  if (burst_frames_++ == 0) burst_begin_ns_ = now();
  ++counts_.frames_sent;
  counts_.bytes_sent += sizeof header + header.payload_bytes + header.tail_bytes;
  if (header.kind == std::uint8_t(transport::FrameKind::messages))
    counts_.messages_in_frames += header.count;
  else
    ++counts_.control_frames;
  sent_to_[target] = true;
}

transport::Endpoint::Posted CountedEndpoint::try_post(std::size_t target, transport::Frame* frame,
                                                      const std::byte* tail_end, bool claimed) {
  const transport::FrameHeader header = frame->header;  // the receiver may have the frame already after the post
  const Spending before = split_.state();
  if (before != Spending::communication) split_.enter(Spending::communication);
  const Posted posted = inner().try_post(target, frame, tail_end, claimed);
  if (before != Spending::communication) split_.enter(before);
  if (posted == Posted::refused)
    ++counts_.retries;
  else
    count_sent(target, header);
  return posted;
}

void CountedEndpoint::post_in_place(std::size_t target, const transport::FrameHeader& header) {
  inner().post_in_place(target, header);
  count_sent(target, header);
}

/// The frame's handler follows. Handlers of the runtime's own messages, and of messages that go on to another PE, are
/// communication.
bool CountedEndpoint::poll(transport::Arrival& arrival) {
  const Activity activity = activity_();
  if (activity != Activity::handling) outside_ = activity == Activity::working ? Spending::program : Spending::waiting;
  const bool is_looked_at = !polls_are_quick_ || split_.state() != outside_;
  if (is_looked_at) split_.enter(Spending::waiting);
  const bool arrived = inner().poll(arrival);
  if (arrived ? burst_frames_ != 0 : waits_ == Activity::working || burst_frames_ != 0)
    look_for_wait(arrived, activity);
  if (!arrived) {
    if (polls_are_quick_)
      split_.become(outside_);
    else
      split_.enter(outside_);
    return false;
  }
  const transport::FrameHeader& header = arrival.header;
  if (header.source != id()) {
    ++counts_.frames_received;
    counts_.bytes_received += sizeof header + header.payload_bytes + header.tail_bytes;
    if (waits_ != Activity::working) end_wait(activity);
  }
  const bool is_for_program = header.kind == std::uint8_t(transport::FrameKind::messages) && header.hops_left == 0;
  split_.pass(is_looked_at ? Spending::communication : outside_,
              is_for_program ? Spending::handlers : Spending::communication);
  return true;
}

/// A burst ends when the PE waits. If it finds nothing then, it begins to wait.
void CountedEndpoint::look_for_wait(bool arrived, Activity activity) {
  if (!waits(activity)) return;
  const std::int64_t at = now();
  if (burst_frames_ != 0) {
    end_burst(counts_, at);
    burst_frames_ = 0;
    last_burst_ns_ = at;
    ++counts_.turns;
    counts_.turns_of_all += activity == Activity::waiting_all;
    counts_.turns_of_handlers += activity == Activity::waiting && had_turn_;
    had_turn_ = true;
  }
  if (arrived || waits_ != Activity::working) return;
  wait_begin_ns_ = at;
  waits_ = activity;
}

void CountedEndpoint::end_burst(PeCounts& counts, std::int64_t at) const {
  ++counts.bursts;
  counts.burst_frames_max = std::max(counts.burst_frames_max, burst_frames_);
  counts.burst_ns += std::uint64_t(at - burst_begin_ns_);
  const double frames = double(burst_frames_), interval_ns = double(at - burst_begin_ns_) / frames;
  for (std::size_t i = 0; i < gaps; ++i) {
    counts.gap_delay_ns[i] +=
        std::uint64_t(model::gap_of_burst_ns(frames, interval_ns, double(at - last_burst_ns_), gap_ns_of(i)));
  }
}

/// Of a wait that ended without a frame, as by a word in shared memory, nothing is counted.
void CountedEndpoint::end_wait(Activity activity) {
  waits_ = Activity::working;
  if (!waits(activity)) return;
  ++counts_.waits;
  counts_.waits_of_all += activity == Activity::waiting_all;
  counts_.waiting_ns += std::uint64_t(now() - wait_begin_ns_);
}

// --- calls of the layers above

void CountedEndpoint::leave_wait() {
  waits_ = Activity::working;
  had_turn_ = false;
  outside_ = Spending::program;
  split_.enter(works_.empty() ? Spending::program : Spending::communication);
  Observer::leave_wait();
}

void CountedEndpoint::end_handler() {
  split_.enter(outside_);
  Observer::end_handler();
}

void CountedEndpoint::begin_phase(std::string_view name) {
  Observer::begin_phase(name);
  phases_.begin(name);
}

void CountedEndpoint::end_phase() {
  phases_.end();
  Observer::end_phase();
}

void CountedEndpoint::begin_work(Work work) {
  works_.push_back(split_.state());
  split_.enter(work == Work::handlers ? Spending::handlers : Spending::communication);
}

void CountedEndpoint::end_work() {
  split_.enter(works_.back());
  works_.pop_back();
}

}  // namespace headway::count
