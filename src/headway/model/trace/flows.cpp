// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/model/trace/flows.hpp>
#include <limits>

namespace headway::model::trace {

Flows::Flows(std::size_t pes) : pes_(pes) {}

std::uint64_t Flows::key(std::size_t sender, std::size_t receiver, std::size_t hops) {
  return (std::uint64_t(sender) << 24) | (std::uint64_t(receiver) << 8) | std::min(hops, hop_classes - 1);
}

Flows::Between Flows::between(std::uint64_t key) { return {std::uint16_t(key >> 24), std::uint16_t(key >> 8)}; }

std::int64_t Flows::day_minus_run_ns(const Header& header) {
  constexpr std::int64_t most = std::int64_t(1) << 61;
  const bool usable = header.began_ns != 0 && header.began_ns < std::uint64_t(most) && header.began_at_ns > -most &&
                      header.began_at_ns < most;
  return usable ? std::int64_t(header.began_ns) - header.began_at_ns : 0;
}

void Flows::add(const PeTrace& trace) {
  const std::size_t id = trace.header.pe;
  Pe& pe = pes_[id];
  pe.host = host_numbers_.emplace(trace.header.host, host_numbers_.size()).first->second;
  pe.process = trace.header.process;
  pe.simulated = trace.header.clock == Clock::simulated;
  pe.lost = trace.lost;
  pe.day_minus_run_ns = day_minus_run_ns(trace.header);
  pe.has_records = !trace.records.empty();
  if (pe.has_records) {
    pe.first_ns = trace.records.front().time_ns;
    pe.last_ns = trace.records.back().time_ns;
  }
  for (const Record& record : trace.records) {
    if (record.kind != Kind::posted && record.kind != Kind::taken) continue;
    const bool is_posted = record.kind == Kind::posted;
    FrameEnd end;
    end.time_ns = record.time_ns;
    end.sequence = record.sequence;
    end.bytes = record.bytes;
    end.messages = record.messages;
    end.peer = record.peer;
    end.is_posted = is_posted;
    end.is_control = record.is_control != 0;
    if (is_posted && record.is_foreign != 0) {
      shared_.insert({{pe.host, pe.process}, key(0, record.peer, record.hops_left)});
    } else {
      Channel& channel =
          channels_[is_posted ? key(id, record.peer, record.hops_left) : key(record.peer, id, record.hops_left)];
      (is_posted ? channel.posted : channel.taken).push_back(std::uint32_t(pe.ends.size()));
    }
    pe.ends.push_back(end);
  }
}

bool Flows::is_shared(std::uint64_t channel_key) const {
  if (shared_.empty()) return false;
  const Pe& sender = pes_[between(channel_key).sender];
  return shared_.contains({{sender.host, sender.process}, channel_key & 0xffffff});
}

/// Both lists ascend, also where the 32 bits of a sequence wrap.
void Flows::join(std::uint64_t channel_key, const Channel& channel) {
  if (is_shared(channel_key)) return;
  const auto [sender, receiver] = between(channel_key);
  std::vector<FrameEnd>& from = pes_[sender].ends;
  std::vector<FrameEnd>& to = pes_[receiver].ends;
  std::size_t p = 0, t = 0;
  while (p < channel.posted.size() && t < channel.taken.size()) {
    FrameEnd& posted = from[channel.posted[p]];
    FrameEnd& taken = to[channel.taken[t]];
    const auto ahead = std::int32_t(posted.sequence - taken.sequence);
    if (ahead == 0) {
      posted.number = taken.number = ++joined_;
      posted.state = taken.state = FrameEnd::State::joined;
      posted.other_ns = taken.time_ns;
      taken.other_ns = posted.time_ns;
    }
    p += ahead <= 0;
    t += ahead >= 0;
  }
}

/// From here on all times are aligned.
void Flows::align() {
  HostClocks clocks(hosts());
  std::vector<std::int64_t> assumed(hosts());
  std::vector<bool> seen(hosts());
  if (hosts() > 1 && !pes_[0].simulated) {
    for (std::size_t id = 0; id < pes_.size(); ++id) {
      const Pe& pe = pes_[id];
      if (!seen[pe.host]) assumed[pe.host] = pes_[0].day_minus_run_ns - pe.day_minus_run_ns;
      seen[pe.host] = true;
      for (const FrameEnd& end : pe.ends) {
        if (end.state == FrameEnd::State::joined && !end.is_posted && pes_[end.peer].host != pe.host)
          clocks.add_frame(pes_[end.peer].host, pe.host, end.time_ns - end.other_ns);
      }
    }
    clocks_ = clocks.align(assumed);
  } else {
    clocks_.assign(hosts(), {0, 0});
  }
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  for (const Pe& pe : pes_) {
    if (pe.has_records) begin = std::min(begin, pe.first_ns - clocks_[pe.host].offset_ns);
  }
  if (begin == std::numeric_limits<std::int64_t>::max()) begin = 0;
  for (Pe& pe : pes_) {
    pe.shift_ns = -clocks_[pe.host].offset_ns - begin;
    pe.first_ns += pe.shift_ns;
    if (pe.has_records) end_ns_ = std::max(end_ns_, pe.last_ns + pe.shift_ns);
  }
  for (Pe& pe : pes_) {
    for (FrameEnd& end : pe.ends) {
      end.time_ns += pe.shift_ns;
      if (end.state != FrameEnd::State::joined) continue;
      end.other_ns += pes_[end.peer].shift_ns;
      counts_.backward += end.is_posted && end.other_ns < end.time_ns;
    }
  }
}

/// A frame that the receiver would have recorded after its oldest record, or after a later frame, is undelivered.
void Flows::judge(std::uint64_t channel_key, const Channel& channel) {
  const auto [sender, receiver] = between(channel_key);
  const Pe& to = pes_[receiver];
  const bool shared = is_shared(channel_key);
  for (const std::uint32_t place : channel.posted) {
    FrameEnd& posted = pes_[sender].ends[place];
    if (shared || posted.state == FrameEnd::State::joined) continue;
    const bool is_newer = channel.taken.empty()
                              ? posted.time_ns >= to.first_ns
                              : std::int32_t(posted.sequence - to.ends[channel.taken.front()].sequence) > 0;
    if (to.lost == 0 || is_newer) posted.state = FrameEnd::State::undelivered;
  }
}

void Flows::finish() {
  // Sorted, so that equal traces give equal numbers.
  std::vector<std::uint64_t> keys;
  keys.reserve(channels_.size());
  for (const auto& [channel_key, channel] : channels_) keys.push_back(channel_key);
  std::ranges::sort(keys);
  for (const std::uint64_t channel_key : keys) join(channel_key, channels_[channel_key]);
  align();
  for (const std::uint64_t channel_key : keys) judge(channel_key, channels_[channel_key]);
  channels_.clear();
  counts_.joined = joined_;
  for (const Pe& pe : pes_) {
    for (const FrameEnd& end : pe.ends) {
      counts_.unknown += end.state == FrameEnd::State::unknown;
      if (end.state == FrameEnd::State::undelivered)
        ++(end.is_control ? counts_.undelivered_control : counts_.undelivered);
    }
  }
}

}  // namespace headway::model::trace
