// SPDX-License-Identifier: BSD-3-Clause
/// Exchanges of the elements of arrays by a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <headway/aggregate/invoke.hpp>
#include <headway/am/future.hpp>
#include <headway/am/pe.hpp>
#include <headway/halo/plan.hpp>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::halo {

class Exchanges;

/// Combines arrived elements with those of the array.
using CombineList = std::function<void(const IndexList& list, std::size_t first, std::size_t count,
                                       const std::byte* arrived, const FieldView& field)>;

/// Refers to an array in an exchange. Made by field(). The array must outlive its use by exchanges.
struct FieldRef {
  FieldView view;
  std::uint64_t elements = 0;
  std::string type;     // as a program writes it
  CombineList combine;  // empty: arrived elements replace those of the array
};

/// The array `data`, whose elements arrive in their place.
template <class T>
FieldRef field(std::span<T> data) {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "headway: a field is a span of trivially copyable elements that are not const");
  return {
      {reinterpret_cast<std::byte*>(data.data()), sizeof(T), sizeof(T)}, data.size(), aggregate::type_name<T>(), {}};
}
template <class T, class Allocator>
FieldRef field(std::vector<T, Allocator>& data) {
  return field(std::span(data));
}
/// A member of each struct of an array: field(cells, &Cell::height).
template <class Struct, class T>
FieldRef field(std::span<Struct> data, T Struct::*member) {
  FieldRef made = field(std::span(data.empty() ? nullptr : &(data[0].*member), data.size()));
  made.view.stride = sizeof(Struct);
  return made;
}
/// The same with `op`: each arrived element a changes element e of the array to op(e, a). For reverse exchanges, where
/// several elements may arrive for one.
template <class T, class Op>
FieldRef field(std::span<T> data, Op op) requires(std::is_invocable_r_v<T, Op&, const T&, const T&>) {
  FieldRef made = field(data);
  made.combine = [op](const IndexList& list, std::size_t first, std::size_t count, const std::byte* arrived,
                      const FieldView& view) {
    list.combine(first, count, arrived, view, [&](std::byte* element, const std::byte* from) {
      T a, e;
      std::memcpy(&e, element, sizeof e);
      std::memcpy(&a, from, sizeof a);
      e = op(e, a);
      std::memcpy(element, &e, sizeof e);
    });
  };
  return made;
}

/// The order in which arrived elements are put in place.
enum class CombineOrder : std::uint8_t {
  any,    // as they arrive
  fixed,  // by number of the sender: combined sums are the same in every run
};

/// The state behind an Exchange. Its address is fixed.
class ExchangeState {
 public:
  ExchangeState(Pe& pe, Plan plan, std::vector<FieldRef> fields, CombineOrder order);
  ExchangeState(const ExchangeState&) = delete;
  ExchangeState& operator=(const ExchangeState&) = delete;
  ~ExchangeState();

  const Plan& plan() const { return plan_; }
  void begin();
  bool done() const { return pending_bytes_ == 0; }
  void end();
  Future<> when_done();
  /// Later exchanges use these arrays, of the same types.
  void rebind(std::vector<FieldRef> fields);

  // Called by Exchanges:
  void arrived(std::size_t source, std::uint32_t generation, std::uint64_t begin, std::span<const std::byte> piece);
  void acknowledged(std::size_t source, std::uint32_t generation);

 private:
  struct Early {
    std::uint64_t begin;
    std::vector<std::byte> bytes;
  };
  struct Receive {
    std::uint64_t bytes = 0;                            // of its stream
    std::uint64_t received = 0;                         // of the current generation
    bool acknowledges = false;                          // the partner gets nothing that would tell it so
    std::map<std::uint32_t, std::vector<Early>> early;  // by generation
    std::vector<std::byte> stream;                      // with CombineOrder::fixed
  };
  struct Send {
    std::size_t partner;  // in plan_.sends()
    bool awaits_acknowledgement = false;
    std::uint32_t acknowledged = 0;  // generations
  };

  std::uint64_t stream_bytes(const IndexList& list) const { return list.size() * element_bytes_; }
  std::string types() const;
  std::string describe(std::uint64_t elements, const std::string& types) const;
  void check_fields() const;
  void meet_partners();
  void send_to(const Partner& partner);
  /// Calls f(field, first, count, bytes) for the elements of a piece.
  template <class F>
  void each_field(const IndexList& list, std::uint64_t begin, std::uint64_t bytes, F f) const;
  void unpack(const IndexList& list, std::uint64_t begin, std::span<const std::byte> piece);
  void take(std::size_t receive, std::uint64_t begin, std::span<const std::byte> piece);
  void finish_generation();

  Exchanges* exchanges_;
  Pe* pe_;
  Plan plan_;
  std::vector<FieldRef> fields_;
  CombineOrder order_;
  std::size_t element_bytes_ = 0;  // of all fields together
  std::uint32_t number_ = 0, generation_ = 0;
  bool begun_ = false;  // and not ended
  std::uint64_t pending_bytes_ = 0;
  std::vector<Send> sends_;         // in the order of sending
  std::vector<Receive> receives_;   // as plan_.receives()
  std::optional<std::size_t> own_;  // this PE in plan_.receives()
  std::optional<Promise<>> promise_;
};

/// Moves the elements of a plan, of all its fields together, as often as the program wants. Made collectively, in the
/// same order on all PEs: partners compare the numbers of elements and the types, and a difference ends the run with
/// an error that names both. Fields keep their address and length until rebind().
///
///     halo::Exchange exchange(pe, plan, {halo::field(heights), halo::field(speeds)});
///     exchange.begin();
///     update_inner_cells();
///     exchange.end();
///
/// Between begin() and end() the program changes neither the elements that it sends nor those that it receives. A
/// partner may begin up to two exchanges more than this PE has ended; their elements wait in memory of the exchange.
class Exchange {
 public:
  Exchange(Pe& pe, const Plan& plan, std::vector<FieldRef> fields, CombineOrder order = CombineOrder::any)
      : state_(std::make_unique<ExchangeState>(pe, plan, std::move(fields), order)) {}

  /// Sends this PE's elements. The main program may wait for memory, and for partners that are two exchanges behind,
  /// and runs handlers meanwhile. UsageError after a begin() without end().
  void begin() { state_->begin(); }
  /// Whether all elements have arrived. progress(), sends and waiting calls make progress.
  bool done() const { return state_->done(); }
  /// Waits until all elements have arrived, and runs handlers meanwhile.
  void end() { state_->end(); }
  void operator()() {
    begin();
    end();
  }
  /// begin(), and a future that is ready when all elements have arrived. It stands for end().
  Future<> async() {
    state_->begin();
    return state_->when_done();
  }
  /// Later exchanges use these arrays. They have the types of the first ones. Not between begin() and end().
  void rebind(std::vector<FieldRef> fields) { state_->rebind(std::move(fields)); }
  const Plan& plan() const { return state_->plan(); }

 private:
  std::unique_ptr<ExchangeState> state_;
};

}  // namespace headway::halo
