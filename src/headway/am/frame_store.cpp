// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <headway/am/frame_store.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/copy_large.hpp>
#include <headway/base/error.hpp>

namespace headway::am {
namespace {

using Memory = OpenFrame::Memory;

/// Of a staging buffer.
transport::Frame* claimed_for(const OpenFrame& staging) {
  return reinterpret_cast<transport::Frame*>(staging.frame->link);
}

// The tag of a claim, target and hops left: reclaim() accounts returned frames by it.
constexpr std::uint64_t make_tag(std::size_t target, std::size_t hops) { return std::uint64_t(target) << 8 | hops; }

// reclaim() costs as much as a small claim. It runs after so many claimed bytes, and before a claim is refused.
constexpr std::size_t reclaim_after_bytes = 4096;

// Staging buffers together have the budget divided by this. It limits the frames that are filled in them at a time.
constexpr std::size_t staging_share = 8;

// An empty queue with more capacity frees its memory.
constexpr std::size_t queue_capacity_kept = 16;

}  // namespace

FrameStore::FrameStore(transport::Endpoint& endpoint, std::size_t budget_bytes, std::size_t spill_bytes_max)
    : endpoint_(&endpoint),
      budget_bytes_(budget_bytes),
      spill_bytes_max_(spill_bytes_max),
      to_target_(endpoint.size()),
      queues_(endpoint.size() * classes) {}

FrameStore::~FrameStore() {
  for (Queue& queue : queues_) {
    for (std::size_t i = queue.head; i < queue.frames.size(); ++i) {
      if (queue.frames[i].memory == Memory::spilled) free_spilled(queue.frames[i]);
    }
  }
}

bool FrameStore::within_budget(std::size_t target, std::size_t bytes, std::size_t hops) const {
  const ByHops& held = to_target_[target];
  const std::uint64_t held_as_near = held[0] - (hops + 1 < classes ? held[hops + 1] : 0);
  // A frame also counts towards the shares of all smaller numbers of hops left.
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

OpenFrame FrameStore::try_claim(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left, Writing writing) {
  claimed_since_reclaim_ += endpoint_->block_bytes(frame_bytes);
  if (claimed_since_reclaim_ >= reclaim_after_bytes) reclaim();
  OpenFrame frame = try_claim_at_once(target, frame_bytes, hops_left);
  if (!frame && reclaim()) frame = try_claim_at_once(target, frame_bytes, hops_left);
  const bool past_caches = writing != Writing::any && frame && endpoint_->should_write_past_caches(frame.frame);
  return past_caches ? write_past_caches(frame, writing) : frame;
}

OpenFrame FrameStore::try_claim_at_once(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left) {
  const std::size_t hops = class_of(hops_left);
  const std::size_t bytes = endpoint_->block_bytes(frame_bytes);
  if (!within_budget(target, bytes, hops)) return {};
  transport::Frame* frame = endpoint_->try_claim(frame_bytes, make_tag(target, hops));
  if (frame == nullptr) return {};
  account(target, hops, std::int64_t(bytes));
  return {frame, std::uint32_t(frame_bytes), hops_left, Memory::claimed};
}

/// A staging buffer, if that is wanted and there is room.
OpenFrame FrameStore::write_past_caches(OpenFrame frame, Writing writing) {
  if (writing == Writing::at_once) {
    frame.past_caches = true;
    ++frames_past_caches_;
    return frame;
  }
  if (staging_memory_ == nullptr)
    staging_memory_ = std::make_unique<StagingMemory>(std::bit_floor(budget_bytes_ / staging_share));
  auto* const staging = reinterpret_cast<transport::Frame*>(staging_memory_->try_take(frame.bytes));
  if (staging == nullptr) return frame;
  staging->link = reinterpret_cast<std::uintptr_t>(frame.frame);
  frame.frame = staging;
  frame.memory = Memory::staging;
  return frame;
}

/// Copies the content of a staging buffer to the frame that is claimed for it, in whole lines as far as that goes, and
/// frees it.
OpenFrame FrameStore::write_out(const OpenFrame& staging) {
  constexpr std::size_t line = 64;
  ++frames_past_caches_;
  OpenFrame frame = staging;
  frame.frame = claimed_for(staging);
  frame.memory = Memory::claimed;
  const transport::FrameHeader& header = staging.frame->header;
  const std::size_t payload_end =
      std::min<std::size_t>(base::align_up(transport::frame_overhead + header.payload_bytes, line), frame.bytes);
  const std::size_t tail = (frame.bytes - header.tail_bytes) / line * line;
  if (header.tail_bytes != 0 && tail <= payload_end) {
    base::copy_past_caches(frame.begin(), staging.begin(), frame.bytes);
  } else {
    base::copy_past_caches(frame.begin(), staging.begin(), payload_end);
    if (header.tail_bytes != 0)
      base::copy_past_caches(frame.begin() + tail, staging.begin() + tail, frame.bytes - tail);
  }
  staging_memory_->give(staging.begin());
  return frame;
}

OpenFrame FrameStore::spill(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left) {
  if (spill_bytes_ + held_bytes_ + frame_bytes > spill_bytes_max_) {
    throw UsageError(fmt::format(
        "handlers of PE {} send more than its receivers handle: {} wait outside the frame budget of {}, and "
        "{} more (to PE {}) exceed the cap of {} (HEADWAY_SPILL)",
        endpoint_->id(), base::format_bytes(spill_bytes_), base::format_bytes(budget_bytes_),
        base::format_bytes(frame_bytes), target, base::format_bytes(spill_bytes_max_)));
  }
  ++spilled_frames_;
  return spill_uncapped(frame_bytes, hops_left);
}

std::shared_ptr<std::byte> FrameStore::hold(std::size_t source, std::size_t frame_bytes) {
  const std::size_t bytes = base::align_up(frame_bytes, 64);
  if (spill_bytes_ + held_bytes_ + bytes > spill_bytes_max_) {
    throw UsageError(fmt::format(
        "messages that PE {} cannot handle yet use {}, and {} more (from PE {}) exceed the cap of {} (HEADWAY_SPILL): "
        "they "
        "are of epochs that it has not begun, of the phase after its quiesce(), or for aggregators or collective calls "
        "that it has not made",
        endpoint_->id(), base::format_bytes(held_bytes_), base::format_bytes(bytes), source,
        base::format_bytes(spill_bytes_max_)));
  }
  std::byte* memory = spill_memory_.allocate(bytes);
  held_bytes_ += bytes;
  update_accept_in_place();
  return {memory, [this](std::byte* p) {
            held_bytes_ -= spill_memory_.free(p);
            update_accept_in_place();
          }};
}

/// While this PE holds many frames, senders should keep new ones in their own memory, which is bounded.
void FrameStore::update_accept_in_place() {
  const bool accepts = held_bytes_ <= budget_bytes_ / (accepts_in_place_ ? 8 : 16);
  if (accepts != accepts_in_place_) endpoint_->accept_in_place(accepts_in_place_ = accepts);
}

OpenFrame FrameStore::spill_uncapped(std::size_t frame_bytes, std::uint8_t hops_left) {
  std::byte* at = spill_memory_.allocate(frame_bytes);
  spill_bytes_ += frame_bytes;
  spill_bytes_peak_ = std::max(spill_bytes_peak_, spill_bytes_);
  return {reinterpret_cast<transport::Frame*>(at), std::uint32_t(frame_bytes), hops_left, Memory::spilled};
}

void FrameStore::free_spilled(const OpenFrame& frame) { spill_bytes_ -= spill_memory_.free(frame.begin()); }

void FrameStore::drop(std::size_t target, const OpenFrame& frame) {
  if (frame.memory == Memory::spilled) return free_spilled(frame);
  account(target, class_of(frame.hops_left), -std::int64_t(endpoint_->block_bytes(frame.bytes)));
  if (frame.memory != Memory::staging) return endpoint_->drop(frame.frame);
  endpoint_->drop(claimed_for(frame));
  staging_memory_->give(frame.begin());
}

bool FrameStore::post(std::size_t target, const OpenFrame& frame) {
  if (frame.memory == Memory::staging) return post_staging(target, frame);
  if (frame.memory == Memory::of_another) return post_of_another(target, frame);
  const std::size_t index = queue_index(target, frame.hops_left);
  Queue& queue = queues_[index];
  if (queue.empty()) {
    if (try_post(target, frame) == Outcome::posted) return true;
    waiting_queues_.push_back(index);
  }
  queue.frames.push_back(frame);
  ++queued_frames_;
  ++queued_in_[scope_of_tag(frame.frame->header.scope)];
  return false;
}

bool FrameStore::post_staging(std::size_t target, const OpenFrame& staging) {
  const transport::FrameHeader& header = staging.frame->header;
  const bool is_short = staging.hops_left == 0 &&
                        header.payload_bytes + std::size_t(header.tail_bytes) <= endpoint_->by_value_bytes_max();
  if (is_short && !queued(target, 0) &&
      endpoint_->try_post(target, staging.frame, staging.end(), false) == transport::Endpoint::Posted::copied) {
    drop(target, staging);
    return true;
  }
  return post(target, write_out(staging));
}

bool FrameStore::post_of_another(std::size_t target, const OpenFrame& frame) {
  if (endpoint_->try_post(target, frame.frame, frame.end(), true) == transport::Endpoint::Posted::lent) return true;
  of_others_.emplace_back(target, frame);
  ++queued_frames_;
  ++queued_in_[scope_of_tag(frame.frame->header.scope)];
  return false;
}

bool FrameStore::drain_of_others() {
  return std::erase_if(of_others_, [this](const auto& waiting) {
           const auto& [target, frame] = waiting;
           const ScopeId scope = scope_of_tag(frame.frame->header.scope);
           if (endpoint_->try_post(target, frame.frame, frame.end(), true) != transport::Endpoint::Posted::lent)
             return false;
           --queued_frames_;
           --queued_in_[scope];
           return true;
         }) != 0;
}

/// Copies header, payload and tail.
void FrameStore::copy_into(const OpenFrame& to, const OpenFrame& from) {
  const transport::FrameHeader& header = from.frame->header;
  to.frame->header = header;
  std::memcpy(to.frame->payload(), from.frame->payload(), header.payload_bytes);
  std::memcpy(to.end() - header.tail_bytes, from.end() - header.tail_bytes, header.tail_bytes);
}

FrameStore::Outcome FrameStore::try_post(std::size_t target, const OpenFrame& frame) {
  const bool is_spilled = frame.memory == Memory::spilled;
  switch (endpoint_->try_post(target, frame.frame, frame.end(), !is_spilled)) {
    case transport::Endpoint::Posted::lent: return Outcome::posted;
    case transport::Endpoint::Posted::copied: drop(target, frame); return Outcome::posted;
    case transport::Endpoint::Posted::refused: break;
  }
  if (!is_spilled) return Outcome::queue_full;

  // A spilled frame that is too large to send by value moves to frame memory as soon as there is some.
  const transport::FrameHeader& header = frame.frame->header;
  const OpenFrame copy =
      try_claim(target, transport::frame_overhead + header.payload_bytes + header.tail_bytes, frame.hops_left);
  if (!copy) return Outcome::no_memory;
  copy_into(copy, frame);
  switch (endpoint_->try_post(target, copy.frame, copy.end(), true)) {
    case transport::Endpoint::Posted::lent: break;
    case transport::Endpoint::Posted::copied: drop(target, copy); break;
    case transport::Endpoint::Posted::refused: drop(target, copy); return Outcome::queue_full;
  }
  free_spilled(frame);
  return Outcome::posted;
}

/// A frame behind the head may hold the memory that the spilled head waits for, if it was claimed before. Moves the
/// last such frame to private memory. False if there is none.
bool FrameStore::spill_one_behind(std::size_t target, Queue& queue) {
  for (std::size_t i = queue.frames.size(); i-- > queue.head + 1;) {
    OpenFrame& queued = queue.frames[i];
    if (queued.memory == Memory::spilled) continue;
    const transport::FrameHeader& header = queued.frame->header;
    const OpenFrame copy =
        spill_uncapped(transport::frame_overhead + header.payload_bytes + header.tail_bytes, queued.hops_left);
    copy_into(copy, queued);
    drop(target, queued);
    queued = copy;
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
      const OpenFrame head = queue.frames[queue.head];
      // read before the post: a posted frame belongs to its receiver
      const ScopeId scope = scope_of_tag(head.frame->header.scope);
      const Outcome outcome = try_post(target, head);
      if (outcome == Outcome::queue_full) break;
      if (outcome == Outcome::no_memory) {
        if (!spill_one_behind(target, queue)) break;
        continue;
      }
      ++queue.head;
      --queued_frames_;
      --queued_in_[scope];
      any = true;
    }
    if (!queue.empty()) {
      // A queue that never becomes empty is compacted when more than half of its frames have been posted.
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
