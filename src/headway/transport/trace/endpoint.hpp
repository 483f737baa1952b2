// SPDX-License-Identifier: BSD-3-Clause
/// An endpoint that keeps the times of another one's frames and waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/model/trace/record.hpp>
#include <headway/transport/forwarding_endpoint.hpp>
#include <headway/transport/observer.hpp>
#include <headway/transport/trace/clock.hpp>
#include <headway/transport/trace/file.hpp>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headway::trace {

/// Records of one PE: 32 bytes each. Older ones are replaced then.
inline constexpr std::size_t records_max = std::size_t(1) << 22;

struct Options {
  std::string folder;
  std::string transport = {}, dials = {};  // of the run, as texts
  bool simulated = false;
  std::size_t records = records_max;
};

/// Exists only in runs with HEADWAY_TRACE. All calls pass to `inner`.
class TracedEndpoint final : public transport::ForwardingEndpoint, public transport::Observer {
 public:
  /// `inner` outlives it. `phase` is called on the PE's thread. SystemError if the system refuses the file.
  TracedEndpoint(transport::Endpoint& inner, std::function<model::trace::Phase()> phase, const Options& options);

  /// Once, before the first frame.
  void begin();
  /// Ends the trace: later frames are not recorded.
  void end();
  /// The names of handlers by number; empty texts are asked for again. Until end() at most.
  void name_handlers(std::function<std::string(std::uint32_t)> name) { name_of_handler_ = std::move(name); }

  transport::Observer* observer() override { return this; }
  void leave_wait() override;
  void begin_phase(std::string_view name) override;
  void end_phase() override;
  transport::Observer* keeper_of_flushes() override { return this; }
  std::int64_t clock_ns() override { return clock_.now(); }
  void begin_flush(const transport::Flush& flush) override { flush_ = flush; }
  void end_flush(const transport::Frame* frame) override;
  void mark(const transport::MarkOf& mark) override;

  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  void post_in_place(std::size_t target, const transport::FrameHeader& header) override;
  bool poll(transport::Arrival& arrival) override;

 private:
  std::uint32_t next_sequence(std::vector<std::uint32_t>& counts, std::size_t peer, std::uint8_t hops_left) const;
  void add(std::int64_t at, model::trace::Kind kind, model::trace::Phase phase);
  void add_frame(std::int64_t at, model::trace::Kind kind, model::trace::Phase phase, std::size_t peer,
                 const transport::FrameHeader& header, std::uint32_t sequence);
  void add_phase(model::trace::Kind kind);
  void record_poll();
  void keep(const model::trace::Record& record);
  void record_post(std::int64_t at, std::size_t target, const transport::FrameHeader& header);
  void record_flush(std::int64_t at, std::size_t target, const transport::FrameHeader& header);
  void find_flush(const transport::Frame* frame);
  void name_handler(std::uint32_t handler);

  std::function<model::trace::Phase()> phase_;
  std::function<std::string(std::uint32_t)> name_of_handler_;
  TraceClock clock_;
  TraceFile file_;
  std::vector<std::uint32_t> sent_, received_;  // frames by peer and hops left
  std::vector<bool> is_handler_named_;
  std::vector<std::string> phases_;                                                // by number
  std::vector<std::uint32_t> in_phases_;                                           // numbers, the innermost last
  std::optional<transport::Flush> flush_;                                          // of the buffer that is posted now
  std::unordered_map<const transport::Frame*, transport::Flush> delayed_flushes_;  // of buffers that wait
  static constexpr std::int64_t polls_apart_ns = 1000;
  static constexpr std::size_t names_most = 65536;  // of handlers: NameEntry::number

  std::int64_t polled_ns_ = std::numeric_limits<std::int64_t>::min() / 2;  // last record of that kind
  bool waits_ = false;                                                     // inside a wait of the program
  bool open_ = false;  // a frame was taken, or posted in a wait, since a poll found none
  bool ended_ = false;
};

}  // namespace headway::trace
