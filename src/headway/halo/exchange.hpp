// SPDX-License-Identifier: BSD-3-Clause
/// Exchanges of the elements of arrays by a plan.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <headway/aggregate/invoke.hpp>
#include <headway/am/future.hpp>
#include <headway/am/pe.hpp>
#include <headway/halo/host_partner.hpp>
#include <headway/halo/host_streams.hpp>
#include <headway/halo/parts.hpp>
#include <headway/halo/plan.hpp>
#include <headway/rma/pooled_array.hpp>
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
struct PartnerSetup;

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

/// The array `data`: an arrived element replaces the one at its index.
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
/// An array in mapped memory: a PE's partners on its host write the elements there, without another copy. Any array of
/// field() that lies in the memory of a Field is written like that.
///
///     halo::Field<double> heights(pe, grid.elements());
template <class T>
using Field = PooledArray<T>;
template <class T>
FieldRef field(Field<T>& data) {
  return field(std::span(data.data(), data.size()));
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

/// How long begin() waits for a receiver of this host that is not ready for direct writes.
enum class Patience : std::uint8_t {
  none,    // begin(): stages the elements, and the program computes
  limited  // a whole exchange at once: a short wait saves the second copy
};

/// The state behind an Exchange. Its address is fixed.
class ExchangeState {
 public:
  ExchangeState(Pe& pe, const Plan& plan, std::vector<FieldRef> fields, CombineOrder order, Coalescing coalescing);
  ExchangeState(const ExchangeState&) = delete;
  ExchangeState& operator=(const ExchangeState&) = delete;
  ~ExchangeState();

  const Plan& plan() const { return plan_; }
  void begin(Patience patience);
  bool done() { return look(); }
  void end();
  Future<> when_done();
  /// Later exchanges use these arrays, of the same types.
  void rebind(std::vector<FieldRef> fields);
  void rebuild(const Plan& plan, std::vector<FieldRef> fields);
  void rebuild(const Plan& plan) { rebuild(plan, fields_); }
  std::string description() const;
  HostTraffic sent_to_other_hosts() const { return traffic_; }

  void divide(std::size_t parts, const PartRule& rule);
  void begin_parts();
  // Called by any thread, between begin_parts() and end():
  void part_ready(std::size_t part);
  bool has_arrived(std::size_t source) const;

  // Called by Exchanges:
  void arrived(std::size_t source, std::uint32_t generation, std::uint64_t begin, std::span<const std::byte> piece);
  void arrived_of_host(std::size_t source, std::uint32_t generation, std::uint64_t begin,
                       std::span<const std::byte> piece);
  void acknowledged(std::size_t source, std::uint32_t generation);
  /// A partner of this host has sent, and this PE has asked for a notice.
  void notified() { look_at_host(); }
  /// Adds the partners from which elements are missing.
  void add_missing(std::vector<std::uint32_t>& pes) const;
  /// For people: the parts without which end() does not return. Empty if there are none.
  std::string waits_for_parts() const;
  /// Adds the partners that wait for parts of this PE.
  void count_unsent(std::map<std::uint32_t, std::uint64_t>& by_target) const;

 private:
  struct Early {
    std::uint64_t begin;
    std::vector<std::byte> bytes;
  };
  /// Of a stream from another host, for a PE that still sets up its streams.
  struct EarlyOfHost {
    std::size_t source;
    std::uint32_t generation;
    Early piece;
  };
  struct Receive {
    std::uint64_t bytes = 0;                            // of its stream
    std::uint64_t received = 0;                         // of the current generation
    bool acknowledges = false;                          // nothing else tells the partner that all has arrived
    bool accepts = false;                               // with host: the partner may write into the arrays
    HostSender host;                                    // unused: elements arrive from another host
    bool is_in_stream = false;                          // of the partner's host: they do not arrive in frames alone
    std::map<std::uint32_t, std::vector<Early>> early;  // by generation
    std::vector<std::byte> stream;                      // with CombineOrder::fixed, of frames
  };
  struct Send {
    std::size_t partner = 0;  // in plan_.sends()
    bool awaits_acknowledgement = false;
    std::uint32_t acknowledged = 0;    // generations
    HostReceiver host;                 // unused: elements leave in frames
    OutgoingStream* stream = nullptr;  // together with those of other PEs
  };

  std::uint64_t stream_bytes(const IndexList& list) const { return list.size() * element_bytes_; }
  static std::string types_of(std::span<const FieldRef> fields);
  void require_types(const std::vector<FieldRef>& fields, const char* call) const;
  void check_fields(const Plan& plan, std::span<const FieldRef> fields) const;
  void follow(const Plan& plan);
  std::optional<HostBlock> renew_block();
  void meet_partners();
  /// `streams`: those that the exchange will have.
  void tell(std::size_t pe, const std::string& own_types, const HostStreams* streams) const;
  void check_partner(std::size_t pe, const PartnerSetup& setup, const std::string& own_types) const;
  void use_streams(std::unique_ptr<HostStreams> streams);
  /// The memory of this exchange in the pool is free once all PEs that use it have destroyed the exchange.
  void retire_memory();
  void meet_on_host(std::size_t pe, const PartnerSetup& setup);
  /// Memory in the pool of a partner, which has told its offset. FormatError if it does not lie there.
  template <class T>
  T* memory_of(std::size_t pe, std::uint64_t offset, std::uint64_t bytes) const;
  void publish_fields();
  bool is_written_by(std::size_t pe) const;

  void begin_receiving();
  void take_early();
  void send_in_frames(const Partner& partner);
  void send_to_self(const IndexList& list);
  void send_to_host(Patience patience);
  void send_in_streams();
  /// With parts: the elements for one more partner are complete.
  void complete_in_stream(OutgoingStream& stream);
  /// Unpacks complete streams of other hosts. Returns whether that completes the exchange.
  bool take_from_streams();
  void unpack_from_stream(std::size_t receive);
  bool write_directly(const Send& send);
  void copy_to_partner(const Send& send, Caches caches) const;
  /// Calls write(caches) for the distance of the partner, and measures it now and then.
  template <class Write>
  void write_by_distance(const Send& send, Write write);
  void write_staged(const Send& send);
  void publish(const Send& send, bool is_staged);
  void pack(const IndexList& list, std::uint64_t begin, std::uint64_t bytes, std::byte* to) const;
  /// Calls f(field, first, count, place) for the elements of a piece; `place` is the elements' place in the piece.
  template <class F>
  void each_field(const IndexList& list, std::uint64_t begin, std::uint64_t bytes, F f) const;
  void unpack(const IndexList& list, std::uint64_t begin, std::span<const std::byte> piece);
  void take(std::size_t receive, std::uint64_t begin, std::span<const std::byte> piece);
  /// Sends complete parts, and takes what partners of this host have sent. Returns whether nothing is missing.
  bool look();
  /// Returns whether all parts are sent.
  bool send_complete_parts();
  /// Returns whether all elements have arrived.
  bool look_at_host();
  bool has_all(const Receive& from) const { return from.received == from.bytes; }
  /// Whether that place of a partner's stream lies between two elements.
  bool is_between_elements(const IndexList& list, std::uint64_t at) const;
  bool finish_receive(std::size_t receive);
  void finish_generation();
  void ask_for_notices();

  Exchanges* exchanges_;
  Pe* pe_;
  Plan plan_;
  std::vector<FieldRef> fields_;
  CombineOrder order_;
  Coalescing coalescing_;
  std::size_t element_bytes_ = 0;  // of all fields together
  std::uint32_t number_ = 0, generation_ = 0;
  bool begun_ = false;                                          // and not ended
  std::size_t unsent_ = 0;                                      // partners that wait for parts
  std::size_t missing_ = 0;                                     // partners from which elements are missing
  bool has_host_senders_ = false, has_host_receivers_ = false;  // senders: also streams
  bool is_refused_ = false;                                     // by partners, on rebuild
  std::vector<std::size_t> partners_;                           // other PEs that send or receive, by number
  std::vector<std::size_t> host_partners_;                      // those with which this one exchanges by load and store
  std::optional<HostBlock> block_;
  std::vector<Send> sends_;                                // in the order of sending
  std::vector<Receive> receives_;                          // as plan_.receives()
  std::optional<std::size_t> own_;                         // this PE in plan_.receives()
  std::vector<std::byte> own_bytes_;                       // elements that this PE sends to itself
  std::vector<const Send*> waiting_;                       // scratch memory of send_to_host()
  std::unique_ptr<std::atomic<std::uint32_t>[]> arrived_;  // as receives_: the last generation that is in the arrays
  std::size_t arrived_room_ = 0;
  std::unique_ptr<Parts> parts_;          // by index in sends_
  std::unique_ptr<HostStreams> streams_;  // nullptr: there can be none, or they are being set up
  std::vector<EarlyOfHost> early_of_host_;
  std::vector<std::byte> in_order_;  // scratch memory of unpack_from_stream()
  HostTraffic traffic_;
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
/// The program does not change the elements that it receives between begin() and end(), and may change those that it
/// sends. A partner may begin up to three exchanges more than this PE has ended; their elements wait in memory of the
/// exchange. The destructor waits for the end of an exchange that has begun, and until partners on other hosts have
/// the elements.
class Exchange {
 public:
  Exchange(Pe& pe, const Plan& plan, std::vector<FieldRef> fields, CombineOrder order = CombineOrder::any,
           Coalescing coalescing = Coalescing::where_it_pays)
      : state_(std::make_unique<ExchangeState>(pe, plan, std::move(fields), order, coalescing)) {}

  /// Sends this PE's elements. The main program may wait for memory, and for partners that are three exchanges behind,
  /// and runs handlers meanwhile. UsageError after a begin() without end().
  void begin() { state_->begin(Patience::none); }
  /// Whether all elements have arrived. progress(), sends and waiting calls make progress.
  bool done() { return state_->done(); }
  /// Waits until all elements have arrived, and runs handlers meanwhile.
  void end() { state_->end(); }
  /// begin() and end().
  void operator()() {
    state_->begin(Patience::limited);
    state_->end();
  }
  /// begin(), and a future that is ready when all elements have arrived. It stands for end().
  Future<> async() {
    state_->begin(Patience::none);
    return state_->when_done();
  }
  /// Divides the elements that this PE sends: `rule` gives the part of a local element, from 0 to `parts` - 1. For
  /// programs in which several threads compute the elements. Not between begin and end.
  void divide(std::size_t parts, const PartRule& rule) { state_->divide(parts, rule); }
  /// begin() for divided elements: a partner's elements leave once ready() has marked all their parts. Other PEs may
  /// use any form of begin. end() and done() send complete parts, so the program calls one of them meanwhile.
  void begin_parts() { state_->begin_parts(); }
  /// Marks a part: its elements have their new values. Called by any thread, once for each part and begin_parts(). The
  /// thread that completes the elements for a partner of this host copies them to it. UsageError for a part out of
  /// range, and for a second call.
  void ready(std::size_t part) { state_->part_ready(part); }
  /// Whether the elements of that partner are in the arrays. Called by any thread between begin_parts() and end().
  bool arrived(PeId partner) const { return state_->has_arrived(partner); }
  /// Later exchanges use these arrays. They have the types of the first ones. Not between begin() and end().
  void rebind(std::vector<FieldRef> fields) { state_->rebind(std::move(fields)); }
  /// Later exchanges use another plan, and arrays of the same types. Collective, as making an exchange, and with the
  /// same checks; not between begin() and end(). All PEs have done as many exchanges. Words, staging buffers and other
  /// memory stay where they suffice. It waits until old and new partners rebuild it, too; with several PEs on each of
  /// several hosts, for PEs that share streams as well. Streams are decided on again. Parts end: divide() again.
  void rebuild(const Plan& plan, std::vector<FieldRef> fields) { state_->rebuild(plan, std::move(fields)); }
  /// The same arrays, which are long enough for the new plan.
  void rebuild(const Plan& plan) { state_->rebuild(plan); }
  const Plan& plan() const { return state_->plan(); }
  /// For people: one line for each partner, with the path and the form of its list.
  std::string description() const { return state_->description(); }
  /// What this PE has sent to other hosts, with elements of other PEs of its host.
  HostTraffic sent_to_other_hosts() const { return state_->sent_to_other_hosts(); }

 private:
  std::unique_ptr<ExchangeState> state_;
};

}  // namespace headway::halo
