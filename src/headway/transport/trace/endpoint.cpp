// SPDX-License-Identifier: BSD-3-Clause
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <headway/base/clock.hpp>
#include <headway/transport/trace/endpoint.hpp>
#include <utility>

namespace headway::trace {
namespace {

using model::trace::Header;
using model::trace::Kind;
using model::trace::NameKind;
using model::trace::Phase;
using model::trace::Record;

Header header_of(const transport::Endpoint& inner, const Options& options) {
  Header header{};
  header.pe = std::uint32_t(inner.id());
  header.pes = std::uint32_t(inner.size());
  header.clock = options.simulated ? model::trace::Clock::simulated : model::trace::Clock::real;
  const transport::TransportCosts costs = inner.costs();
  header.overhead_ns = costs.overhead_ns;
  header.latency_ns = costs.latency_ns;
  header.gap_per_byte_ns = costs.gap_per_byte_ns;
  header.began_ns = std::uint64_t(base::clock_ns(CLOCK_REALTIME));
  header.began_at_ns = inner.now();
  const transport::HostMap& hosts = inner.host_map();
  header.host = std::uint32_t(std::ranges::count_if(hosts.host_firsts, [&](auto first) { return first <= hosts.id; }));
  header.host -= header.host != 0;
  header.process = std::uint32_t(getpid());
  options.dials.copy(header.dials, sizeof header.dials - 1);
  options.transport.copy(header.transport, sizeof header.transport - 1);
  return header;
}

}  // namespace

TracedEndpoint::TracedEndpoint(transport::Endpoint& inner, std::function<Phase()> phase, const Options& options)
    : transport::ForwardingEndpoint(inner),
      transport::Observer(inner.observer()),
      phase_(std::move(phase)),
      clock_(inner, options.simulated),
      file_(options.folder, header_of(inner, options), options.records),
      sent_(inner.size() * model::trace::hop_classes),
      received_(inner.size() * model::trace::hop_classes) {
  for (std::uint16_t number = 0; const char* const name : model::trace::mark_names)
    file_.add_name(NameKind::mark, number++, name);
}

void TracedEndpoint::keep(const Record& record) {
  if (!ended_) file_.add(record);
}

void TracedEndpoint::add(std::int64_t at, Kind kind, Phase phase) {
  Record record{};
  record.time_ns = at;
  record.kind = kind;
  record.phase = phase;
  keep(record);
}

void TracedEndpoint::add_frame(std::int64_t at, Kind kind, Phase phase, std::size_t peer,
                               const transport::FrameHeader& header, std::uint32_t sequence) {
  Record record{};
  record.time_ns = at;
  record.sequence = sequence;
  record.bytes = std::uint32_t(sizeof header) + header.payload_bytes + header.tail_bytes;
  record.messages = header.count;
  record.handler = header.handler;
  record.peer = std::uint16_t(peer);
  record.kind = kind;
  record.phase = phase;
  record.hops_left = header.hops_left;
  record.is_control = header.kind == std::uint8_t(transport::FrameKind::control);
  record.is_foreign = kind == Kind::posted && header.source != id();
  keep(record);
  if (record.is_control == 0 && (header.handler >= is_handler_named_.size() || !is_handler_named_[header.handler]))
      [[unlikely]]
    name_handler(header.handler);
}

std::uint32_t TracedEndpoint::next_sequence(std::vector<std::uint32_t>& counts, std::size_t peer,
                                            std::uint8_t hops_left) const {
  const std::size_t hops = std::min<std::size_t>(hops_left, model::trace::hop_classes - 1);
  return counts[peer * model::trace::hop_classes + hops]++;
}

void TracedEndpoint::record_post(std::int64_t at, std::size_t target, const transport::FrameHeader& header) {
  open_ = open_ || waits_;
  if (flush_) record_flush(at, target, header);
  add_frame(at, Kind::posted, phase_(), target, header, next_sequence(sent_, target, header.hops_left));
}

/// The time before the post: its receiver may take the frame before the call returns.
transport::Endpoint::Posted TracedEndpoint::try_post(std::size_t target, transport::Frame* frame,
                                                     const std::byte* tail_end, bool claimed) {
  const transport::FrameHeader header = frame->header;
  if (!delayed_flushes_.empty() && !flush_) [[unlikely]]
    find_flush(frame);
  const std::int64_t at = clock_.now();
  const Posted posted = inner().try_post(target, frame, tail_end, claimed);
  if (posted != Posted::refused)
    record_post(at, target, header);
  else if (flush_)
    end_flush(frame);
  return posted;
}

void TracedEndpoint::post_in_place(std::size_t target, const transport::FrameHeader& header) {
  inner().post_in_place(target, header);  // no other call may precede it
  record_post(clock_.now(), target, header);
}

bool TracedEndpoint::poll(transport::Arrival& arrival) {
  const Phase phase = phase_();
  if (!waits_ && phase >= Phase::waiting) {
    waits_ = true;
    open_ = true;
    add(clock_.now(), Kind::wait_begins, phase);
  }
  if (!inner().poll(arrival)) {
    if (std::exchange(open_, false))
      add(clock_.now(), Kind::found_none, phase);
    else if (!waits_)
      record_poll();
    return false;
  }
  open_ = true;
  const transport::FrameHeader& header = arrival.header;
  // An impossible source makes the engine end the run.
  const std::uint32_t sequence = header.source < size() ? next_sequence(received_, header.source, header.hops_left) : 0;
  add_frame(clock_.now(), Kind::taken, phase, header.source, header, sequence);
  return true;
}

/// A replay may handle frames there that arrive later than in this run.
void TracedEndpoint::record_poll() {
  const std::int64_t at = clock_.now();
  if (at - polled_ns_ < polls_apart_ns) return;
  polled_ns_ = at;
  add(at, Kind::polled, Phase::working);
}

void TracedEndpoint::leave_wait() {
  Observer::leave_wait();
  if (!std::exchange(waits_, false)) return;
  open_ = false;
  add(clock_.now(), Kind::wait_ends, Phase::working);
}

void TracedEndpoint::begin() { add(clock_.now(), Kind::begin, Phase::working); }

void TracedEndpoint::end() {
  add(clock_.now(), Kind::end, Phase::working);
  ended_ = true;
  name_of_handler_ = nullptr;
}

// --- names, phases, marks

void TracedEndpoint::name_handler(std::uint32_t handler) {
  if (handler >= is_handler_named_.size()) is_handler_named_.resize(std::min<std::size_t>(handler + 1, names_most));
  if (handler >= names_most || !name_of_handler_) return;
  const std::string name = name_of_handler_(handler);
  if (name.empty()) return;
  is_handler_named_[handler] = true;
  file_.add_name(NameKind::handler, std::uint16_t(handler), name);
}

void TracedEndpoint::begin_phase(std::string_view name) {
  Observer::begin_phase(name);
  const auto found = std::ranges::find(phases_, name);
  const auto number = std::uint32_t(found - phases_.begin());
  if (found == phases_.end()) {
    phases_.emplace_back(name);
    file_.add_name(NameKind::phase, std::uint16_t(number), name);
  }
  in_phases_.push_back(number);
  add_phase(Kind::phase_begins);
}

void TracedEndpoint::end_phase() {
  add_phase(Kind::phase_ends);
  in_phases_.pop_back();
  Observer::end_phase();
}

void TracedEndpoint::add_phase(Kind kind) {
  Record record{};
  record.time_ns = clock_.now();
  record.kind = kind;
  record.phase = phase_();
  record.handler = in_phases_.back();
  keep(record);
}

void TracedEndpoint::mark(const transport::MarkOf& mark) {
  Observer::mark(mark);
  Record record{};
  record.time_ns = clock_.now();
  record.kind = Kind::mark;
  record.phase = phase_();
  record.handler = std::uint32_t(mark.mark);
  record.peer = std::uint16_t(mark.peer);
  record.bytes = std::uint32_t(std::min(mark.bytes, std::uint64_t(UINT32_MAX)));
  record.sequence = mark.number;
  record.detail = std::uint8_t(mark.end);
  keep(record);
}

// --- flushes

void TracedEndpoint::end_flush(const transport::Frame* frame) {
  if (flush_) delayed_flushes_.insert_or_assign(frame, *flush_);
  flush_.reset();
}

/// Of a frame that waited for its target's queue.
void TracedEndpoint::find_flush(const transport::Frame* frame) {
  const auto found = delayed_flushes_.find(frame);
  if (found == delayed_flushes_.end()) return;
  flush_ = found->second;
  delayed_flushes_.erase(found);
}

void TracedEndpoint::record_flush(std::int64_t at, std::size_t target, const transport::FrameHeader& header) {
  Record record{};
  record.time_ns = at;
  record.kind = Kind::flushed;
  record.phase = phase_();
  record.handler = header.handler;
  record.peer = std::uint16_t(target);
  record.messages = header.count;
  record.hops_left = header.hops_left;
  record.bytes = std::uint32_t(std::clamp<std::int64_t>(at - flush_->opened_ns, 0, UINT32_MAX));
  record.detail = std::uint8_t(flush_->reason + 1);
  keep(record);
  flush_.reset();
}

}  // namespace headway::trace
