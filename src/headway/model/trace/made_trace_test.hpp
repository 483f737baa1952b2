// SPDX-License-Identifier: BSD-3-Clause
/// Traces made by hand, for tests.
#pragma once

#include <cstring>
#include <headway/model/trace/graph.hpp>
#include <map>
#include <vector>

namespace headway::model::trace {

/// Records of one PE, at times that the test chooses. All frames have `bytes` bytes and `messages` messages.
class MadeTrace {
 public:
  MadeTrace(std::uint32_t pe, std::uint32_t pes) {
    std::memcpy(trace_.header.magic, magic, sizeof magic);
    trace_.header.version = version;
    trace_.header.pe = pe;
    trace_.header.pes = pes;
    trace_.header.header_bytes = trace_.header.names_begin = sizeof(Header);
    trace_.header.record_bytes = sizeof(Record);
    add(0, Kind::begin);
  }

  MadeTrace& post(std::int64_t at, std::uint16_t to, Phase phase = Phase::working) {
    return frame(at, Kind::posted, to, phase, sent_[to]++);
  }
  MadeTrace& take(std::int64_t at, std::uint16_t from, Phase phase = Phase::waiting) {
    return frame(at, Kind::taken, from, phase, received_[from]++);
  }
  MadeTrace& control_post(std::int64_t at, std::uint16_t to) { return post(at, to, Phase::quiescing).control(); }
  MadeTrace& control_take(std::int64_t at, std::uint16_t from) { return take(at, from, Phase::quiescing).control(); }
  MadeTrace& none(std::int64_t at) { return add(at, Kind::found_none); }
  MadeTrace& wait(std::int64_t at, Phase phase = Phase::waiting) { return add(at, Kind::wait_begins, phase).none(at); }
  /// A wait that finds a frame at once.
  MadeTrace& busy_wait(std::int64_t at, Phase phase = Phase::waiting) { return add(at, Kind::wait_begins, phase); }
  MadeTrace& go_on(std::int64_t at) { return add(at, Kind::wait_ends); }
  MadeTrace& phase(std::int64_t at, std::uint32_t number) { return phase(at, number, Kind::phase_begins); }
  MadeTrace& phase_end(std::int64_t at, std::uint32_t number) { return phase(at, number, Kind::phase_ends); }
  PeTrace end(std::int64_t at) {
    add(at, Kind::end);
    trace_.header.written = trace_.header.records_max = trace_.records.size();
    trace_.ended = true;
    return trace_;
  }

  static constexpr std::uint32_t bytes = 100, messages = 3;

 private:
  MadeTrace& phase(std::int64_t at, std::uint32_t number, Kind kind) {
    add(at, kind);
    trace_.records.back().handler = number;
    return *this;
  }
  MadeTrace& control() {
    trace_.records.back().is_control = 1;
    return *this;
  }
  MadeTrace& add(std::int64_t at, Kind kind, Phase phase = Phase::working) {
    Record record{};
    record.time_ns = at;
    record.kind = kind;
    record.phase = phase;
    trace_.records.push_back(record);
    return *this;
  }
  MadeTrace& frame(std::int64_t at, Kind kind, std::uint16_t peer, Phase phase, std::uint32_t sequence) {
    add(at, kind, phase);
    Record& record = trace_.records.back();
    record.peer = peer;
    record.sequence = sequence;
    record.bytes = bytes;
    record.messages = messages;
    return *this;
  }

  PeTrace trace_;
  std::map<std::uint16_t, std::uint32_t> sent_, received_;
};

inline Graph graph_of(const std::vector<PeTrace>& traces) {
  GraphBuilder builder(traces.size());
  for (const PeTrace& trace : traces) builder.add(trace);
  return builder.finish();
}

}  // namespace headway::model::trace
