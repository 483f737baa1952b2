// SPDX-License-Identifier: BSD-3-Clause
// The part of Core for buffers that the PEs of a process fill together.
#include <headway/aggregate/core.hpp>
#include <headway/aggregate/defaults.hpp>

namespace headway::aggregate {

/// The size of the buffers that a PE fills alone: its own buffers with pp, and those for PEs of its host on a route
/// over hosts.
std::size_t Core::own_buffer_bytes() const {
  const HostFirsts hosts = engine_->endpoint().host_map().host_firsts;
  return part_bytes(options_.buffer_bytes,
                    route_.is_over_hosts() ? host_sizes(engine_->size(), hosts).most : process_pes_);
}

/// Buffers that PEs fill together keep no order, and are needed only where processes have several PEs.
AggregatorOptions Core::options_possible(AggregatorOptions options) const {
  const bool together =
      engine_->endpoint().shared_memory().shared_by_process() != nullptr && process_pes_ <= SharedBuffer::writers_max;
  if (options.topology.scheme == Scheme::pp && (options.ordered || !together)) options.topology.scheme = Scheme::wps;
  return options;
}

void Core::flush_now() {
  flush_open(am::FlushReason::requested);
  if (merger_ != nullptr) merger_->flush_now(am::FlushReason::requested);
}

void Core::make_merger() {
  std::vector<std::size_t> entry_bytes;
  for (const Entry& entry : entries_) entry_bytes.push_back(entry.bytes());
  SharedByProcess& shared = *engine_->endpoint().shared_memory().shared_by_process();
  // All PEs of the process make it the same: their numbers and signatures of it agree.
  auto buffers = shared.find_or_make<ProcessBuffers>(std::uint64_t(id_) << 16 | signature_, [&] {
    return std::make_shared<ProcessBuffers>(route_, process_pes_, options_.buffer_bytes, frame_overhead + padding_,
                                            entry_bytes);
  });
  merger_ = std::make_unique<Merger>(
      *engine_, route_, std::move(buffers), padding_, [this](std::uint32_t slot) { update_peaks(route_.target(slot)); },
      [this](std::uint32_t slot, const MergedFrame& merged, am::FlushReason reason) {
        post_merged(slot, merged, reason);
      });
}

bool Core::merge(const SlotSet& set, std::uint32_t slot, std::size_t payload_bytes, std::size_t tail_bytes,
                 std::size_t count, am::FlushReason reason) {
  const ColdSlot& cold = set.cold[slot];
  const std::size_t content_bytes = payload_bytes - padding_;
  if (!merger_->merge({slot, set.scope, cold.frame.frame->payload() + padding_, cold.frame.end(), content_bytes,
                       tail_bytes, count, cold.due},
                      reason)) {
    return false;
  }
  count_copies(count, content_bytes);
  return true;
}

void Core::post_merged(std::uint32_t slot, const MergedFrame& merged, am::FlushReason reason) {
  const std::size_t target = route_.target(slot);
  const std::size_t payload_bytes = padding_ + merged.content.payload_bytes;
  const std::size_t tail_bytes = merged.content.count * entries_[route_.level(slot)].bytes();
  am::OpenFrame frame = merged.frame;
  if (merged.owner != engine_->id()) frame.memory = am::OpenFrame::Memory::of_another;
  count_buffered(reason, frame_overhead + payload_bytes + tail_bytes, frame.bytes);
  count_frame(target, payload_bytes + tail_bytes);
  FrameHeader& header = frame.frame->header;
  fill_header(header, am::root_scope, frame.hops_left, payload_bytes, tail_bytes, merged.content.count, 0);
  header.source = std::uint16_t(merged.owner);
  header.scope = merged.content.tag;
  engine_->store().post(target, frame);
}

}  // namespace headway::aggregate
