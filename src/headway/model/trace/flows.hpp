// SPDX-License-Identifier: BSD-3-Clause
/// Which `taken` belongs to which `posted`, and the times of all hosts by one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/model/trace/host_clocks.hpp>
#include <headway/model/trace/reader.hpp>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headway::model::trace {

/// A frame as one of its two PEs recorded it. Times are aligned: of all PEs by one clock, from 0 on.
struct FrameEnd {
  enum class State : std::uint8_t {
    joined,
    undelivered,  // posted, and not taken up to the end of the receiver's records
    unknown,      // the other end is among the lost records, or the PE posted it for another PE of its process
  };
  std::int64_t time_ns = 0;
  std::int64_t other_ns = 0;  // joined: when the other PE posted or took it
  std::uint32_t number = 0;   // joined: from 1 on, the same at both ends
  std::uint32_t sequence = 0, bytes = 0, messages = 0;
  std::uint16_t peer = 0;
  bool is_posted = false, is_control = false;
  State state = State::unknown;
};

/// Takes the trace of one PE at a time, so that not all records are in memory at once: 40 bytes for each end.
class Flows {
 public:
  /// The clock of day minus the clock of the run, in ns since 1970; 0 if the header has no such times.
  static std::int64_t day_minus_run_ns(const Header& header);

  explicit Flows(std::size_t pes);

  /// Each PE once, in any order.
  void add(const PeTrace& trace);
  /// After all PEs.
  void finish();

  /// In the order of the PE's records `posted` and `taken`.
  std::span<const FrameEnd> of(std::size_t pe) const { return pes_[pe].ends; }
  /// Aligned time = time of the PE's records + this.
  std::int64_t shift_ns(std::size_t pe) const { return pes_[pe].shift_ns; }
  std::int64_t end_ns() const { return end_ns_; }  // of the last record of all, aligned

  struct Counts {
    std::uint64_t joined = 0;
    std::uint64_t undelivered = 0, undelivered_control = 0;  // frames of messages, of the runtime
    std::uint64_t unknown = 0;                               // ends without the other one
    std::uint64_t backward = 0;  // joined ones that are taken before they are posted, by the aligned clocks
  };
  const Counts& counts() const { return counts_; }

  std::size_t hosts() const { return host_numbers_.size(); }
  std::size_t host_of(std::size_t pe) const { return pes_[pe].host; }  // from 0 on, in the order of add()
  const std::vector<HostClocks::Clock>& clocks() const { return clocks_; }

 private:
  struct Pe {
    std::vector<FrameEnd> ends;
    std::size_t host = 0;
    std::uint32_t process = 0;
    bool simulated = false;
    std::uint64_t lost = 0;
    bool has_records = false;
    std::int64_t first_ns = 0, last_ns = 0, day_minus_run_ns = 0, shift_ns = 0;
  };
  /// Frames from one sender to one receiver with so many hops left, in order.
  struct Channel {
    std::vector<std::uint32_t> posted, taken;  // places in `ends` of the sender, of the receiver
  };
  struct Between {
    std::uint16_t sender, receiver;
  };
  static std::uint64_t key(std::size_t sender, std::size_t receiver, std::size_t hops);
  static Between between(std::uint64_t key);

  void join(std::uint64_t channel_key, const Channel& channel);
  void align();
  void judge(std::uint64_t channel_key, const Channel& channel);
  bool is_shared(std::uint64_t channel_key) const;

  std::vector<Pe> pes_;
  std::unordered_map<std::uint64_t, Channel> channels_;
  std::map<std::uint32_t, std::size_t> host_numbers_;
  // Channels of all PEs of a process (host, number), of which one has posted frames for another one: sequences differ.
  // The key has sender 0.
  std::set<std::pair<std::pair<std::size_t, std::uint32_t>, std::uint64_t>> shared_;
  std::vector<HostClocks::Clock> clocks_;
  Counts counts_;
  std::uint32_t joined_ = 0;
  std::int64_t end_ns_ = 0;
};

}  // namespace headway::model::trace
