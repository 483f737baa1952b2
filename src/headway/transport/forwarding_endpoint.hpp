// SPDX-License-Identifier: BSD-3-Clause
/// The base of endpoints that stand between the layers above and a transport: dials, counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/simulated_clock.hpp>

namespace headway::transport {

/// Passes every call to another endpoint. A derived class overrides the calls that it changes. `inner` outlives it.
class ForwardingEndpoint : public Endpoint, public SimulatedClock {
 public:
  Services* services() override { return inner_->services(); }
  Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override { return inner_->try_claim(frame_bytes, tag); }
  bool should_write_past_caches(Frame* claimed) override { return inner_->should_write_past_caches(claimed); }
  std::size_t block_bytes(std::size_t frame_bytes) const override { return inner_->block_bytes(frame_bytes); }
  void drop(Frame* frame) override { inner_->drop(frame); }
  Posted try_post(std::size_t target, Frame* frame, const std::byte* tail_end, bool claimed) override {
    return inner_->try_post(target, frame, tail_end, claimed);
  }
  std::size_t by_value_bytes_max() const override { return inner_->by_value_bytes_max(); }
  std::byte* try_begin_in_place(std::size_t target) override { return inner_->try_begin_in_place(target); }
  void post_in_place(std::size_t target, const FrameHeader& header) override { inner_->post_in_place(target, header); }
  void accept_in_place(bool accepts) override { inner_->accept_in_place(accepts); }
  std::size_t reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) override {
    return inner_->reclaim(returned, context);
  }
  bool poll(Arrival& arrival) override { return inner_->poll(arrival); }
  void release(const Arrival& arrival) override { inner_->release(arrival); }
  void sleep(std::int64_t ns_max) override { inner_->sleep(ns_max); }
  Observer* observer() override { return inner_->observer(); }
  TransportCosts costs() const override { return inner_->costs(); }
  TransportCosts costs_within_host() const override { return inner_->costs_within_host(); }
  std::int64_t now() const override { return inner_->now(); }
  /// Nothing if `inner` has no simulated clock.
  void charge(std::int64_t ns) override {
    if (SimulatedClock* const clock = inner_clock()) clock->charge(ns);
  }
  std::optional<Times> times() const override {
    const SimulatedClock* const clock = inner_clock();
    return clock == nullptr ? std::nullopt : clock->times();
  }

 protected:
  explicit ForwardingEndpoint(Endpoint& inner)
      : Endpoint(inner.host_map(), inner.shared_memory(), inner.network_memory()), inner_(&inner) {}
  /// Offers `shared_memory` instead of that of `inner`, and no memory of the network.
  ForwardingEndpoint(Endpoint& inner, SharedMemory& shared_memory)
      : Endpoint(inner.host_map(), shared_memory), inner_(&inner) {}

  Endpoint& inner() const { return *inner_; }
  SimulatedClock* inner_clock() const { return dynamic_cast<SimulatedClock*>(inner_); }

 private:
  Endpoint* inner_;
};

}  // namespace headway::transport
