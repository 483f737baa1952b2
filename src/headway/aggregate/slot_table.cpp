// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/aggregate/slot_table.hpp>
#include <headway/base/error.hpp>
#include <headway/transport/observer.hpp>
#include <utility>

namespace headway::aggregate {

SlotTable::SlotTable(const am::FrameHandler& owner, FramePoster& poster, const Route& route,
                     const AggregatorOptions& options, FrameLayout layout)
    : engine_(&poster.engine()),
      poster_(&poster),
      route_(&route),
      owner_(&owner),
      layout_(std::move(layout)),
      idle_flush_(options.flush_when_idle),
      timeout_ns_(options.timeout.count() > am::never / 2 ? am::never : options.timeout.count()) {  // centuries
  observer_ = transport::observer_of(engine_->endpoint());
  if (observer_ != nullptr) keeper_ = observer_->keeper_of_flushes();
  enter_scope(engine_->scope());
}

void SlotTable::enter_scope(am::ScopeId scope) {
  current_ = &sets_.of(scope, *route_);
  slots_ = current_->slots.data();
  gatherings_ = current_->gatherings.data();
}

void SlotTable::refuse_to_post() const {
  throw UsageError(fmt::format("the program sends or waits while {} reads its messages, which is not allowed: {}",
                               in_batch_ ? "send_n()" : "send_range()", owner_->description()));
}

// --- opening

std::size_t SlotTable::next_frame_bytes(std::uint32_t slot, std::size_t padded) {
  ColdSlot& cold = current_->cold[slot];
  const SizeLimits& limits = layout_.sizes[cold.level];
  cold.size.hold(limits, transport::frame_overhead + layout_.padding + padded + entry(slot).bytes + entry_slack);
  return cold.size.next(limits);
}

bool SlotTable::open(std::uint32_t slot, std::size_t padded, Wait wait) {
  const std::uint32_t target = current_->cold[slot].target;
  if (wait == Wait::no) return try_open(slot, padded);
  const std::size_t bytes = next_frame_bytes(slot, padded);
  if (!engine_->may_block()) {
    start_frame(slot, engine_->store().claim_or_spill(target, bytes, hops_left(slot), am::Writing::in_pieces));
    return true;
  }
  const am::OpenFrame frame = poster_->claim_waiting(target, bytes, hops_left(slot), am::Writing::in_pieces);
  if (is_open(slot)) {
    engine_->store().drop(target, frame);  // a handler has opened it meanwhile
  } else {
    start_frame(slot, frame);
  }
  return true;
}

bool SlotTable::try_open(std::uint32_t slot, std::size_t padded) {
  const std::uint32_t target = current_->cold[slot].target;
  if (engine_->store().queued(target, hops_left(slot))) return false;
  const am::OpenFrame frame =
      engine_->store().try_claim(target, next_frame_bytes(slot, padded), hops_left(slot), am::Writing::in_pieces);
  if (!frame) return false;
  start_frame(slot, frame);
  return true;
}

void SlotTable::start_frame(std::uint32_t slot, const am::OpenFrame& frame) {
  Slot& s = slots_[slot];
  ColdSlot& cold = current_->cold[slot];
  cold.frame = frame;
  s.begin = s.cursor = poster_->message_of(frame);
  const std::size_t bytes = frame.bytes;
  if (layout_.fixed_bytes == 0) {
    s.limit = frame.end();
    s.kept_free = bytes - std::min(layout_.filled(bytes), bytes) + entry(slot).bytes + entry_slack - 1;
  } else {
    // Without entries push_entry() still writes, to memory that is never read.
    s.tail = entry(slot).bytes != 0 ? frame.end() : unread_entry_ + sizeof unread_entry_;
    s.limit = s.begin + layout_.capacity(cold.level, bytes) * layout_.fixed_bytes;
  }
  cold.due = timeout_ns_ == am::never ? am::never : engine_->now() + timeout_ns_;
  if (keeper_ != nullptr) [[unlikely]]
    cold.opened_ns = keeper_->clock_ns();
  current_->link(slot);
  open_bytes_ += bytes;
  engine_->count_open_buffers(1);
  count_peaks(cold.target);
}

/// Called when this PE has opened a buffer for `target`.
void SlotTable::count_peaks(std::size_t target) {
  poster_->counters().count_peaks(open_bytes(), engine_->store().outstanding_bytes(target));
}

std::size_t SlotTable::room_everywhere(std::size_t bytes) const {
  const std::size_t slots = fast_paths_.one_hop;
  if (slots == 0 || slots > Batch::slots_max) return 0;
  auto least = ~std::size_t(0);
  for (std::size_t slot = 0; slot != slots && least != 0; ++slot) least = std::min(least, room(slots_[slot]));
  return least / bytes;
}

std::size_t SlotTable::tail_bytes(const SlotSet& set, std::uint32_t slot) const {
  if (entry(slot).bytes == 0) return 0;
  const Slot& s = set.slots[slot];
  const std::byte* tail = layout_.fixed_bytes == 0 ? s.limit : s.tail;
  return std::size_t(set.cold[slot].frame.end() - tail);
}

std::size_t SlotTable::messages_in(const SlotSet& set, std::uint32_t slot) const {
  const Slot& s = set.slots[slot];
  const std::size_t entry_bytes = entry(slot).bytes;
  return entry_bytes != 0 ? tail_bytes(set, slot) / entry_bytes : std::size_t(s.cursor - s.begin) / layout_.fixed_bytes;
}

SlotTable::Open SlotTable::in_open_buffers() const {
  Open open;
  for (const auto& set : sets_) {
    for (std::uint32_t slot = set->first_open; slot != none; slot = set->cold[slot].next) {
      open.messages += messages_in(*set, slot);
      open.bytes += std::size_t(set->slots[slot].cursor - set->slots[slot].begin);
    }
  }
  return open;
}

void SlotTable::count_open(std::map<std::uint32_t, std::uint64_t>& by_target) const {
  for (const auto& set : sets_) {
    for (std::uint32_t slot = set->first_open; slot != none; slot = set->cold[slot].next) {
      if (const std::size_t messages = messages_in(*set, slot)) by_target[set->cold[slot].target] += messages;
    }
  }
  if (merger_ != nullptr) merger_->count_open(by_target);
}

// --- posting

void SlotTable::post(SlotSet& set, std::uint32_t slot, am::FlushReason reason) {
  Slot& s = set.slots[slot];
  ColdSlot& cold = set.cold[slot];
  if (cold.in_row || in_batch_) refuse_to_post();
  const transport::Working working(observer_, transport::Observer::Work::communication);
  const std::size_t tail = tail_bytes(set, slot);
  const auto payload_bytes = std::size_t(s.cursor - cold.frame.frame->payload());
  const std::size_t count = messages_in(set, slot);
  s = {};
  set.unlink(slot);
  open_bytes_ -= cold.frame.bytes;
  engine_->count_open_buffers(-1);
  if (count == 0) return engine_->store().drop(cold.target, cold.frame);
  // Only for the last hop, which keeps the order: earlier messages are at the same target, or on their way to it.
  if (idle_flush_ && is_last_hop(cold)) set.gatherings[slot].posted(reason, count);
  const std::size_t used = transport::frame_overhead + payload_bytes + tail;
  cold.size.posted(layout_.sizes[cold.level], reason, used);
  engine_->count_created(count, set.scope);
  Counters& counters = poster_->counters();
  counters.created += count;
  counters.payload_bytes += payload_bytes - layout_.padding;
  if (merger_ != nullptr && merge(set, slot, payload_bytes, tail, count, reason)) {
    return engine_->store().drop(cold.target, cold.frame);
  }
  counters.count_buffered(reason, used, cold.frame.bytes);
  if (keeper_ != nullptr) [[unlikely]]
    return post_kept(cold, reason, set.scope, payload_bytes, tail, count);
  poster_->post(cold.target, cold.frame, set.scope, payload_bytes, tail, std::uint32_t(count), 0);
}

void SlotTable::post_kept(const ColdSlot& cold, am::FlushReason reason, am::ScopeId scope, std::size_t payload_bytes,
                          std::size_t tail_bytes, std::size_t count) {
  const transport::Frame* const posted = cold.frame.claimed();
  keeper_->begin_flush({std::uint8_t(reason), cold.opened_ns});
  poster_->post(cold.target, cold.frame, scope, payload_bytes, tail_bytes, std::uint32_t(count), 0);
  keeper_->end_flush(posted);
}

bool SlotTable::flush_set(SlotSet& set, am::FlushReason reason) {
  const bool any = !set.empty();
  while (!set.empty()) post(set, set.first_open, reason);
  return any;
}

bool SlotTable::flush_open(am::FlushReason reason) {
  bool any = false;
  for (const auto& set : sets_) any |= flush_set(*set, reason);
  if (merger_ != nullptr) any |= merger_->flush(reason);
  return any;
}

void SlotTable::flush_now() {
  flush_open(am::FlushReason::requested);
  if (merger_ != nullptr) merger_->flush_now(am::FlushReason::requested);
}

/// Posts one buffer in each call: messages that arrive in between still find open buffers, and PEs that forward get
/// fewer frames at once. First hops go first, because their messages may gather once more on the route.
bool SlotTable::flush_idle(am::IdleFlush how) {
  if (!idle_flush_) return false;
  if (how == am::IdleFlush::all || route_->levels() == 1 || merger_ != nullptr) {
    return flush_open(am::FlushReason::idle);
  }
  bool any = false;
  std::size_t open = 0;
  SlotSet* turn_set = nullptr;
  std::uint32_t turn = none;
  for (const auto& set : sets_) {
    for (std::uint32_t slot = set->first_open, next; slot != none; slot = next) {
      const ColdSlot& cold = set->cold[slot];
      next = cold.next;
      if (!poster_->leaves_host(cold.target)) {  // within the host a frame costs less than the search
        post(*set, slot, am::FlushReason::idle);
        any = true;
        continue;
      }
      ++open;
      if (turn != none && cold.level >= turn_set->cold[turn].level) continue;
      turn_set = set.get();
      turn = slot;
    }
  }
  if (turn == none) return any;
  post(*turn_set, turn, am::FlushReason::idle);
  if (open > 1) engine_->defer_idle_flush();
  return true;
}

bool SlotTable::flush_scope(am::ScopeId scope, am::FlushReason reason) {
  SlotSet* set = sets_.find(scope);
  const bool any = set != nullptr && flush_set(*set, reason);
  if (merger_ != nullptr) merger_->flush_scope_soon(scope, reason);
  return any;
}

std::int64_t SlotTable::due() const {
  std::int64_t due = am::never;
  for (const auto& set : sets_) {
    if (!set->empty()) due = std::min(due, set->cold[set->first_open].due);
  }
  return merger_ == nullptr ? due : std::min(due, merger_->due());
}

bool SlotTable::flush_due(std::int64_t now) {
  bool any = false;
  for (const auto& set : sets_) {
    for (; !set->empty() && set->cold[set->first_open].due <= now; any = true) {
      post(*set, set->first_open, am::FlushReason::timeout);
    }
  }
  if (merger_ != nullptr) any |= merger_->flush_due(now);
  return any;
}

// --- buffers that the PEs of a process fill together

void SlotTable::merge_in_process(std::uint64_t number, std::size_t buffer_bytes) {
  std::vector<std::size_t> entry_bytes;
  for (const Entry& entry : layout_.entries) entry_bytes.push_back(entry.bytes());
  transport::SharedByProcess& shared = *engine_->endpoint().shared_memory().shared_by_process();
  auto buffers = shared.find_or_make<ProcessBuffers>(number, [&] {
    return std::make_shared<ProcessBuffers>(*route_, engine_->endpoint().host_map().pes_per_process, buffer_bytes,
                                            transport::frame_overhead + layout_.padding, entry_bytes);
  });
  merger_ = std::make_unique<Merger>(
      *engine_, *route_, std::move(buffers), layout_.padding,
      [this](std::uint32_t slot) { count_peaks(route_->target(slot)); },
      [this](std::uint32_t slot, const MergedFrame& merged, am::FlushReason reason) {
        post_merged(slot, merged, reason);
      });
}

bool SlotTable::merge(const SlotSet& set, std::uint32_t slot, std::size_t payload_bytes, std::size_t tail_bytes,
                      std::size_t count, am::FlushReason reason) {
  const ColdSlot& cold = set.cold[slot];
  const std::size_t content_bytes = payload_bytes - layout_.padding;
  if (!merger_->merge({slot, set.scope, poster_->message_of(cold.frame), cold.frame.end(), content_bytes, tail_bytes,
                       count, cold.due},
                      reason)) {
    return false;
  }
  poster_->counters().further_copies.add(count, content_bytes);
  return true;
}

void SlotTable::post_merged(std::uint32_t slot, const MergedFrame& merged, am::FlushReason reason) {
  const std::size_t payload_bytes = layout_.padding + merged.content.payload_bytes;
  const std::size_t tail_bytes = std::size_t(merged.content.count) * entry(slot).bytes;
  poster_->counters().count_buffered(reason, transport::frame_overhead + payload_bytes + tail_bytes,
                                     merged.frame.bytes);
  poster_->post_merged(route_->target(slot), merged.frame, merged.owner, merged.content.tag, payload_bytes, tail_bytes,
                       merged.content.count);
}

}  // namespace headway::aggregate
