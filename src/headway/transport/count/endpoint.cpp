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

CountedEndpoint::CountedEndpoint(transport::Endpoint& inner, std::function<Activity()> activity)
    : transport::ForwardingEndpoint(inner),
      activity_(std::move(activity)),
      sent_to_(inner.size()),
      begin_ns_(inner.now()),
      last_burst_ns_(begin_ns_) {
  observers.fetch_add(1, std::memory_order_relaxed);
}

CountedEndpoint::~CountedEndpoint() { observers.fetch_sub(1, std::memory_order_relaxed); }

void CountedEndpoint::leave(const void* self) {
  const auto source = std::ranges::find(aggregators_, self, &Source::self);
  if (source == aggregators_.end()) return;
  counts_.aggregators.add(source->read(self));
  aggregators_.erase(source);
}

PeCounts CountedEndpoint::counts() const {
  PeCounts counts = counts_;
  for (const Source& source : aggregators_) counts.aggregators.add(source.read(source.self));
  counts.receivers = std::uint64_t(std::ranges::count(sent_to_, true));
  const std::int64_t at = now();
  if (burst_frames_ != 0) end_burst(counts, at);
  counts.run_ns = std::uint64_t(at - begin_ns_);
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
  const Posted posted = inner().try_post(target, frame, tail_end, claimed);
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

bool CountedEndpoint::poll(transport::Arrival& arrival) {
  const bool arrived = inner().poll(arrival);
  if (arrived ? burst_frames_ != 0 : waits_ == Activity::working || burst_frames_ != 0) look_for_wait(arrived);
  if (!arrived) return false;
  const transport::FrameHeader& header = arrival.header;
  if (header.source == id()) return true;
  ++counts_.frames_received;
  counts_.bytes_received += sizeof header + header.payload_bytes + header.tail_bytes;
  if (waits_ != Activity::working) end_wait();
  return true;
}

/// A burst ends when the PE waits. If it finds nothing then, it begins to wait.
void CountedEndpoint::look_for_wait(bool arrived) {
  const Activity activity = activity_();
  if (activity == Activity::working) return;
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
void CountedEndpoint::end_wait() {
  waits_ = Activity::working;
  const Activity activity = activity_();
  if (activity == Activity::working) return;
  ++counts_.waits;
  counts_.waits_of_all += activity == Activity::waiting_all;
  counts_.waiting_ns += std::uint64_t(now() - wait_begin_ns_);
}

}  // namespace headway::count
