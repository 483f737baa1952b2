// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <headway/base/error.hpp>
#include <headway/transport/count/endpoint.hpp>
#include <headway/transport/trace/endpoint.hpp>
#include <memory>
#include <system_error>
#include <utility>

namespace headway::trace {

using model::trace::Kind;
using model::trace::Phase;
using model::trace::Record;

TracedEndpoint::TracedEndpoint(transport::Endpoint& inner, std::function<Phase()> phase, std::size_t records)
    : transport::ForwardingEndpoint(inner),
      phase_(std::move(phase)),
      records_max_(records),
      sent_(inner.size() * model::trace::hop_classes),
      received_(inner.size() * model::trace::hop_classes) {
  records_.reserve(records_max_);
  count::observers.fetch_add(1, std::memory_order_relaxed);
}

TracedEndpoint::~TracedEndpoint() { count::observers.fetch_sub(1, std::memory_order_relaxed); }

void TracedEndpoint::keep(const Record& record) {
  if (ended_) return;
  if (records_.size() == records_max_)
    records_[overruns_++ % records_max_] = record;
  else
    records_.push_back(record);
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
}

std::uint32_t TracedEndpoint::next_sequence(std::vector<std::uint32_t>& counts, std::size_t peer,
                                            std::uint8_t hops_left) const {
  const std::size_t hops = std::min<std::size_t>(hops_left, model::trace::hop_classes - 1);
  return counts[peer * model::trace::hop_classes + hops]++;
}

void TracedEndpoint::record_post(std::int64_t at, std::size_t target, const transport::FrameHeader& header) {
  open_ = open_ || waits_;
  add_frame(at, Kind::posted, phase_(), target, header, next_sequence(sent_, target, header.hops_left));
}

/// The time before the post: its receiver may take the frame before the call returns.
transport::Endpoint::Posted TracedEndpoint::try_post(std::size_t target, transport::Frame* frame,
                                                     const std::byte* tail_end, bool claimed) {
  const transport::FrameHeader header = frame->header;
  const std::int64_t at = now();
  const Posted posted = inner().try_post(target, frame, tail_end, claimed);
  if (posted != Posted::refused) record_post(at, target, header);
  return posted;
}

void TracedEndpoint::post_in_place(std::size_t target, const transport::FrameHeader& header) {
  inner().post_in_place(target, header);  // no other call may precede it
  record_post(now(), target, header);
}

bool TracedEndpoint::poll(transport::Arrival& arrival) {
  const Phase phase = phase_();
  if (!waits_ && phase >= Phase::waiting) {
    waits_ = true;
    open_ = true;
    add(now(), Kind::wait_begins, phase);
  }
  if (!inner().poll(arrival)) {
    if (std::exchange(open_, false))
      add(now(), Kind::found_none, phase);
    else if (!waits_)
      record_poll();
    return false;
  }
  open_ = true;
  const transport::FrameHeader& header = arrival.header;
  // An impossible source makes the engine end the run.
  const std::uint32_t sequence = header.source < size() ? next_sequence(received_, header.source, header.hops_left) : 0;
  add_frame(now(), Kind::taken, phase, header.source, header, sequence);
  return true;
}

/// A replay may handle frames there that arrive later than in this run.
void TracedEndpoint::record_poll() {
  const std::int64_t at = now();
  if (at - polled_ns_ < polls_apart_ns) return;
  polled_ns_ = at;
  add(at, Kind::polled, Phase::working);
}

void TracedEndpoint::leave_wait() {
  inner().leave_wait();
  if (!std::exchange(waits_, false)) return;
  open_ = false;
  add(now(), Kind::wait_ends, Phase::working);
}

void TracedEndpoint::begin() { add(now(), Kind::begin, Phase::working); }

void TracedEndpoint::end() {
  add(now(), Kind::end, Phase::working);
  ended_ = true;
}

void TracedEndpoint::write(const std::string& folder, const std::string& transport, const std::string& dials,
                           bool simulated) const {
  const std::string name = folder + "/" + fmt::format(model::trace::file_name_format, id());
  auto refuse = [&](int error) {
    throw SystemError(fmt::format("HEADWAY_TRACE={}: {} cannot be written: {}", folder, name,
                                  std::generic_category().message(error)));
  };
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file(std::fopen(name.c_str(), "we"));
  if (file == nullptr) refuse(errno);
  model::trace::Header header{};
  std::memcpy(header.magic, model::trace::magic, sizeof header.magic);
  header.version = model::trace::version;
  header.pe = std::uint32_t(id());
  header.pes = std::uint32_t(size());
  header.header_bytes = sizeof header;
  header.record_bytes = sizeof(Record);
  header.clock = simulated ? model::trace::Clock::simulated : model::trace::Clock::real;
  header.names_begin = sizeof header;
  header.records_max = records_.size();
  header.written = records_.size() + overruns_;
  const transport::TransportCosts costs = inner().costs();
  header.overhead_ns = costs.overhead_ns;
  header.latency_ns = costs.latency_ns;
  header.gap_per_byte_ns = costs.gap_per_byte_ns;
  dials.copy(header.dials, sizeof header.dials - 1);
  transport.copy(header.transport, sizeof header.transport - 1);
  errno = 0;
  if (std::fwrite(&header, sizeof header, 1, file.get()) != 1 ||
      std::fwrite(records_.data(), sizeof(Record), records_.size(), file.get()) != records_.size()) {
    refuse(errno);
  }
  if (std::fclose(file.release()) != 0) refuse(errno);
}

}  // namespace headway::trace
