// SPDX-License-Identifier: BSD-3-Clause
/// One PE's part in balancing: collects loads, runs the strategy, moves elements. It never waits.
///
///     requester  -- request -->   PE 0        queues requests: one turn at a time
///     PE 0       -- turn -->      requester   becomes the decider of this turn
///     decider    -- GiveLoads --> all PEs     along a tree
///     all PEs    -- loads -->     decider     runs the strategy
///     decider    -- moves -->     PEs that lose elements
///     these PEs  -- counts -->    decider     the table is complete
///     decider    -- table -->     PE 0 --> all requesters of the turn; next turn
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <headway/am/engine.hpp>
#include <headway/am/future.hpp>
#include <headway/call/calls.hpp>
#include <headway/object/collection.hpp>
#include <headway/object/strategy.hpp>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headway::object {

template <class... T>
constexpr bool require_balanced() {
  static_assert(sizeof...(T) > 0, "headway: balance() needs at least one collection");
  static_assert((NamingOf<typename T::ElementNaming>::moves && ...), "headway: elements of groups cannot move");
  static_assert((Migratable<T> && ...),
                "headway: a class of elements that are balanced has a constructor without arguments and serialize()");
  return sizeof...(T) > 0 && ((NamingOf<typename T::ElementNaming>::moves && Migratable<T>)&&...);
}
/// The PE of all these collections. UsageError if they have several, or if a collection occurs twice.
Pe& require_same_pe(std::initializer_list<Pe*> pes, std::span<const std::uint32_t> numbers);

/// Index of an element among those of its PE, and the PE to which it goes.
struct Move {
  std::uint32_t element;
  std::uint32_t pe;
};
/// The outcome of moves, counted.
struct MoveCounts {
  std::uint64_t moved = 0, bytes = 0, moving = 0, missed = 0;
};

/// The elements of one collection on this PE at the time at which their loads were taken.
class Part {
 public:
  virtual ~Part() = default;
  virtual std::size_t size() const = 0;
  /// Appends their loads, and sets these to 0.
  virtual void take_loads(std::vector<double>& loads_s) = 0;
  virtual void move(std::size_t element, PeId to, MoveCounts& moved) = 0;
};
template <class T>
class PartOf final : public Part {
 public:
  explicit PartOf(Collection<T>& collection) : collection_(&collection) {
    elements_.reserve(collection.local_size());
    collection.for_each_local([&](T& element) { elements_.push_back(Collection<T>::address_of_element(element)); });
  }
  std::size_t size() const override { return elements_.size(); }
  void take_loads(std::vector<double>& loads_s) override {
    collection_->for_each_local(
        [&](T& element) { loads_s.push_back(std::exchange(Collection<T>::state(element).load_s, 0)); });
  }
  void move(std::size_t element, PeId to, MoveCounts& moved) override {
    T* const here = collection_->find_here(elements_[element]);
    if (here == nullptr) {
      ++moved.missed;
      return;
    }
    const std::uint64_t bytes = collection_->departed_bytes(), departed = collection_->departed();
    collection_->move_now(*here, std::uint32_t(to));
    moved.bytes += collection_->departed_bytes() - bytes;
    ++(collection_->departed() == departed ? moved.moving : moved.moved);
  }

 private:
  Collection<T>* collection_;
  std::vector<typename T::Address> elements_;
};
using Parts = std::vector<std::unique_ptr<Part>>;
template <class... T>
Parts parts_of(Collection<T>&... collections) {
  Parts parts;
  (parts.push_back(std::make_unique<PartOf<T>>(collections)), ...);
  return parts;
}

class Balancer final : public am::Extension {
 public:
  using RequestId = std::uint64_t;

  static Balancer& of(Pe& pe);
  explicit Balancer(Pe& pe) : pe_(&pe) {}

  /// `start` makes every PE send its loads to this PE.
  Future<BalanceTable> request(const BalanceStrategy& strategy, std::span<const std::uint32_t> collections,
                               std::function<void()> start);

  // --- for balance(), between quiescences

  /// Sets the strategy of PE 0.
  void decide_by(const BalanceStrategy& strategy);
  /// Sends the loads of these elements to the decider, and keeps the list of the elements.
  void give_loads(PeId decider, Parts parts);
  /// On PE 0: throws the exception of its strategy.
  void rethrow();
  /// On PE 0: the table of the last turn.
  const BalanceTable& table() const { return table_; }

  // --- handlers of messages

  void take_request(PeId source, RequestId request, std::string_view key);
  void begin_turn(RequestId request);
  void take_loads(PeId source, std::span<const std::uint64_t> counts, std::span<const double> loads_s);
  void move(PeId decider, std::span<const Move> moves);
  void take_counts(const MoveCounts& moved);
  void end_turn(PeId decider, const BalanceTable& table, const std::string& failure);
  void take_table(RequestId request, PeId decider, const BalanceTable& table, const std::string& failure);

  std::size_t waiting() const { return requests_.size(); }

 private:
  struct Request {
    BalanceStrategy strategy;
    std::function<void()> start;
    am::Hold<am::CompletionOf<BalanceTable>> completion;
  };
  struct Requester {
    PeId pe;
    RequestId request;
  };
  /// On PE 0. The first turn is the current one.
  struct Turn {
    std::string key;  // equal for requests that share a turn; empty: balance()
    std::vector<Requester> requesters;
  };

  void start_turn();
  void decide();
  void finish();

  Pe* pe_;
  Parts parts_;  // elements of the loads that were sent last

  // Of the decider.
  std::optional<BalanceStrategy> strategy_;
  std::vector<Loads> loads_;
  std::size_t loads_arrived_ = 0;    // PEs that have sent their loads
  std::size_t reports_missing_ = 0;  // PEs that have not reported their moves
  std::int64_t begin_ = 0;
  BalanceTable table_;
  std::exception_ptr error_;

  std::map<RequestId, Request> requests_;
  RequestId next_request_ = 0;
  std::deque<Turn> turns_;
};

/// Makes all PEs send their loads. Travels along a tree with the decider as root.
template <class... T>
struct GiveLoads {
  void operator()(Pe& pe, std::uint32_t root, Collection<T>*... collections) const {
    const std::size_t pes = pe.size(), rank = (pe.id() + pes - root) % pes;
    for (std::size_t bit = 1; (rank & bit) == 0 && (rank | bit) < pes; bit <<= 1) {
      rpc_ff(pe, PeId(((rank | bit) + root) % pes), GiveLoads(), root, collections->me()...);
    }
    Balancer::of(pe).give_loads(PeId(root), parts_of(*collections...));
  }
};

}  // namespace headway::object
