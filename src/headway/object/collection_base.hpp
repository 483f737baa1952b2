// SPDX-License-Identifier: BSD-3-Clause
/// The part of a collection that depends neither on the class of its elements nor on their names: counts, the order of
/// broadcasts, steps, reductions, and the elements' requests to move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <headway/am/engine.hpp>
#include <headway/am/task.hpp>
#include <headway/base/sendable.hpp>
#include <headway/call/calls.hpp>
#include <headway/object/element_state.hpp>
#include <headway/object/load_clock.hpp>
#include <headway/object/messages.hpp>
#include <headway/object/options.hpp>
#include <headway/object/reduction.hpp>
#include <headway/object/transit.hpp>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::object {

[[noreturn]] void throw_late_step(std::int64_t step, std::int64_t current);

/// A message that waits on this PE, and the function that handles it. The runtime does not count it while it waits.
struct WaitingMessage {
  am::ScopeId scope;
  std::function<void()> run;
};

class CollectionBase {
 public:
  CollectionBase(const CollectionBase&) = delete;
  CollectionBase& operator=(const CollectionBase&) = delete;

  Pe& pe() const { return *pe_; }
  /// Elements on all PEs; of a sparse array at the time of the last done_inserting().
  std::uint64_t size() const { return size_; }
  /// Elements on this PE now.
  std::size_t local_size() const { return elements_.size(); }
  /// Messages that reached this PE when their element had left, or had not arrived.
  std::uint64_t missed() const { return missed_; }

  // --- for the other parts of the layer

  /// Elements that have moved from this PE, and their bytes.
  std::uint64_t departed() const { return departed_; }
  std::uint64_t departed_bytes() const { return departed_bytes_; }
  /// Reductions of which this PE has values and no result.
  std::size_t reducing() const { return reductions_.size(); }
  CallAggregator& calls() { return calls_; }
  const CallAggregator& calls() const { return calls_; }
  /// An element asks to move to a PE, or (erase_target) to be erased.
  void request_move(ElementBase& element, std::uint32_t target);

  // --- handlers of messages

  void end_transit(std::uint32_t broadcasts, std::span<const std::uint32_t> inserted) {
    transit_.arrived(broadcasts, inserted);
  }
  /// Elements that this PE, or PEs below it in the tree, count as in transit need broadcasts from number `first` on.
  /// All PEs report after the same broadcasts. PE 0 hears from all, and tells them which broadcasts no element needs.
  /// An element that leaves later has run all broadcasts that its PE has run.
  void report_needed(std::uint32_t round, std::uint32_t first);
  void drop_history(std::uint32_t first);

 protected:
  struct Form {
    bool dense;
    std::uint64_t size;              // of a dense collection
    std::size_t triggers, counters;  // of an element: counters of triggers come before those of awaited methods
  };
  CollectionBase(Pe& pe, const CollectionOptions& options, const Form& form);
  virtual ~CollectionBase();

  // --- the parts that know the class of the elements

  /// Moves or erases the element if it asked for that and nothing of it runs. False: it is no longer here.
  virtual bool apply_move(ElementBase& element) = 0;
  /// Calls apply_move() soon, if the element is still here then.
  virtual void apply_move_later(const ElementBase& element) = 0;
  /// A function that delivers the message to the element, wherever the element is then.
  virtual std::function<void()> delivery_of(const ElementBase& element, DelayedMessage message) = 0;
  /// Members of a section that were on this PE when the section was made.
  virtual std::size_t section_size_here(std::uint64_t section) const = 0;

  // --- running methods

  static ElementState& state_of(ElementBase& element) { return element.state_; }

  /// Adds the time until stop() to the element's load, if the collection measures loads.
  class Timer {
   public:
    Timer(CollectionBase& collection, ElementState& state)
        : state_(collection.measures_ ? &state : nullptr), clock_(&collection.load_clock_) {
      if (state_ != nullptr) [[unlikely]]
        begin_ = clock_->read();
    }
    void stop() const {
      if (state_ != nullptr) [[unlikely]]
        state_->load_s += clock_->seconds(begin_, clock_->read());
    }

   private:
    ElementState* state_;
    const LoadClock* clock_;
    std::uint64_t begin_ = 0;
  };

  /// Runs a coroutine of an element. The element stays until its last coroutine ends.
  template <class R>
  static Task<R> follow(CollectionBase* self, ElementBase* element, Task<R> task) {
    ++element->state_.coroutines;
    const CoroutineEnd end{self, element};
    if constexpr (std::is_void_v<R>)
      co_await task;
    else
      co_return co_await task;
  }

  /// While one exists, elements neither move nor are erased.
  class MovePause {
   public:
    explicit MovePause(CollectionBase& collection) : collection_(&collection) { ++collection.move_pauses_; }
    MovePause(const MovePause&) = delete;
    MovePause& operator=(const MovePause&) = delete;
    ~MovePause() {
      if (--collection_->move_pauses_ == 0) collection_->apply_delayed_moves();
    }

   private:
    CollectionBase* collection_;
  };
  /// Whether the element must stay for now. Then a later event repeats the attempt.
  bool must_stay(const ElementState& state);

  // --- elements that arrive and leave

  void add(ElementBase& element);
  void remove(ElementBase& element);
  /// Fills the header of a message that moves the element, and counts the move.
  MoveHeader begin_move(ElementBase& element, std::uint32_t version, std::size_t bytes);
  void mark_move(std::size_t target, std::size_t bytes);
  void end_move(ElementBase& element, const MoveHeader& header);
  /// Delivers messages that waited in the element for a step that is current now.
  void release_all(ElementBase& element);
  /// An element has been inserted here. Runs the broadcasts that it has missed.
  void end_insertion(ElementBase& element, const InsertHeader& header, Transit::Cause& cause);
  /// Runs the broadcasts that the element has missed. False: the element has erased itself.
  bool catch_up(ElementBase& element, Transit::Cause& cause);
  /// The element in the message is no longer in transit. `account` is the PE that counts it.
  void tell_arrival(std::uint32_t broadcasts, std::uint32_t account, const Transit::Cause& cause);

  // --- counts

  /// UsageError if elements have been inserted or erased since the last done_inserting().
  void require_size() const;
  void require_elements() const;
  /// Collective, after quiescence. A PE that returns may start reductions everywhere, so no PE returns before all know
  /// the size.
  void count_elements();
  /// The number of the reduction to which the element contributes now.
  std::uint32_t next_reduction(ElementBase& element);
  std::uint32_t next_section_reduction(ElementBase& element, std::uint64_t section);

  // --- steps

  StepCounter& counter(ElementBase& element, std::size_t number) {
    ElementState& state = element.state_;
    if (!state.rare || state.rare->counters.empty()) [[unlikely]]
      make_counters(state);
    return state.rare->counters[number];
  }
  /// Adds a message that waits for its step. The caller writes its arguments to the result.
  std::byte* delay_message(StepCounter& counter, std::size_t method, std::int64_t step, std::size_t bytes);
  /// Delivers the messages that waited for the current step of a counter.
  void release_messages(ElementBase& element, std::size_t number);
  /// Starts the current step of a trigger.
  void open_trigger_step(StepCounter& counter, std::uint64_t expected);
  /// Ends the current step: the next one is current, and its messages wait. Returns the coroutine that waits, if any.
  std::optional<Promise<>> end_step(StepCounter& counter);
  /// A coroutine waits for `count` messages of `step`.
  Future<> await_messages(ElementBase& element, std::size_t number, std::int64_t step, std::uint64_t count);

  // --- broadcasts

  /// Whether the broadcast of this number can run now. Else keep_broadcast() keeps it.
  bool is_next_broadcast(std::uint32_t number) const { return number == broadcasts_ && complete_; }
  void keep_broadcast(std::uint32_t number, std::function<void()> run);
  /// Calls f(pe) for the PEs below this one in the tree of broadcasts.
  template <class F>
  void for_each_child(F f) const {
    const std::size_t me = pe_->id();
    for (std::size_t bit = 1; (me & bit) == 0 && (me | bit) < pe_->size(); bit <<= 1) f(me | bit);
  }
  /// Runs the next broadcast for all elements that are due. With `history`, elements that arrive later may get it.
  template <bool history, class Run>
  void run_broadcast(Run run) {
    const std::uint32_t number = broadcasts_++;
    transit_.hear(broadcasts_);
    if constexpr (history) history_.push_back(run);
    {
      const Transit::Cause cause(transit_, std::uint32_t(pe_->id()), broadcasts_);
      for (std::size_t i = 0; i < elements_.size();) {
        ElementBase* const element = elements_[i];
        ElementState& state = element->state_;
        if (state.broadcasts == number) {
          if (state.target != no_target) {
            apply_move(*element);
            if (i == elements_.size() || elements_[i] != element)
              continue;  // gone; another element may have its position
          }
          ++state.broadcasts;
          run(*element);
        }
        ++i;
      }
    }
    if constexpr (history) report_needed_if_due();
    run_kept_broadcast();
  }
  /// All elements of the constructor exist: broadcasts may run.
  void set_complete();

  bool size_known_;
  bool complete_;  // all elements that the constructor makes exist; broadcasts may run
  std::uint64_t missed_ = 0;
  std::vector<ElementBase*> elements_;    // of this PE
  std::uint32_t broadcasts_started_ = 0;  // on PE 0
  std::uint32_t broadcasts_ = 0;          // that all elements of this PE have run
  Transit transit_;

 private:
  struct CoroutineEnd {
    CollectionBase* self;
    ElementBase* element;
    ~CoroutineEnd() {
      ElementState& state = element->state_;
      if (--state.coroutines == 0 && state.target != no_target) self->apply_move_later(*element);
    }
  };
  /// One question about which broadcasts are needed.
  struct HistoryRound {
    std::size_t missing;  // reports of this PE and the PEs below it that have not arrived
    std::uint32_t first;  // smallest number reported
  };

  void make_counters(ElementState& state) const;
  void apply_delayed_moves();
  void report_needed_if_due();
  void run_kept_broadcast();

  Pe* pe_;
  const Form form_;
  std::uint64_t size_;
  unsigned move_pauses_ = 0;
  bool moves_delayed_ = false;     // an element asked to move during a pause
  std::uint32_t contributed_ = 0;  // contributions of an element of a sparse array at the last done_inserting()
  const bool measures_;
  const LoadClock load_clock_;
  std::uint64_t departed_ = 0, departed_bytes_ = 0;
  std::map<std::uint32_t, WaitingMessage> kept_broadcasts_;  // by number
  std::deque<std::function<void(ElementBase&)>> history_;    // the last broadcasts; an element in transit may need them
  std::map<std::uint32_t, HistoryRound> history_rounds_;     // by number

 protected:
  CallAggregator calls_;
  Reductions reductions_;

 private:
  DistObject<CollectionBase*> base_;  // last: messages arrive from here on
};

template <class T>
concept Migratable = std::is_default_constructible_v<T> && detail::HasSerialize<T>;

/// One line of compile error for a class of elements that cannot move.
template <class T>
constexpr bool require_migratable() {
  static_assert(
      Migratable<T>,
      "headway: a class of elements that migrate or are checkpointed has a constructor without arguments and a member "
      "template <class A> void serialize(A& archive)");
  return Migratable<T>;
}

}  // namespace headway::object
