// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <headway/aggregate/merger.hpp>
#include <utility>

namespace headway::aggregate {
namespace {

// An idle PE posts a buffer of its process after this time, in which other PEs may add messages. Waking a PE takes
// about as long.
constexpr std::int64_t linger_ns = 20'000;

}  // namespace

ProcessBuffers::ProcessBuffers(const Route& route, std::size_t pes, std::size_t frame_bytes_most, std::size_t outside,
                               const std::vector<std::size_t>& entry_bytes)
    : frame_bytes_(std::min(frame_bytes_most, outside + SharedBuffer::payload_bytes_max)), open_frames_(pes) {
  for (std::uint32_t slot = 0; slot < route.slots() && route.level(slot) + 1 < route.levels(); ++slot) {
    places_.push_back(
        std::make_unique<Place>(SharedBuffer::Capacity{frame_bytes_ - outside, entry_bytes[route.level(slot)]}));
  }
}

Merger::Merger(am::Engine& engine, const Route& route, std::shared_ptr<ProcessBuffers> buffers, std::size_t padding,
               Opened opened, Post post)
    : engine_(&engine),
      route_(&route),
      buffers_(std::move(buffers)),
      padding_(padding),
      opened_(std::move(opened)),
      post_(std::move(post)) {
  pending_.reserve(buffers_->size());
}

bool Merger::merge(const OwnBuffer& own, am::FlushReason reason) {
  if (own.slot >= buffers_->size()) return false;
  ProcessBuffers::Place& place = (*buffers_)[own.slot];
  if (!place.buffer.fits(own.payload_bytes, own.count)) return false;
  const std::uint8_t tag = engine_->scopes().tag(own.scope);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto [outcome, before] = place.buffer.try_reserve(tag, own.payload_bytes, own.count);
    switch (outcome) {
      case SharedBuffer::Outcome::busy: return false;
      case SharedBuffer::Outcome::empty:
        if (open(own, reason)) return true;
        break;  // another PE may have opened it meanwhile
      case SharedBuffer::Outcome::full: close(own.slot, before.generation, am::FlushReason::full); break;
      case SharedBuffer::Outcome::reserved:
        write(place, before, own);
        record(own, before.generation, reason);
        if (const auto content = place.buffer.finish()) post(own.slot, *content, reason);
        // more content of this size would not fit
        if (!place.buffer.fits(before.payload_bytes + 2 * own.payload_bytes, before.count + 2 * own.count)) {
          close(own.slot, before.generation, am::FlushReason::full);
        }
        return true;
    }
  }
  return false;
}

/// Opens a buffer of the process with the content of the PE's own buffer. It lies in this PE's memory and counts
/// towards its budget.
bool Merger::open(const OwnBuffer& own, am::FlushReason reason) {
  if (reason == am::FlushReason::timeout) return false;  // overdue messages do not wait for other PEs
  const std::size_t target = route_->target(own.slot);
  const auto hops_left = std::uint8_t(route_->levels() - 1 - route_->level(own.slot));
  am::FrameStore& store = engine_->store();
  if (store.queued(target, hops_left)) return false;
  const am::OpenFrame frame = store.try_claim(target, buffers_->frame_bytes(), hops_left);
  if (!frame) return false;
  ProcessBuffers::Place& place = (*buffers_)[own.slot];
  if (!place.buffer.try_begin()) {
    store.drop(target, frame);
    return false;
  }
  place.frame = frame;
  place.owner = engine_->id();
  buffers_->open_frames(place.owner).fetch_add(1, std::memory_order_relaxed);
  opened_(own.slot);
  write(place, {}, own);
  const std::uint8_t generation = place.buffer.open(
      {std::uint32_t(own.payload_bytes), std::uint32_t(own.count), engine_->scopes().tag(own.scope), 0});
  record(own, generation, reason);
  if (!place.buffer.fits(2 * own.payload_bytes, 2 * own.count)) close(own.slot, generation, reason);
  return true;
}

void Merger::write(const ProcessBuffers::Place& place, const SharedBuffer::Content& before, const OwnBuffer& own) {
  const am::OpenFrame& frame = place.frame;
  std::memcpy(frame.frame->payload() + padding_ + before.payload_bytes, own.payload, own.payload_bytes);
  const std::size_t entry_bytes = own.tail_bytes / own.count;
  std::memcpy(frame.end() - before.count * entry_bytes - own.tail_bytes, own.tail_end - own.tail_bytes, own.tail_bytes);
}

void Merger::record(const OwnBuffer& own, std::uint8_t generation, am::FlushReason reason) {
  auto known = std::ranges::find(pending_, own.slot, &Pending::slot);
  if (known == pending_.end()) {
    engine_->count_open_buffers(1);
    known = pending_.insert(pending_.end(), {own.slot, generation, own.scope, reason, 0, am::never});
  } else if (known->generation != generation || known->scope != own.scope) {
    // The known buffer has been posted, and this is a later one. Generations wrap around, so scopes are compared, too.
    // If both are equal by chance, the later buffer is posted earlier than necessary, which is harmless.
    *known = {own.slot, generation, own.scope, reason, 0, am::never};
  }
  known->messages += own.count;
  known->due = std::min(known->due, own.due);
  due_ = std::min(due_, known->due);
}

void Merger::close(std::uint32_t slot, std::uint8_t generation, am::FlushReason reason) {
  if (const auto content = (*buffers_)[slot].buffer.try_close(generation)) post(slot, *content, reason);
}

void Merger::post(std::uint32_t slot, const SharedBuffer::Content& content, am::FlushReason reason) {
  ProcessBuffers::Place& place = (*buffers_)[slot];
  const MergedFrame merged{place.frame, place.owner, content};
  buffers_->open_frames(place.owner).fetch_sub(1, std::memory_order_relaxed);
  place.buffer.take();
  post_(slot, merged, reason);
}

template <class Which>
bool Merger::close_those(Which which) {
  bool any = false;
  due_ = am::never;
  for (std::size_t i = 0; i < pending_.size();) {
    const Pending pending = pending_[i];
    const bool open = (*buffers_)[pending.slot].buffer.is_open(pending.generation);
    if (open && !which(pending)) {
      due_ = std::min(due_, pending.due);
      ++i;
      continue;
    }
    pending_[i] = pending_.back();
    pending_.pop_back();
    engine_->count_open_buffers(-1);
    if (open) close(pending.slot, pending.generation, pending.reason);
    any |= open;
  }
  return any;
}

bool Merger::flush(am::FlushReason reason) {
  if (reason == am::FlushReason::full) return flush_now(reason);  // a send or a paused frame needs its memory
  const std::int64_t until = pending_.empty() ? 0 : engine_->now() + linger_ns;
  for (Pending& pending : pending_) linger(pending, reason, until);
  return false;
}

bool Merger::flush_now(am::FlushReason reason) {
  for (Pending& pending : pending_) pending.reason = reason;
  return close_those([](const Pending&) { return true; });
}

void Merger::flush_scope_soon(am::ScopeId scope, am::FlushReason reason) {
  const std::int64_t until = pending_.empty() ? 0 : engine_->now() + linger_ns;
  for (Pending& pending : pending_) {
    if (pending.scope == scope) linger(pending, reason, until);
  }
}

void Merger::linger(Pending& pending, am::FlushReason reason, std::int64_t until) {
  if (pending.due <= until) return;
  pending.due = until;
  pending.reason = reason;
  due_ = std::min(due_, until);
}

bool Merger::flush_due(std::int64_t now) {
  if (due_ > now) return false;
  return close_those([now](const Pending& pending) { return pending.due <= now; });
}

void Merger::count_open(std::map<std::uint32_t, std::uint64_t>& by_target) const {
  for (const Pending& pending : pending_) {
    if ((*buffers_)[pending.slot].buffer.is_open(pending.generation)) {
      by_target[std::uint32_t(route_->target(pending.slot))] += pending.messages;
    }
  }
}

}  // namespace headway::aggregate
