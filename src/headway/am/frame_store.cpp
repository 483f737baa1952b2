#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <headway/am/frame_store.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>

namespace headway::am {
namespace {

// The tag of a claim: target and hops left, so that what comes back can be accounted.
constexpr std::uint64_t make_tag(std::size_t target, std::size_t hops) { return std::uint64_t(target) << 8 | hops; }

// To look for what came back costs as much as a small claim: it is done when so much has been claimed since the last
// time, and before a claim is refused.
constexpr std::size_t reclaim_after_bytes = 4096;

// A queue that has held more gives its memory back when it is empty.
constexpr std::size_t queue_capacity_kept = 16;

}  // namespace

FrameStore::FrameStore(Endpoint& endpoint, std::size_t budget_bytes, std::size_t spill_bytes_max)
    : endpoint_(&endpoint),
      budget_bytes_(budget_bytes),
      spill_bytes_max_(spill_bytes_max),
      to_target_(endpoint.size()),
      queues_(endpoint.size() * classes) {}

FrameStore::~FrameStore() {
  for (Queue& queue : queues_) {
    for (std::size_t i = queue.head; i < queue.frames.size(); ++i) {
      if (queue.frames[i].frame.spilled) free_spilled(queue.frames[i].frame);
    }
  }
}

bool FrameStore::within_budget(std::size_t target, std::size_t bytes, std::size_t hops) const {
  const ByHops& held = to_target_[target];
  const std::uint64_t held_as_near = held[0] - (hops + 1 < classes ? held[hops + 1] : 0);
  // A frame counts towards the shares of all that have fewer hops left, too.
  for (std::size_t h = 0; h <= hops; ++h) {
    const std::size_t share = budget_bytes_ * 2 / (2 + h);
    if (used_[h] + bytes > share || (held_as_near != 0 && held[h] + bytes > share / 4)) return false;
  }
  return true;
}

void FrameStore::account(std::size_t target, std::size_t hops, std::int64_t bytes) {
  for (std::size_t h = 0; h <= hops; ++h) {
    to_target_[target][h] += std::uint64_t(bytes);
    used_[h] += std::uint64_t(bytes);
  }
}

OpenFrame FrameStore::try_claim(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left) {
  claimed_since_reclaim_ += endpoint_->block_bytes(frame_bytes);
  if (claimed_since_reclaim_ >= reclaim_after_bytes) reclaim();
  if (const OpenFrame frame = try_claim_at_once(target, frame_bytes, hops_left)) return frame;
  return reclaim() ? try_claim_at_once(target, frame_bytes, hops_left) : OpenFrame();
}

OpenFrame FrameStore::try_claim_at_once(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left) {
  const std::size_t hops = class_of(hops_left);
  const std::size_t bytes = endpoint_->block_bytes(frame_bytes);
  if (!within_budget(target, bytes, hops)) return {};
  Frame* frame = endpoint_->try_claim(frame_bytes, make_tag(target, hops));
  if (frame == nullptr) return {};
  account(target, hops, std::int64_t(bytes));
  return {frame, reinterpret_cast<std::byte*>(frame) + frame_bytes, hops_left, false};
}

OpenFrame FrameStore::spill(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left) {
  if (spill_bytes_ + held_bytes_ + frame_bytes > spill_bytes_max_) {
    throw UsageError(
        fmt::format("handlers of PE {} send more than its receivers take: {} wait outside the frame budget of {}, and "
                    "{} more (to PE {}) exceed the cap of {} (HEADWAY_SPILL)",
                    endpoint_->id(), format_bytes(spill_bytes_), format_bytes(budget_bytes_), format_bytes(frame_bytes),
                    target, format_bytes(spill_bytes_max_)));
  }
  ++spilled_frames_;
  return spill_uncapped(frame_bytes, hops_left);
}

std::shared_ptr<std::byte> FrameStore::hold(std::size_t source, std::size_t frame_bytes) {
  const std::size_t bytes = align_up(frame_bytes, 64);
  if (spill_bytes_ + held_bytes_ + bytes > spill_bytes_max_) {
    throw UsageError(fmt::format(
        "messages that PE {} cannot handle yet, of epochs that it has not begun, or for aggregators that it has "
        "not made or collectives that it has not called, take {}, and {} more (from PE {}) exceed the cap of {} (HEADWAY_SPILL)",
        endpoint_->id(), format_bytes(held_bytes_), format_bytes(bytes), source, format_bytes(spill_bytes_max_)));
  }
  std::byte* memory = spill_memory_.allocate(bytes);
  held_bytes_ += bytes;
  return {memory, [this](std::byte* p) { held_bytes_ -= spill_memory_.free(p); }};
}

OpenFrame FrameStore::spill_uncapped(std::size_t frame_bytes, std::uint8_t hops_left) {
  std::byte* at = spill_memory_.allocate(frame_bytes);
  spill_bytes_ += frame_bytes;
  spill_bytes_peak_ = std::max(spill_bytes_peak_, spill_bytes_);
  return {reinterpret_cast<Frame*>(at), at + frame_bytes, hops_left, true};
}

void FrameStore::free_spilled(const OpenFrame& frame) {
  spill_bytes_ -= spill_memory_.free(reinterpret_cast<std::byte*>(frame.frame));
}

void FrameStore::drop(std::size_t target, const OpenFrame& frame) {
  if (frame.spilled) return free_spilled(frame);
  const std::size_t bytes = endpoint_->block_bytes(std::size_t(frame.end - reinterpret_cast<std::byte*>(frame.frame)));
  account(target, class_of(frame.hops_left), -std::int64_t(bytes));
  endpoint_->drop(frame.frame);
}

bool FrameStore::post(std::size_t target, const OpenFrame& frame, const std::byte* tail_end) {
  if (frame.of_another) return post_of_another(target, frame, tail_end);
  const std::size_t index = queue_index(target, frame.hops_left);
  Queue& queue = queues_[index];
  if (queue.empty()) {
    if (try_post(target, frame, tail_end) == Outcome::posted) return true;
    waiting_queues_.push_back(index);
  }
  queue.frames.push_back({frame, tail_end});
  ++queued_frames_;
  ++queued_in_[scope_of_tag(frame.frame->header.scope)];
  return false;
}

bool FrameStore::post_of_another(std::size_t target, const OpenFrame& frame, const std::byte* tail_end) {
  if (endpoint_->try_post(target, frame.frame, tail_end, true) == Endpoint::Posted::lent) return true;
  of_others_.push_back({target, {frame, tail_end}});
  ++queued_frames_;
  ++queued_in_[scope_of_tag(frame.frame->header.scope)];
  return false;
}

bool FrameStore::drain_of_others() {
  return std::erase_if(of_others_, [this](const auto& waiting) {
           const auto& [target, queued] = waiting;
           const ScopeId scope = scope_of_tag(queued.frame.frame->header.scope);
           if (endpoint_->try_post(target, queued.frame.frame, queued.tail_end, true) != Endpoint::Posted::lent)
             return false;
           --queued_frames_;
           --queued_in_[scope];
           return true;
         }) != 0;
}

FrameStore::Outcome FrameStore::try_post(std::size_t target, const OpenFrame& frame, const std::byte* tail_end) {
  switch (endpoint_->try_post(target, frame.frame, tail_end, !frame.spilled)) {
    case Endpoint::Posted::lent: return Outcome::posted;
    case Endpoint::Posted::copied: drop(target, frame); return Outcome::posted;
    case Endpoint::Posted::refused: break;
  }
  if (!frame.spilled) return Outcome::queue_full;

  // A spilled frame that is too large to go by value: move it to frame memory as soon as there is some.
  const FrameHeader& header = frame.frame->header;
  const std::size_t bytes = frame_overhead + header.payload_bytes + header.tail_bytes;
  const OpenFrame copy = try_claim(target, bytes, frame.hops_left);
  if (!copy) return Outcome::no_memory;
  copy.frame->header = header;
  std::memcpy(copy.frame->payload(), frame.frame->payload(), header.payload_bytes);
  std::memcpy(copy.end - header.tail_bytes, tail_end - header.tail_bytes, header.tail_bytes);
  switch (endpoint_->try_post(target, copy.frame, copy.end, true)) {
    case Endpoint::Posted::lent: break;
    case Endpoint::Posted::copied: drop(target, copy); break;
    case Endpoint::Posted::refused: drop(target, copy); return Outcome::queue_full;
  }
  free_spilled(frame);
  return Outcome::posted;
}

/// A buffer may have been claimed before the spilled frame at the head of its queue was spilled, and hold the very
/// memory that this one waits for: move the last such frame to the PE's own memory. False if there is none.
bool FrameStore::demote_one_behind(std::size_t target, Queue& queue) {
  for (std::size_t i = queue.frames.size(); i-- > queue.head + 1;) {
    Queued& queued = queue.frames[i];
    if (queued.frame.spilled) continue;
    const FrameHeader& header = queued.frame.frame->header;
    const OpenFrame copy =
        spill_uncapped(frame_overhead + header.payload_bytes + header.tail_bytes, queued.frame.hops_left);
    copy.frame->header = header;
    std::memcpy(copy.frame->payload(), queued.frame.frame->payload(), header.payload_bytes);
    std::memcpy(copy.end - header.tail_bytes, queued.tail_end - header.tail_bytes, header.tail_bytes);
    drop(target, queued.frame);
    queued = {copy, copy.end};
    return true;
  }
  return false;
}

bool FrameStore::drain() {
  bool any = !of_others_.empty() && drain_of_others();
  for (std::size_t i = 0; i < waiting_queues_.size();) {
    Queue& queue = queues_[waiting_queues_[i]];
    const std::size_t target = waiting_queues_[i] / classes;
    while (!queue.empty()) {
      const Queued head = queue.frames[queue.head];
      const ScopeId scope = scope_of_tag(head.frame.frame->header.scope);  // a frame that is posted is no longer here
      const Outcome outcome = try_post(target, head.frame, head.tail_end);
      if (outcome == Outcome::queue_full) break;
      if (outcome == Outcome::no_memory) {
        if (!demote_one_behind(target, queue)) break;
        continue;
      }
      ++queue.head;
      --queued_frames_;
      --queued_in_[scope];
      any = true;
    }
    if (!queue.empty()) {
      // Not kept up by frames that keep coming: what has gone is at most half.
      if (queue.head > queue.frames.size() / 2) {
        queue.frames.erase(queue.frames.begin(), queue.frames.begin() + std::ptrdiff_t(queue.head));
        queue.head = 0;
      }
      ++i;
      continue;
    }
    queue.frames.clear();
    if (queue.frames.capacity() > queue_capacity_kept) queue.frames.shrink_to_fit();
    queue.head = 0;
    waiting_queues_[i] = waiting_queues_.back();
    waiting_queues_.pop_back();
  }
  return any;
}

bool FrameStore::reclaim() {
  claimed_since_reclaim_ = 0;
  return endpoint_->reclaim(
             [](void* self, std::size_t bytes, std::uint64_t tag) {
               static_cast<FrameStore*>(self)->account(tag >> 8, tag & 0xff, -std::int64_t(bytes));
             },
             this) != 0;
}

}  // namespace headway::am
