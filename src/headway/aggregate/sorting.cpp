// The part of Core that has to do with frames sorted by the PE of the receiving process.
#include <algorithm>
#include <cstring>
#include <headway/aggregate/core.hpp>
#include <headway/base/format_error.hpp>

namespace headway::aggregate {

/// The length of a message, which a part states itself.
std::size_t Core::bytes_at(const std::byte* at, std::size_t left, std::uint64_t length) const {
  if (shape_.fixed_bytes != 0) return shape_.fixed_bytes;
  if (options_.ordered && length == part_mark) {
    PartHeader part;
    if (left < sizeof part) return ~std::size_t(0);
    std::memcpy(&part, at, sizeof part);
    return part.bytes <= left ? sizeof part + part.bytes : ~std::size_t(0);
  }
  return length;
}

void Core::sort(const SlotSet& set, std::uint32_t slot, std::size_t payload_bytes, std::size_t count) {
  const SlotEntry& form = slot_entries_[slot];
  const Entry& entry = entries_[set.cold[slot].level];
  const am::OpenFrame& frame = set.cold[slot].frame;
  std::byte* const begin = frame.frame->payload() + padding_;
  std::byte* const end = frame.frame->payload() + payload_bytes;

  lots_.assign(process_pes_, {});
  unsorted_.assign(begin, end);
  unsorted_entries_.resize(count);
  sorted_entries_.resize(count);
  const std::byte* at = begin;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = read_entry(frame.end() - i * form.bytes, entry);
    Lot& lot = lots_[entry.key(value)];
    const std::size_t bytes = align_up(bytes_at(at, std::size_t(end - at), entry.length(value)), shape_.alignment);
    unsorted_entries_[i] = value;
    ++lot.messages;
    lot.bytes += bytes;
    at += bytes;
  }
  Lot next;
  for (Lot& lot : lots_) {
    const Lot first = next;
    next.messages += lot.messages;
    next.bytes += lot.bytes;
    lot = first;
  }
  const std::byte* from = unsorted_.data();
  for (const std::uint64_t value : unsorted_entries_) {
    Lot& lot = lots_[entry.key(value)];
    const auto left = std::size_t(unsorted_.data() + unsorted_.size() - from);
    const std::size_t bytes = align_up(bytes_at(from, left, entry.length(value)), shape_.alignment);
    if (bytes != 0) std::memcpy(begin + lot.bytes, from, bytes);  // of nothing but empty messages there is no memory
    sorted_entries_[lot.messages++] = value;
    lot.bytes += bytes;
    from += bytes;
  }
  count_copies(2 * count, 2 * unsorted_.size());  // out and back
  // In this order: writing one may touch those below.
  for (std::size_t i = 0; i < count; ++i) write_entry(frame.end() - i * form.bytes, form, sorted_entries_[i]);
}

Core::Run Core::repack_run(const Arrival& arrival, unsigned level, const Route::Hop& hop, const std::byte* at,
                           const std::byte* entry_end, std::size_t messages) {
  const Entry& from = entries_[level];
  const SlotEntry& to = slot_entries_[hop.slot];
  const std::byte* const end = arrival.payload + arrival.header.payload_bytes;
  const std::uint64_t first = read_entry(entry_end, from), key = from.key(first);
  const std::size_t first_bytes = align_up(bytes_at(at, std::size_t(end - at), from.length(first)), shape_.alignment);
  for (;;) {
    if (!is_open(hop.slot) && !try_open_slot(hop.slot, first_bytes)) return {};
    Slot& slot = slots_[hop.slot];
    const std::size_t room_bytes =
        shape_.fixed_bytes == 0 ? room(slot) - entry_slack : std::size_t(slot.limit - slot.cursor);
    const std::size_t entry_bytes = shape_.fixed_bytes == 0 ? to.bytes : 0;  // of fixed-size ones: in what limits them
    Run run;
    std::size_t entries = 0;
    run_entries_.clear();
    for (; run.messages < messages; ++run.messages) {
      const std::uint64_t value = read_entry(entry_end - run.messages * from.bytes(), from);
      if (from.key(value) != key) break;
      const auto left = std::size_t(end - at) - run.bytes;
      const std::size_t bytes = bytes_at(at + run.bytes, left, from.length(value));
      if (bytes > left) refuse_frame(arrival, "a message is longer than the frame");
      if (from.source_bytes != 0 && from.source(value) >= engine_->size()) {
        refuse_frame(arrival, "a message's source is no PE of this run");
      }
      const std::size_t padded = std::min(align_up(bytes, shape_.alignment), left);
      if (run.bytes + padded + entries + entry_bytes > room_bytes) break;
      if (to.bytes != 0) run_entries_.push_back(to.encode(from.length(value), hop.key, from.source(value)));
      entries += entry_bytes;
      run.bytes += padded;
    }
    if (run.messages == 0) {
      if (is_empty(hop.slot)) refuse_frame(arrival, "a message is longer than any that is forwarded");
      flush_slot(hop.slot, am::FlushReason::full);
      continue;
    }
    std::memcpy(slot.cursor, at, run.bytes);
    slot.cursor += run.bytes;
    for (const std::uint64_t value : run_entries_) append_entry(slot, to, value);
    if (shape_.fixed_bytes == 0 && fills(slot, slot.cursor)) flush_slot(hop.slot, am::FlushReason::full);
    return run;
  }
}

/// Of a message whose bytes are there already.
void Core::append_entry(Slot& slot, const SlotEntry& entry, std::uint64_t value) {
  if (shape_.fixed_bytes != 0) return push_entry(slot, entry, value);
  write_entry(slot.limit, entry, value);
  slot.limit -= entry.bytes;
}

}  // namespace headway::aggregate
