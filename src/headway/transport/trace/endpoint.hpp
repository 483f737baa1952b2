// SPDX-License-Identifier: BSD-3-Clause
/// An endpoint that keeps the times of another one's frames and waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/model/trace/record.hpp>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/simulated_clock.hpp>
#include <string>
#include <vector>

namespace headway::trace {

/// Records of one PE: 32 bytes each. The memory is touched as it is used.
inline constexpr std::size_t records_max = std::size_t(1) << 22;

/// Exists only in runs with HEADWAY_TRACE. All calls pass to `inner`.
class TracedEndpoint final : public transport::Endpoint, public transport::SimulatedClock {
 public:
  /// `inner` outlives it. `phase` is called on the PE's thread.
  TracedEndpoint(transport::Endpoint& inner, std::function<model::trace::Phase()> phase,
                 std::size_t records = records_max);
  ~TracedEndpoint() override;

  /// Once, before the first frame.
  void begin();
  /// Ends the trace: later frames are not recorded.
  void end();
  /// The file of this PE. SystemError if the system refuses it.
  void write(const std::string& folder, const std::string& transport, const std::string& dials, bool simulated) const;

  const std::vector<model::trace::Record>& records() const { return records_; }
  std::uint64_t overruns() const { return overruns_; }

  void leave_wait() override;
  transport::Services* services() override { return inner_->services(); }
  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override {
    return inner_->try_claim(frame_bytes, tag);
  }
  bool should_write_past_caches(transport::Frame* claimed) override {
    return inner_->should_write_past_caches(claimed);
  }
  std::size_t block_bytes(std::size_t frame_bytes) const override { return inner_->block_bytes(frame_bytes); }
  void drop(transport::Frame* frame) override { inner_->drop(frame); }
  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  std::size_t by_value_bytes_max() const override { return inner_->by_value_bytes_max(); }
  std::byte* try_begin_in_place(std::size_t target) override { return inner_->try_begin_in_place(target); }
  void post_in_place(std::size_t target, const transport::FrameHeader& header) override;
  void accept_in_place(bool accepts) override { inner_->accept_in_place(accepts); }
  std::size_t reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) override {
    return inner_->reclaim(returned, context);
  }
  bool poll(transport::Arrival& arrival) override;
  void release(const transport::Arrival& arrival) override { inner_->release(arrival); }
  void sleep(std::int64_t ns_max) override { inner_->sleep(ns_max); }
  transport::TransportCosts costs() const override { return inner_->costs(); }
  transport::TransportCosts costs_within_host() const override { return inner_->costs_within_host(); }
  std::int64_t now() const override { return inner_->now(); }
  /// Nothing if `inner` has no simulated clock.
  void charge(std::int64_t ns) override;

 private:
  std::uint32_t next_sequence(std::vector<std::uint32_t>& counts, std::size_t peer, std::uint8_t hops_left) const;
  void add(std::int64_t at, model::trace::Kind kind, model::trace::Phase phase);
  void add_frame(std::int64_t at, model::trace::Kind kind, model::trace::Phase phase, std::size_t peer,
                 const transport::FrameHeader& header, std::uint32_t sequence);
  void keep(const model::trace::Record& record);
  void record_post(std::int64_t at, std::size_t target, const transport::FrameHeader& header);

  transport::Endpoint* inner_;
  std::function<model::trace::Phase()> phase_;
  std::vector<model::trace::Record> records_;
  std::size_t records_max_;
  std::uint64_t overruns_ = 0;
  std::vector<std::uint32_t> sent_, received_;  // frames by peer and hops left
  bool waits_ = false;                          // inside a wait of the program
  bool open_ = false;                           // a frame was taken, or posted in a wait, since a poll found none
  bool ended_ = false;
};

}  // namespace headway::trace
