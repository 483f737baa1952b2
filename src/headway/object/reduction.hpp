/// Reductions over elements: what those of a PE give is reduced there, and goes up a tree of PEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/call/calls.hpp>
#include <headway/am/engine.hpp>
#include <headway/base/sendable.hpp>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::object {

/// One reduction: its number among those of its stream.
struct ReductionId {
  std::uint64_t stream;
  std::uint32_t number;
  auto operator<=>(const ReductionId&) const = default;
};
/// Streams: what elements contribute to in the order of their calls; what a broadcast asks for, whose number it has;
/// others are sections.
inline constexpr std::uint64_t of_elements = 0, of_broadcasts = 1;

template <class Op, class V>
constexpr bool require_operator() {
  constexpr bool captureless = std::is_empty_v<Op> && std::is_default_constructible_v<Op>;
  static_assert(captureless,
                "headway: the operator of a reduction over elements has no captures, and is no function pointer");
  if constexpr (captureless) {
    constexpr bool combines = std::is_invocable_r_v<V, const Op&, const V&, const V&>;
    static_assert(combines, "headway: the operator of a reduction takes two values and gives one");
    return combines;
  }
  return false;
}

template <class Target, class V>
constexpr bool require_target() {
  constexpr bool takes_result = std::is_invocable_v<const Target&, Pe&, const V&>;
  static_assert(takes_result, "headway: the target of contribute() is what headway::to<&Class::method>() returns");
  return takes_result;
}

/// Values of one reduction that are reduced here, and have not gone on.
class Partial {
 public:
  virtual ~Partial() = default;
  virtual void send(CallAggregator& calls, PeId parent, const DistObject<class Reductions*>& there, ReductionId id) = 0;
  /// All have given: tells who wanted to know.
  virtual void finish(Pe& pe) = 0;

  const void* type = nullptr;
  std::uint64_t count = 0, total = 0;  // elements that have given, and that are to
  std::uint64_t own = 0;               // of these, on this PE
  am::ScopeId scope = am::root_scope;
};

template <class V, class Op, class Target>
class PartialOf;

/// Of one PE and collection. Elements may move while it goes on, from a PE that has sent its part to one that has not:
/// so nobody knows how many of a PE's elements will give, and only the root, PE 0, which counts all, knows when it is
/// over. What a PE has reduced leaves when its elements have given and as many have come from below as the last time, or
/// else when the PE is idle, as an open buffer does.
class Reductions final : public am::FrameHandler {
 public:
  /// local_size(stream) is how many elements on this PE are likely to give to it.
  Reductions(CallAggregator& calls, std::function<std::size_t(std::uint64_t stream)> local_size);
  ~Reductions() override;

  /// `count` elements of the `total` give a value.
  template <class V, class Op, class Target>
  void give(ReductionId id, std::uint64_t count, std::uint64_t total, const V& value, Op, const Target& target) {
    if constexpr (require_operator<Op, V>() && require_target<Target, V>())
      give_any<V, Op>(id, count, total, value, target, true);
  }
  template <class V, class Op, class Target>
  void take(ReductionId id, std::uint64_t count, std::uint64_t total, const V& value, const Target& target) {
    give_any<V, Op>(id, count, total, value, target, false);
  }

  /// Reductions that have begun here, and not gone on.
  std::size_t size() const { return partials_.size(); }

  Result handle(const Arrival& arrival, std::uint32_t& next) override;
  bool flush_open(am::FlushReason reason) override;
  bool flush_idle(am::IdleFlush) override { return flush_open(am::FlushReason::idle); }
  std::int64_t due() const override { return am::never; }
  bool flush_due(std::int64_t) override { return false; }
  bool flush_scope(am::ScopeId scope, am::FlushReason reason) override;
  std::uint16_t signature() const override { return 0; }
  std::string description() const override { return "reductions over elements"; }
  bool ready() const override { return true; }

 private:
  /// How many came from the PEs below for a number, and for the one before.
  struct FromBelow {
    std::uint32_t number = 0;
    std::uint64_t now = 0, before = 0;
  };
  using Partials = std::map<ReductionId, std::unique_ptr<Partial>>;

  template <class V, class Op, class Target>
  void give_any(ReductionId id, std::uint64_t count, std::uint64_t total, const V& value, const Target& target,
                bool own) {
    std::unique_ptr<Partial>& place = place_of(id, &call::type_tag<PartialOf<V, Op, Target>>);
    if (place == nullptr) {
      place = std::make_unique<PartialOf<V, Op, Target>>(value, target);
      place->type = &call::type_tag<PartialOf<V, Op, Target>>;
      place->total = total;
      begun(*place);
    } else {
      static_cast<PartialOf<V, Op, Target>&>(*place).reduce(value);
    }
    given(id, count, own);
  }
  /// Of this type, or empty. UsageError where it is of another.
  std::unique_ptr<Partial>& place_of(ReductionId id, const void* type);
  void begun(Partial& partial);
  void given(ReductionId id, std::uint64_t count, bool own);
  Partials::iterator send_up(Partials::iterator at);
  void send_later(am::ScopeId scope);

  CallAggregator* calls_;
  std::function<std::size_t(std::uint64_t)> local_size_;
  std::uint32_t number_;
  Partials partials_;
  std::map<std::uint64_t, FromBelow> from_below_;  // by stream
  DistObject<Reductions*> me_;
};

/// What a PE has reduced, where it goes on.
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
  void reduce(const V& value) { value_ = Op()(std::as_const(value_), value); }
  void send(CallAggregator& calls, PeId parent, const DistObject<Reductions*>& there, ReductionId id) override {
    calls.rpc_ff(parent, TakePartial<V, Op, Target>(), there, id, count, total, value_, target_);
  }
  void finish(Pe& pe) override { target_(pe, std::as_const(value_)); }

 private:
  V value_;
  Target target_;
};

}  // namespace headway::object
