// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <headway/base/counted.hpp>
#include <headway/transport/wire/endpoint.hpp>
#include <string>

namespace headway::wire {
namespace {

// Bit of Arrival::owned for a frame from the wire; the other bits are the address of its block.
constexpr std::uint64_t from_wire = std::uint64_t(1) << 63;
// A short frame on its last hop is valid only until the next poll, which frees its block: frames of up to this length.
constexpr std::size_t by_value_frame_bytes = transport::frame_overhead + transport::by_value_bytes_most;
// After so many frames of this host the PE polls the wire once. A poll may call the system, which takes as long as
// handling one of these frames.
constexpr unsigned frames_per_poll = 8;
// The wire wakes no sleeping PE, so the PE polls it, first often and then ever more rarely.
constexpr std::int64_t first_poll_ns = 20'000, poll_ns_max = std::int64_t(costs.wake_ns);

void sleep_for(std::int64_t ns) {
  const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&time, nullptr);
}

}  // namespace

WireEndpoint::WireEndpoint(local::Segment& segment, Port& port, std::size_t index, transport::SharedByProcess* shared,
                           std::span<const std::size_t> host_firsts)
    : transport::Endpoint({.id = segment.header().first_pe + index,
                           .size = port.pes(),
                           .pes_per_process = port.pes_per_process(),
                           .host_firsts = host_firsts},
                          *this, port.reads_memory() ? this : nullptr),
      local_(segment, index, shared),
      measured_(segment.header().costs_between_hosts),
      port_(&port),
      first_pe_(segment.header().first_pe),
      pes_here_(segment.header().pes),
      in_process_(first_pe_ + index - port.first_pe()) {}

transport::Endpoint::Posted WireEndpoint::try_post(std::size_t target, transport::Frame* frame,
                                                   const std::byte* tail_end, bool claimed) {
  const std::size_t here = target - first_pe_;  // wraps around to more than pes_here_ for a PE below first_pe_
  if (here < pes_here_) return local_.try_post(here, frame, tail_end, claimed);
  if (claimed) local_.mark_unread(frame);
  return port_->try_post(in_process_, target, frame, tail_end, claimed);
}

void WireEndpoint::free_read_block() {
  if (read_block_ == nullptr) return;
  port_->release(in_process_, read_block_);
  read_block_ = nullptr;
}

bool WireEndpoint::poll(transport::Arrival& arrival) {
  free_read_block();
  wire_next_ = !wire_next_;
  const bool is_there = !arrived_.empty() || port_->has_arrived(in_process_);
  const bool wire_first = is_there || pes_here_ == 1 ? wire_next_ : frames_since_poll_ >= frames_per_poll;
  if (wire_first && poll_wire(arrival)) return true;
  if (local_.poll(arrival)) {
    ++frames_since_poll_;
    return true;
  }
  return !wire_first && poll_wire(arrival);
}

bool WireEndpoint::poll_wire(transport::Arrival& arrival) {
  if (arrived_.empty()) {
    frames_since_poll_ = 0;
    // The library has just received all that was there. Another look costs a system call, and the caller may have what
    // it waits for.
    if (std::exchange(looked_, false) && !port_->has_arrived(in_process_)) return false;
    if (!port_->has_arrived(in_process_)) port_->progress();
    if (!port_->has_arrived(in_process_)) return false;
    for (const std::function<void()>& done : port_->take_arrived(in_process_, arrived_)) done();
    if (arrived_.empty()) return false;
  }
  Block* const block = arrived_.front();
  arrived_.pop_front();
  looked_ = true;
  const auto refuse = [&](const std::string& what) {
    throw transport::InvalidFrame(
        fmt::format("a frame from process {} to PE {} is not valid: {}", block->process, id(), what));
  };
  if (block->bytes < sizeof(transport::Frame)) {
    refuse(
        fmt::format("it has {}, and a header takes {}", base::counted(block->bytes, "byte"), sizeof(transport::Frame)));
  }
  const transport::Frame& frame = block->frame();
  if (kind_of(frame.link) != Kind::frame) {
    refuse(fmt::format("its kind is {} instead of {}", int(kind_of(frame.link)), int(Kind::frame)));
  }
  if (target_of(frame.link) != in_process_) {
    refuse(fmt::format("it is for PE {} of this process, which is not PE {}", target_of(frame.link), in_process_));
  }
  if (bytes_of(frame.header) != block->bytes) {
    refuse(
        fmt::format("it has {}, and its header says {}", base::counted(block->bytes, "byte"), bytes_of(frame.header)));
  }
  if (frame.header.source >= size() || frame.header.source / host_map().pes_per_process != block->process) {
    refuse(fmt::format("its source is PE {}, which is not in process {}", frame.header.source, block->process));
  }
  arrival.header = frame.header;
  arrival.payload = block->memory + transport::frame_overhead;
  arrival.tail_end = block->memory + block->bytes;
  if (frame.header.hops_left == 0 && block->bytes <= by_value_frame_bytes) {
    arrival.owned = 0;
    read_block_ = block;
  } else {
    arrival.owned = from_wire | reinterpret_cast<std::uintptr_t>(block);
  }
  return true;
}

void WireEndpoint::release(const transport::Arrival& arrival) {
  if ((arrival.owned & from_wire) == 0) return local_.release(arrival);
  port_->release(in_process_, reinterpret_cast<Block*>(arrival.owned & ~from_wire));
}

void WireEndpoint::sleep(std::int64_t ns_max) {
  free_read_block();
  const std::int64_t until = now() + ns_max;
  for (std::int64_t look = first_poll_ns;; look = std::min(2 * look, poll_ns_max)) {
    if (!arrived_.empty() || port_->progress() || port_->has_arrived(in_process_) || !local_.is_quiet()) return;
    const std::int64_t left = until - now();
    if (left <= 0) return;
    const bool is_rung =
        pes_here_ > 1 || port_->is_driven();  // PEs of the segment or the communication thread ring the doorbell
    if (!is_rung && port_->wait(left)) continue;
    if (is_rung) {
      local_.sleep(std::min(port_->is_driven() ? poll_ns_max : look, left),
                   [this] { return !port_->has_arrived(in_process_); });
      if (port_->is_driven()) return;  // the thread does not ring for services and credit
    } else {
      sleep_for(std::min(look, left));
    }
  }
}

}  // namespace headway::wire
