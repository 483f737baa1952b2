// SPDX-License-Identifier: BSD-3-Clause
/// Reductions over elements. Each PE combines the values of its elements and sends the result up a tree of PEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/am/engine.hpp>
#include <headway/base/sendable.hpp>
#include <headway/call/calls.hpp>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::object {

/// A reduction: its stream, and its number in the stream.
struct ReductionId {
  std::uint64_t stream;
  std::uint32_t number;
  auto operator<=>(const ReductionId&) const = default;
};
/// Streams of reductions: of_elements are numbered by the calls of contribute(), of_broadcasts by the broadcast that
/// asks for them. A section is a stream of its own.
inline constexpr std::uint64_t of_elements = 0, of_broadcasts = 1;

template <class Op, class V>
constexpr bool require_operator() {
  constexpr bool captureless = std::is_empty_v<Op> && std::is_default_constructible_v<Op>;
  static_assert(captureless,
                "headway: the operator of a reduction over elements must be a function object without captures");
  if constexpr (captureless) {
    constexpr bool combines = std::is_invocable_r_v<V, const Op&, const V&, const V&>;
    static_assert(combines, "headway: the operator of a reduction must take two values and return one");
    return combines;
  }
  return false;
}

template <class Target, class V>
constexpr bool require_target() {
  constexpr bool takes_result = std::is_invocable_v<const Target&, Pe&, const V&>;
  static_assert(takes_result, "headway: the target of contribute() must be a result of headway::to<&Class::method>()");
  return takes_result;
}

/// The values of one reduction that this PE has combined and not sent.
class Partial {
 public:
  virtual ~Partial() = default;
  virtual void send(CallAggregator& calls, PeId parent, const DistObject<class Reductions*>& there, ReductionId id) = 0;
  /// On the root, after all contributions: gives the result to the target.
  virtual void finish(Pe& pe) = 0;

  const void* type = nullptr;
  std::uint64_t count = 0, total = 0;  // contributions so far; contributions to expect
  std::uint64_t own = 0;               // contributions of elements on this PE
  am::ScopeId scope = am::root_scope;
};

template <class V, class Op, class Target>
class PartialOf;

/// The reductions of one collection on one PE. An element may move during a reduction, from a PE that has sent its
/// values to a PE that has not. So no PE knows how many of its elements will contribute. Only the root, PE 0, counts
/// all contributions and finds the end. A PE sends its combined value when all its elements have contributed and as
/// many contributions have arrived from below as last time; else when it is idle, like an open buffer.
class Reductions final : public am::FrameHandler {
 public:
  /// local_size(stream) estimates how many elements of this PE will contribute.
  Reductions(CallAggregator& calls, std::function<std::size_t(std::uint64_t stream)> local_size);
  ~Reductions() override;

  /// Adds the value of `count` elements of `total`.
  template <class V, class Op, class Target>
  void give(ReductionId id, std::uint64_t count, std::uint64_t total, const V& value, Op, const Target& target) {
    if constexpr (require_operator<Op, V>() && require_target<Target, V>())
      add_any<V, Op>(id, count, total, value, target, true);
  }
  template <class V, class Op, class Target>
  void take(ReductionId id, std::uint64_t count, std::uint64_t total, const V& value, const Target& target) {
    add_any<V, Op>(id, count, total, value, target, false);
  }

  /// Reductions with values on this PE.
  std::size_t size() const { return partials_.size(); }

  Result handle(const transport::Arrival& arrival, std::uint32_t& next) override;
  bool flush_open(am::FlushReason reason) override;
  bool flush_idle(am::IdleFlush) override { return flush_open(am::FlushReason::idle); }
  std::int64_t due() const override { return am::never; }
  bool flush_due(std::int64_t) override { return false; }
  bool flush_scope(am::ScopeId scope, am::FlushReason reason) override;
  std::uint16_t signature() const override { return 0; }
  std::string description() const override { return "reductions over elements"; }
  bool ready() const override { return true; }

 private:
  /// Contributions that arrived from the PEs below: for the current number and for the one before.
  struct FromBelow {
    std::uint32_t number = 0;
    std::uint64_t now = 0, before = 0;
  };
  using Partials = std::map<ReductionId, std::unique_ptr<Partial>>;

  template <class V, class Op, class Target>
  void add_any(ReductionId id, std::uint64_t count, std::uint64_t total, const V& value, const Target& target,
               bool own) {
    std::unique_ptr<Partial>& place = partial_at(id, &call::type_tag<PartialOf<V, Op, Target>>);
    if (place == nullptr) {
      place = std::make_unique<PartialOf<V, Op, Target>>(value, target);
      place->type = &call::type_tag<PartialOf<V, Op, Target>>;
      place->total = total;
      begin(*place);
    } else {
      static_cast<PartialOf<V, Op, Target>&>(*place).combine(value);
    }
    add_count(id, count, own);
  }
  /// The partial result, or an empty place. UsageError if it has another type.
  std::unique_ptr<Partial>& partial_at(ReductionId id, const void* type);
  void begin(Partial& partial);
  void add_count(ReductionId id, std::uint64_t count, bool own);
  Partials::iterator send_up(Partials::iterator at);
  void send_later(am::ScopeId scope);

  CallAggregator* calls_;
  std::function<std::size_t(std::uint64_t)> local_size_;
  std::uint32_t number_;
  Partials partials_;
  std::map<std::uint64_t, FromBelow> from_below_;  // by stream
  DistObject<Reductions*> me_;
};

/// Handles the combined value of a PE below.
template <class V, class Op, class Target>
struct TakePartial {
  void operator()(Reductions* there, const ReductionId& id, std::uint64_t count, std::uint64_t total, const V& value,
                  const Target& target) const {
    there->take<V, Op, Target>(id, count, total, value, target);
  }
};

template <class V, class Op, class Target>
class PartialOf final : public Partial {
 public:
  PartialOf(const V& value, const Target& target) : value_(value), target_(target) {}
  void combine(const V& value) { value_ = Op()(std::as_const(value_), value); }
  void send(CallAggregator& calls, PeId parent, const DistObject<Reductions*>& there, ReductionId id) override {
    calls.rpc_ff(parent, TakePartial<V, Op, Target>(), there, id, count, total, value_, target_);
  }
  void finish(Pe& pe) override { target_(pe, std::as_const(value_)); }

 private:
  V value_;
  Target target_;
};

}  // namespace headway::object
