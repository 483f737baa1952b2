// SPDX-License-Identifier: BSD-3-Clause
/// An endpoint that keeps the times of another one's frames and waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/model/trace/record.hpp>
#include <headway/transport/forwarding_endpoint.hpp>
#include <limits>
#include <string>
#include <vector>

namespace headway::trace {

/// Records of one PE: 32 bytes each. The memory is touched as it is used.
inline constexpr std::size_t records_max = std::size_t(1) << 22;

/// Exists only in runs with HEADWAY_TRACE. All calls pass to `inner`.
class TracedEndpoint final : public transport::ForwardingEndpoint {
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
  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  void post_in_place(std::size_t target, const transport::FrameHeader& header) override;
  bool poll(transport::Arrival& arrival) override;

 private:
  std::uint32_t next_sequence(std::vector<std::uint32_t>& counts, std::size_t peer, std::uint8_t hops_left) const;
  void add(std::int64_t at, model::trace::Kind kind, model::trace::Phase phase);
  void add_frame(std::int64_t at, model::trace::Kind kind, model::trace::Phase phase, std::size_t peer,
                 const transport::FrameHeader& header, std::uint32_t sequence);
  void record_poll();
  void keep(const model::trace::Record& record);
  void record_post(std::int64_t at, std::size_t target, const transport::FrameHeader& header);

  std::function<model::trace::Phase()> phase_;
  std::vector<model::trace::Record> records_;
  std::size_t records_max_;
  std::uint64_t overruns_ = 0;
  std::vector<std::uint32_t> sent_, received_;  // frames by peer and hops left
  static constexpr std::int64_t polls_apart_ns = 1000;

  std::int64_t polled_ns_ = std::numeric_limits<std::int64_t>::min() / 2;  // last record of that kind
  bool waits_ = false;                                                     // inside a wait of the program
  bool open_ = false;  // a frame was taken, or posted in a wait, since a poll found none
  bool ended_ = false;
};

}  // namespace headway::trace
