// SPDX-License-Identifier: BSD-3-Clause
/// The endpoint of a run over several hosts: frames to PEs of the own segment use the local transport, all other frames
/// the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <headway/base/bytes.hpp>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/local/local.hpp>
#include <headway/transport/wire/port.hpp>
#include <span>
#include <utility>
#include <vector>

namespace headway::wire {

/// Estimates between the costs of MPI through shared memory and over Ethernet. No sender wakes a sleeping PE.
inline constexpr transport::TransportCosts costs = {
    .overhead_ns = 2000, .gap_per_byte_ns = 0.3, .latency_ns = 4000, .wake_ns = 500'000, .copied = true};

/// A frame is claimed in the PE's part of the segment, sent from there, and returned when it has left. An arrived frame
/// lies in memory of the receiver until release(). Credit bounds that memory (CreditTaken).
class WireEndpoint final : public transport::Endpoint,
                           private transport::SharedMemory,
                           private transport::NetworkMemory {
 public:
  /// `index` is the PE's number in the segment, `host_firsts` the first PE of each segment of the run. Segment, port,
  /// `shared` and the memory of `host_firsts` outlive the endpoint.
  WireEndpoint(local::Segment& segment, Port& port, std::size_t index, transport::SharedByProcess* shared = nullptr,
               std::span<const std::size_t> host_firsts = {});

  transport::Services* services() override { return port_->has_pools() ? port_ : nullptr; }
  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override {
    return local_.try_claim(frame_bytes, tag);
  }
  bool should_write_past_caches(transport::Frame* claimed) override { return local_.should_write_past_caches(claimed); }
  std::size_t block_bytes(std::size_t frame_bytes) const override { return local_.block_bytes(frame_bytes); }
  void drop(transport::Frame* frame) override { local_.drop(frame); }
  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  [[nodiscard]] std::byte* try_begin_in_place(std::size_t target) override {
    return target - first_pe_ < pes_here_ ? local_.try_begin_in_place(target - first_pe_) : nullptr;
  }
  void post_in_place(std::size_t target, const transport::FrameHeader& header) override {
    local_.post_in_place(target - first_pe_, header);
  }
  void accept_in_place(bool accepts) override { local_.accept_in_place(accepts); }
  std::size_t by_value_bytes_max() const override { return local_.by_value_bytes_max(); }
  std::size_t reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) override {
    return local_.reclaim(returned, context);
  }
  bool poll(transport::Arrival& arrival) override;
  void release(const transport::Arrival& arrival) override;
  void sleep(std::int64_t ns_max) override;
  /// eager_bytes: frames of 255 KiB fit a posted receive; a library that asks the receiver first has a lower limit.
  transport::TransportCosts costs() const override {
    transport::TransportCosts costs = measured_.over(wire::costs);
    costs.eager_bytes = port_->eager_bytes();
    return costs;
  }
  transport::TransportCosts costs_within_host() const override { return local_.costs(); }
  std::int64_t now() const override { return local_.now(); }
  const Port& port() const { return *port_; }

 private:
  std::span<std::byte> pool(std::size_t pe) override {
    return pe - first_pe_ < pes_here_ ? local_.shared_memory().pool(pe - first_pe_) : std::span<std::byte>();
  }
  /// Only for PEs of this host.
  std::span<std::byte> board(std::size_t pe) override { return local_.shared_memory().board(pe - first_pe_); }
  bool shares_boards() const override { return pes_here_ == size(); }
  transport::SharedByProcess* shared_by_process() override { return local_.shared_memory().shared_by_process(); }

  bool reaches(std::size_t pe) const override { return pe - first_pe_ >= pes_here_; }
  transport::ExposedMemory* expose(std::span<const std::byte> memory, std::vector<std::byte>& key) override {
    return port_->expose(memory, key);
  }
  void withdraw(transport::ExposedMemory* exposed) override { port_->withdraw(exposed); }
  bool read(std::size_t pe, std::span<const std::byte> key, std::byte* to, std::size_t bytes,
            std::function<void()> done) override {
    return port_->read(in_process_, pe, key, to, bytes, std::move(done));
  }

  bool poll_wire(transport::Arrival& arrival);
  void free_read_block();

  local::LocalEndpoint local_;
  transport::FrameCosts measured_;  // between hosts
  Port* port_;
  std::size_t first_pe_, pes_here_;  // of the segment: its first PE in the run, and its number of PEs
  std::size_t in_process_;           // this PE's number in its process
  std::deque<Block*> arrived_;
  Block* read_block_ = nullptr;     // of the last arrival by value, which the PE reads until the next poll
  bool wire_next_ = false;          // the next poll begins with the wire
  bool looked_ = false;             // the last poll of the wire returned a frame
  unsigned frames_since_poll_ = 0;  // frames of this host's PEs since the last poll of the wire
};

}  // namespace headway::wire
