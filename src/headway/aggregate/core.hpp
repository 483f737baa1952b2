// SPDX-License-Identifier: BSD-3-Clause
/// The part of an aggregator that does not depend on its message type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/frame_layout.hpp>
#include <headway/aggregate/frame_poster.hpp>
#include <headway/aggregate/keyed_message.hpp>
#include <headway/aggregate/large_sender.hpp>
#include <headway/aggregate/options.hpp>
#include <headway/aggregate/reassembly.hpp>
#include <headway/aggregate/route.hpp>
#include <headway/aggregate/slot_table.hpp>
#include <headway/am/engine.hpp>
#include <map>
#include <string>

namespace headway::aggregate {

/// Puts the parts together: FramePoster, SlotTable, LargeSender, Reassembly.
class Core : public am::FrameHandler {
 public:
  using Result = am::FrameHandler::Result;

  /// Collective. SettingError for invalid options.
  Core(Pe& pe, const AggregatorOptions& options, MessageShape shape);
  ~Core() override;

  bool flush_open(am::FlushReason reason) override { return table_.flush_open(reason); }
  bool flush_idle(am::IdleFlush how) override { return table_.flush_idle(how); }
  std::int64_t due() const override;
  bool flush_due(std::int64_t now) override;
  void enter_scope(am::ScopeId scope) override { table_.enter_scope(scope); }
  bool flush_scope(am::ScopeId scope, am::FlushReason reason) override { return table_.flush_scope(scope, reason); }
  std::uint16_t signature() const override { return layout().signature; }
  std::string description() const override;
  bool ready() const override { return ready_; }
  std::uint64_t waiting_messages(am::ScopeId scope) const override;
  void count_open(std::map<std::uint32_t, std::uint64_t>& by_target) const override { table_.count_open(by_target); }
  void add_statistics(report::PeStatistics& all) const override;

  /// The options in effect.
  const AggregatorOptions& options() const { return options_; }
  AggregatorStatistics statistics() const;

 protected:
  am::Engine& engine() const { return poster_.engine(); }
  const Route& route() const { return route_; }
  FramePoster& poster() { return poster_; }
  SlotTable& table() { return table_; }
  const SlotTable& table() const { return table_; }
  LargeSender& large() { return large_; }
  Reassembly& reassembly() { return reassembly_; }
  Counters& counters() { return poster_.counters(); }
  const FrameLayout& layout() const { return table_.layout(); }
  bool is_direct() const { return options_.topology.dimensions == 0; }
  bool is_ordered() const { return options_.ordered; }

  void mark_ready(bool wants_source);

  /// Throws UsageError unless `destination` is a PE of this run and on() has been called.
  void check_send(std::size_t destination) const;

  /// Adds to the messages of a scope that wait for an object to be made; negative: they no longer wait.
  void count_waiting(am::ScopeId scope, std::int64_t messages) { waiting_messages_[scope] += std::uint64_t(messages); }
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_frame(const transport::Arrival& arrival, const char* what) const;
  /// `what` of the frame has the value `actual`; `relation` ("below", "equal to") and `expected` state the allowed
  /// ones.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_frame(const transport::Arrival& arrival, const char* what,
                                                           std::uint64_t actual, const char* relation,
                                                           std::uint64_t expected) const;
  /// FormatError unless the frame of a single message has neither hops nor a tail.
  void check_single(const transport::Arrival& arrival) const {
    if ((arrival.header.hops_left | arrival.header.tail_bytes) != 0) [[unlikely]]
      refuse_single(arrival);
  }
  /// FormatError: a message in parts has not the length of its type.
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_whole(std::size_t bytes, std::size_t expected);
  /// The message of a frame_of_key. FormatError for an invalid frame.
  KeyedMessage keyed_message(const transport::Arrival& arrival, std::size_t header_bytes) const;

  void count_handled(std::uint64_t messages) {
    engine().count_handled(messages);
    counters().handled += messages;
  }
  /// Counts the messages of one frame.
  void count_delivered(std::uint64_t handled, std::uint64_t forwarded, std::uint64_t forwarded_bytes) {
    count_handled(handled);
    engine().count_created(0 - forwarded);  // they count as created when their new frame is posted
    counters().created -= forwarded;
    counters().payload_bytes -= forwarded_bytes;
    counters().forwarded += forwarded;
    counters().forwarded_bytes += forwarded_bytes;
  }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_single(const transport::Arrival& arrival) const;
  AggregatorOptions options_possible(const AggregatorOptions& given) const;
  FrameLayout make_layout();

  MessageShape shape_;
  std::string name_;
  FramePoster poster_;
  AggregatorOptions options_;  // in effect
  SizeRules size_rules_;
  Route route_;
  SlotTable table_;
  LargeSender large_;
  Reassembly reassembly_;
  bool ready_ = false;
  std::uint32_t number_ = 0;
  std::map<am::ScopeId, std::uint64_t> waiting_messages_;
};

}  // namespace headway::aggregate
