// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <headway/transport/dial/injector.hpp>

namespace headway::dial {
namespace {

using Posted = transport::Endpoint::Posted;

constexpr std::size_t hop_classes = 8;

}  // namespace

Injector::Injector(transport::Endpoint& inner, std::size_t copies_max)
    : inner_(&inner), last_refusals_(inner.size() * hop_classes), copies_(copies_max) {
  for (transport::SmallFrame& copy : copies_) free_.push_back(&copy);
}

std::uint64_t& Injector::last_refusal(std::size_t target, std::uint8_t hops_left) {
  return last_refusals_[target * hop_classes + std::min<std::size_t>(hops_left, hop_classes - 1)];
}

Posted Injector::try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed,
                          bool by_value, std::int64_t through_ns, std::int64_t gap_ns) {
  move();
  const transport::FrameHeader& header = frame->header;
  const std::int64_t now = inner_->now(), leaves_at = std::max(now, free_at_) + through_ns;
  const bool is_first = waiting_.empty() && (refused_.empty() || last_refusal(target, header.hops_left) != pass_);
  if (leaves_at <= now && is_first) {
    const Posted posted = inner_->try_post(target, frame, tail_end, claimed);
    if (posted != Posted::refused) free_at_ = leaves_at + gap_ns;
    return posted;
  }
  free_at_ = leaves_at + gap_ns;
  Outgoing outgoing{leaves_at, target, frame, tail_end, by_value, header.source == inner_->id(), header.hops_left};
  if (by_value) {
    transport::SmallFrame& copy = *free_.back();
    free_.pop_back();
    copy.frame = *frame;
    std::memcpy(copy.message, frame->payload(), header.payload_bytes);
    std::memcpy(copy.message + header.payload_bytes, tail_end - header.tail_bytes, header.tail_bytes);
    outgoing.frame = &copy.frame;
    outgoing.tail_end = copy.message + header.payload_bytes + header.tail_bytes;
  }
  waiting_.push_back(outgoing);
  return by_value ? Posted::copied : Posted::lent;
}

void Injector::move() {
  if (empty()) return;
  const std::int64_t now = inner_->now();
  ++pass_;
  std::erase_if(refused_, [this](const Outgoing& frame) { return try_leave(frame); });
  while (!waiting_.empty() && waiting_.front().leaves_at <= now) {
    if (!try_leave(waiting_.front())) refused_.push_back(waiting_.front());
    waiting_.pop_front();
  }
}

/// Frames to one receiver, with as many hops left, wait for the first of them.
bool Injector::try_leave(const Outgoing& frame) {
  std::uint64_t& refusal = last_refusal(frame.target, frame.hops_left);
  if (refusal == pass_) return false;
  const Posted posted = inner_->try_post(frame.target, frame.frame, frame.tail_end, !frame.is_copy);
  if (posted == Posted::refused) {
    refusal = pass_;
    return false;
  }
  if (frame.is_copy) {
    free_.push_back(reinterpret_cast<transport::SmallFrame*>(frame.frame));
  } else if (posted == Posted::copied && frame.is_own) {
    given_back_.push_back(claims_.at(frame.frame));
    inner_->drop(frame.frame);
  }
  return true;
}

std::size_t Injector::reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) {
  for (const Claim& claim : given_back_) returned(context, claim.block_bytes, claim.tag);
  const std::size_t count = given_back_.size();
  given_back_.clear();
  return count;
}

}  // namespace headway::dial
