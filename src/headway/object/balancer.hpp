/// One PE's part in balancing: what it gives, decides and moves, without waiting.
///
///     asks: request -> PE 0: one turn at a time -> the PE that asked -> GiveLoads, down a tree of PEs
///     each PE: its loads -> the PE that asked: the strategy -> to PEs that lose elements: which, and where they go
///     each of these: what it has moved -> the PE that asked -> PE 0 -> the table to who asked; the next turn
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <headway/call/calls.hpp>
#include <headway/am/engine.hpp>
#include <headway/am/future.hpp>
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
  static_assert(sizeof...(T) > 0, "headway: give the collections that are to be balanced");
  static_assert((NamingOf<typename T::ElementNaming>::moves && ...), "headway: elements of groups stay where they are");
  static_assert((Migratable<T> && ...),
                "headway: what is balanced has a constructor without arguments and serialize()");
  return sizeof...(T) > 0 && ((NamingOf<typename T::ElementNaming>::moves && Migratable<T>)&&...);
}
/// The PE of all these collections. UsageError where they are of several, or one is there twice.
Pe& require_same_pe(std::initializer_list<Pe*> pes, std::span<const std::uint32_t> numbers);

/// An element of a PE's part of a picture, and where it is to go.
struct Move {
  std::uint32_t element;
  std::uint32_t pe;
};
/// What came of them.
struct Moved {
  std::uint64_t moved = 0, bytes = 0, moving = 0, missed = 0;
};

/// One collection's elements on this PE, as they were when the picture was taken.
class Part {
 public:
  virtual ~Part() = default;
  virtual std::size_t size() const = 0;
  /// Appends their loads, which begin anew.
  virtual void take_loads(std::vector<double>& loads_s) = 0;
  virtual void move(std::size_t element, PeId to, Moved& moved) = 0;
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
  void move(std::size_t element, PeId to, Moved& moved) override {
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

  /// `start` makes every PE give its loads to this one.
  Future<BalanceTable> request(const BalanceStrategy& strategy, std::span<const std::uint32_t> collections,
                               std::function<void()> start);

  // --- for balance(), between quiescences

  /// What PE 0 decides by.
  void decide_by(const BalanceStrategy& strategy);
  /// Sends what these elements have had to do, and keeps their names.
  void give_loads(PeId decider, Parts parts);
  /// On PE 0: what its strategy threw.
  void rethrow();
  /// On PE 0: of the last decision.
  const BalanceTable& table() const { return table_; }

  // --- what comes in messages

  void take_ask(PeId source, RequestId request, std::string_view key);
  void begin_turn(RequestId request);
  void take_loads(PeId source, std::span<const std::uint64_t> counts, std::span<const double> loads_s);
  void move(PeId decider, std::span<const Move> moves);
  void take_moved(const Moved& moved);
  void end_turn(PeId decider, const BalanceTable& table, const std::string& failure);
  void take_table(RequestId request, PeId decider, const BalanceTable& table, const std::string& failure);

  std::size_t waiting() const { return requests_.size(); }

 private:
  struct Request {
    BalanceStrategy strategy;
    std::function<void()> start;
    am::Hold<am::CompletionOf<BalanceTable>> completion;
  };
  struct Caller {
    PeId pe;
    RequestId request;
  };
  /// On PE 0. The first is under way.
  struct Turn {
    std::string key;  // who asks for the same; empty: balance()
    std::vector<Caller> askers;
  };

  void grant();
  void decide();
  void finish();

  Pe* pe_;
  Parts parts_;  // of the last picture

  // Of the PE that decides.
  std::optional<BalanceStrategy> strategy_;
  std::vector<Loads> loads_;
  std::size_t given_ = 0;    // PEs that have given theirs
  std::size_t unheard_ = 0;  // PEs that have not said what they moved
  std::int64_t begin_ = 0;
  BalanceTable table_;
  std::exception_ptr error_;

  std::map<RequestId, Request> requests_;
  RequestId next_request_ = 0;
  std::deque<Turn> turns_;
};

/// Goes down a tree of PEs whose root decides.
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
