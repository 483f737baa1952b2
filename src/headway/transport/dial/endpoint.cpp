// SPDX-License-Identifier: BSD-3-Clause
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <headway/transport/dial/endpoint.hpp>
#include <utility>

namespace headway::dial {
namespace {

// Frames by value that wait in the injector, and in the delay queue. Behind them the transport's own queues fill.
constexpr std::size_t copies_in_injector = 512, copies_delayed = 4096;
// Frames that one poll takes from the transport, so that it returns a visible frame soon.
constexpr unsigned arrivals_per_poll = 16;
// A sleeping PE wakes up to so much later than asked; it polls for that long instead.
constexpr std::int64_t wake_late_ns = 200'000;
// A receiver that frees a place in its queue wakes no sender.
constexpr std::int64_t refused_look_ns = 20'000;
// Simulated time between two looks at injector and arrivals in a busy-wait.
constexpr std::int64_t simulated_look_ns = 1'000;
// Looks at arrivals while one computation is charged, at most: a frame's L begins so much later.
constexpr std::int64_t looks_in_charge = 64;
constexpr std::int64_t drain_ns_max = 10'000'000'000;

}  // namespace

DialledEndpoint::DialledEndpoint(transport::Endpoint& inner, Options options)
    : transport::ForwardingEndpoint(inner, *this),
      options_(std::move(options)),
      random_(options_.dials.seed ^ (inner.id() + 1) * 0x9e3779b97f4a7c15) {
  const base::DialSettings& dials = options_.dials;
  if (dials.gap_ns != 0 || dials.gap_per_byte_ns != 0) injector_.emplace(inner, copies_in_injector);
  if (dials.latency_ns != 0) delayed_.emplace(host_map().size + 1, copies_delayed);
  inner.accept_in_place(false);
}

DialledEndpoint::~DialledEndpoint() {
  if (delayed_) delayed_->release_all([this](const transport::Arrival& arrival) { inner().release(arrival); });
}

/// A sleep of the transport also moves frames of a wire.
void DialledEndpoint::drain() {
  if (!injector_) return;
  for (std::int64_t last = now(); !injector_->empty();) {
    const std::size_t frames = injector_->frames();
    injector_->move();
    const std::int64_t at = now(), look = injector_->has_refused() ? refused_look_ns : injector_->next() - at;
    if (injector_->frames() != frames) {
      last = at;
    } else if (at - last > drain_ns_max) {
      return;
    } else if (options_.pass_time) {
      options_.pass_time(std::clamp<std::int64_t>(look, 1, wake_late_ns));
      inner().sleep(1);
    } else {
      inner().sleep(std::clamp<std::int64_t>(look - wake_late_ns, 1, wake_late_ns));
    }
  }
}

/// The delay for one event, in whole nanoseconds.
std::int64_t DialledEndpoint::draw(double ns) {
  if (ns == 0) return 0;
  return std::llround(options_.dials.random ? 2 * ns * random_.fraction() : ns);
}

transport::Frame* DialledEndpoint::try_claim(std::size_t frame_bytes, std::uint64_t tag) {
  transport::Frame* const frame = inner().try_claim(frame_bytes, tag);
  if (injector_ && frame != nullptr) injector_->claimed(frame, inner().block_bytes(frame_bytes), tag);
  return frame;
}

transport::Endpoint::Posted DialledEndpoint::try_post(std::size_t target, transport::Frame* frame,
                                                      const std::byte* tail_end, bool claimed) {
  if (target == id()) return inner().try_post(target, frame, tail_end, claimed);
  const transport::FrameHeader& header = frame->header;
  const std::size_t bytes = header.payload_bytes + std::size_t(header.tail_bytes);
  const bool is_short = header.hops_left == 0 && bytes <= inner().by_value_bytes_max();
  if (!is_short && !claimed) return Posted::refused;
  // A frame of another PE of this process belongs to the transport from here on.
  const bool by_value = is_short && (!claimed || header.source == id());
  if (injector_) {
    injector_->move();
    if (by_value && !injector_->has_room()) return Posted::refused;
  }
  const base::DialSettings& dials = options_.dials;
  if (!overhead_paid_) busy_wait(draw(dials.overhead_ns));
  Posted posted;
  if (injector_) {
    const auto frame_bytes = double(sizeof(transport::FrameHeader) + bytes);
    posted = injector_->try_post(target, frame, tail_end, claimed, by_value, draw(dials.gap_per_byte_ns * frame_bytes),
                                 draw(dials.gap_ns));
  } else {
    posted = inner().try_post(target, frame, tail_end, claimed);
  }
  overhead_paid_ = posted == Posted::refused;
  return posted;
}

std::size_t DialledEndpoint::reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) {
  if (!injector_) return inner().reclaim(returned, context);
  injector_->move();
  return injector_->reclaim(returned, context) + inner().reclaim(returned, context);
}

/// Takes frames from the transport. Returns whether there were any.
bool DialledEndpoint::take_arrivals() {
  transport::Arrival arrival;
  unsigned taken = 0;
  for (; taken < arrivals_per_poll && !delayed_->full() && inner().poll(arrival); ++taken) {
    const std::size_t source = arrival.header.source;
    if (source == id()) {
      delayed_->take(arrival, size(), now());
    } else {
      // Order holds for each process: a PE may post a frame of another PE of its process, which is its source.
      const std::size_t process = source / host_map().pes_per_process;
      delayed_->take(arrival, std::min(process, size() - 1), now() + draw(options_.dials.latency_ns));
    }
  }
  return taken != 0;
}

bool DialledEndpoint::poll(transport::Arrival& arrival) {
  if (injector_) injector_->move();
  if (!delayed_) {
    if (!inner().poll(arrival)) return false;
  } else {
    if (invalid_ != nullptr) std::rethrow_exception(std::exchange(invalid_, nullptr));
    delayed_->free_read();
    take_arrivals();
    if (delayed_->next() == never || !delayed_->pop(now(), arrival)) return false;
  }
  if (arrival.header.source != id()) charge_receiver(arrival.header);
  return true;
}

void DialledEndpoint::charge_receiver(const transport::FrameHeader& header) {
  const base::DialSettings& dials = options_.dials;
  // A damaged count must not stop the PE. Each message has a byte of payload or tail; a control message may have none.
  const std::size_t messages_most = header.payload_bytes + std::size_t(header.tail_bytes) + 1;
  const auto messages = double(std::min<std::size_t>(header.count, messages_most));
  busy_wait(draw(dials.overhead_ns) + draw(dials.item_overhead_ns * messages));
}

/// The work of the network during a busy-wait. Returns whether frames arrived.
bool DialledEndpoint::work_aside() {
  if (injector_) injector_->move();
  if (!delayed_ || invalid_ != nullptr) return false;
  try {
    return take_arrivals();
  } catch (const transport::InvalidFrame&) {
    invalid_ = std::current_exception();
    return false;
  }
}

/// Frames arrive meanwhile. The host's time for them counts in addition.
void DialledEndpoint::busy_wait(std::int64_t ns) {
  if (ns <= 0) return;
  if (options_.pass_time) {
    const bool looks = injector_ || delayed_;
    for (std::int64_t left = ns; left > 0;) {
      const std::int64_t step = looks ? std::min(left, simulated_look_ns) : left;
      options_.pass_time(step);
      left -= step;
      if (looks) work_aside();
    }
    return;
  }
  std::int64_t at = now(), until = at + ns;
  while (at < until) {
    const bool took = work_aside();
    const std::int64_t after = now();
    if (took) until += after - at;
    at = after;
  }
  ++kept_.waits;
  kept_.dialled_ns += ns;
  kept_.longer_ns += at - until;
}

void DialledEndpoint::charge(std::int64_t ns) {
  transport::SimulatedClock* const clock = inner_clock();
  if (clock == nullptr) return;
  if (!injector_ && !delayed_) return clock->charge(ns);
  const std::int64_t between = std::max(simulated_look_ns, ns / looks_in_charge);
  for (std::int64_t left = ns; left > 0;) {
    std::int64_t step = std::min(left, between);
    const std::int64_t begin = now();
    if (injector_ && !injector_->empty()) step = std::clamp<std::int64_t>(injector_->next() - begin, 1, step);
    clock->charge(step);
    left -= step;
    const std::int64_t at = now();
    if (!work_aside()) left -= now() - at;  // the host's time for arrivals counts in addition
  }
}

void DialledEndpoint::sleep(std::int64_t ns_max) {
  if (ns_max <= 0 || invalid_ != nullptr) return;
  std::int64_t next = never;
  if (injector_) {
    injector_->move();
    next = injector_->next();
    if (injector_->has_refused()) ns_max = std::min(ns_max, refused_look_ns);
  }
  if (delayed_) next = std::min(next, delayed_->next());
  if (next == never) return inner().sleep(ns_max);
  const std::int64_t left = next - now();
  if (left <= 0) return;
  if (delayed_ && options_.sleep_ns_max != 0) ns_max = std::min(ns_max, options_.sleep_ns_max);
  if (options_.pass_time) return inner().sleep(std::min(ns_max, left));
  if (left > wake_late_ns) return inner().sleep(std::min(ns_max, left - wake_late_ns));
  if (options_.yields) sched_yield();
}

}  // namespace headway::dial
