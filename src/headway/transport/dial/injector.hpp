// SPDX-License-Identifier: BSD-3-Clause
/// The simulated injector of a PE: it sends one frame after the other, and the PE does not wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <headway/transport/endpoint.hpp>
#include <unordered_map>
#include <vector>

namespace headway::dial {

/// Posted frames leave at their time, in the order of their posts. If the transport refuses a frame, frames to other
/// receivers or with another number of hops left may overtake it: else a full queue could stop frames that free it.
class Injector {
 public:
  /// At most `copies_max` frames that go by value wait. Frame memory bounds the others.
  Injector(transport::Endpoint& inner, std::size_t copies_max);

  /// Whether a frame that goes by value finds room.
  bool has_room() const { return !free_.empty(); }
  /// Endpoint::try_post() of a frame that needs `through_ns` to pass; the next one leaves at least `gap_ns` later.
  /// `by_value`: copied, so that its memory still belongs to the caller; only if has_room().
  [[nodiscard]] transport::Endpoint::Posted try_post(std::size_t target, transport::Frame* frame,
                                                     const std::byte* tail_end, bool claimed, bool by_value,
                                                     std::int64_t through_ns, std::int64_t gap_ns);
  /// Posts all frames that are due.
  void move();

  bool empty() const { return waiting_.empty() && refused_.empty(); }
  std::size_t frames() const { return waiting_.size() + refused_.size(); }
  /// Whether a frame waits for its receiver; no event announces that it may leave.
  bool has_refused() const { return !refused_.empty(); }
  /// The time at which the next frame may leave; INT64_MAX if none waits for its time.
  std::int64_t next() const { return waiting_.empty() ? INT64_MAX : waiting_.front().leaves_at; }

  /// Keeps the tag of a claim, for frames that the transport gives back after the caller has lent them.
  void claimed(const transport::Frame* frame, std::size_t block_bytes, std::uint64_t tag) {
    claims_.insert_or_assign(frame, Claim{block_bytes, tag});
  }
  /// Takes back the memory of these frames, as Endpoint::reclaim() does.
  std::size_t reclaim(void (*returned)(void* context, std::size_t block_bytes, std::uint64_t tag), void* context);

 private:
  struct Outgoing {
    std::int64_t leaves_at;
    std::size_t target;
    transport::Frame* frame;
    const std::byte* tail_end;
    bool is_copy, is_own;  // own: claimed by this PE
    std::uint8_t hops_left;
  };
  struct Claim {
    std::size_t block_bytes;
    std::uint64_t tag;
  };

  std::uint64_t& last_refusal(std::size_t target, std::uint8_t hops_left);
  bool try_leave(const Outgoing& frame);

  transport::Endpoint* inner_;
  std::int64_t free_at_ = 0;
  std::deque<Outgoing> waiting_;              // for their time, ascending
  std::vector<Outgoing> refused_;             // by the transport; before all that wait
  std::vector<std::uint64_t> last_refusals_;  // by receiver and hops left: the pass of move() with the last refusal
  std::uint64_t pass_ = 1;
  std::vector<transport::SmallFrame> copies_;
  std::vector<transport::SmallFrame*> free_;
  std::unordered_map<const transport::Frame*, Claim> claims_;
  std::vector<Claim> given_back_;
};

}  // namespace headway::dial
