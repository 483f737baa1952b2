// SPDX-License-Identifier: BSD-3-Clause
/// One PE's part of all halo exchanges: set-up messages, and the frames with elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/frame_poster.hpp>
#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/base/creation_table.hpp>
#include <headway/base/format_error.hpp>
#include <headway/halo/grouping.hpp>
#include <headway/halo/host_partner.hpp>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headway::halo {

class ExchangeState;

/// In front of packed elements in a frame. All elements of one exchange for one partner are a stream of bytes: field
/// after field, each by the partner's list. A frame holds a piece of the stream that ends between two elements.
struct PieceHeader {
  std::uint32_t exchange;    // its number
  std::uint32_t generation;  // 1 for the first exchange of these fields
  std::uint64_t begin;       // of the piece in the stream; with stream_of_host: of that of the sender's host
};
static_assert(sizeof(PieceHeader) == 16);

/// A collective call in which partners exchange set-up messages.
enum class SetupKind : std::uint8_t {
  asks,     // of a plan: receivers name the elements that they want
  counts,   // of a plan: senders tell the numbers of their elements
  ranges,   // of a directory: owners register ranges of ids, and others ask for owners
  owners,   // of a directory: the answers
  meeting,  // of an exchange that is made or rebuilt
  // Then, if there can be streams between hosts:
  offers,     // senders of a host: to those of its PEs that decide
  decisions,  // these: to senders and receivers
  arrivals    // receivers that take streams: to the others of their host
};

/// The first numbers of the set-up message of an exchange. A partner of the sender's host gets the list of the elements
/// that the sender expects from it, unless it knows it. One of another host gets the places of its elements among those
/// that the sender packs for its host, each once, if the sender would send them in a stream.
struct SetupNumbers {
  std::uint64_t exchange = 0;            // its number
  std::uint64_t sent = 0, expected = 0;  // elements
  std::uint64_t generation = 0;          // exchanges done before
  HostPlaces places{};
};

/// A set-up message of one partner.
struct PartnerSetup {
  SetupKind kind = SetupKind::asks;
  std::vector<std::uint64_t> numbers;
  std::string text;

  /// Of a meeting. FormatError if there are fewer numbers; as that of IndexList::decode(), it does not name the sender.
  SetupNumbers first() const;
  std::span<const std::uint64_t> list() const;
};

/// Throws FormatError for a set-up message of PE `source` to PE `me`; `why` is a clause with the numbers of the
/// message.
[[noreturn]] void refuse_setup(std::size_t source, std::size_t me, const std::string& why);

/// Returns read(), which reads a set-up message of PE `source` to PE `me`. A FormatError then names both PEs.
template <class Read>
auto read_setup(std::size_t source, std::size_t me, Read read) {
  try {
    return read();
  } catch (const FormatError& error) {
    refuse_setup(source, me, error.what());
  }
}

/// Throws UsageError for a message of PE `source`, which takes PE `me` for a partner.
[[noreturn]] void refuse_stranger(std::size_t source, const PartnerSetup& setup, std::size_t me);

class Exchanges final : public am::Extension, public am::FrameHandler {
 public:
  /// The first call is collective.
  static Exchanges& of(Pe& pe);
  static std::unique_ptr<am::Extension> make(Pe& pe);
  explicit Exchanges(Pe& pe);
  ~Exchanges() override;
  void end() noexcept override;
  void add_waits_for(std::vector<std::uint32_t>& pes) const override;

  // --- set-up: collective calls in which each PE sends numbers and a text to its partners

  /// Returns the number of the call: 1 for the first one. PEs make these calls in the same order.
  std::uint64_t begin_setup(SetupKind kind);
  /// At most one message to each PE.
  void send_setup(std::size_t to, std::span<const std::uint64_t> numbers, std::string_view text = {});
  /// Waits until as many messages have arrived as there are partners.
  void await_setup(std::span<const std::size_t> partners);
  /// The messages of the call that have arrived, by PE. Later ones end the run.
  std::map<std::size_t, PartnerSetup> end_setup();
  /// A message has arrived. `tag`: the number of the call, and a SetupKind in the lowest 8 bits. FormatError for a kind
  /// that does not exist, and for a second message in one call. UsageError if the sender has made another call.
  void take_setup(std::size_t source, std::uint64_t tag, std::span<const std::uint64_t> numbers, std::string_view text);
  /// Memory for later messages.
  void recycle(std::map<std::size_t, PartnerSetup>&& messages);
  /// Memory for a message.
  std::vector<std::uint64_t>& message() { return message_; }
  /// Memory for the elements that a plan needs.
  Grouping& grouping() { return grouping_; }

  // --- exchanges

  /// Collective. Returns the number.
  std::uint32_t add(ExchangeState& state) { return table_.add(&state); }
  void remove(std::uint32_t number) { table_.remove(number); }
  /// The largest piece of a stream in one frame.
  std::size_t piece_bytes_max() const { return piece_bytes_max_; }
  /// A frame for a piece of `bytes`; the main program may wait for memory, and runs handlers meanwhile. The caller
  /// writes them to piece_of() and calls post().
  am::OpenFrame claim(std::size_t to, std::size_t bytes);
  std::byte* piece_of(const am::OpenFrame& frame) const { return poster_.message_of(frame) + sizeof(PieceHeader); }
  void post(std::size_t to, const am::OpenFrame& frame, const PieceHeader& header, std::size_t bytes);
  bool leaves_host(std::size_t to) const { return poster_.leaves_host(to); }
  /// Tells a PE that this one has all elements of a generation.
  void acknowledge(std::size_t to, std::uint32_t exchange, std::uint32_t generation);
  /// Tells a partner of this host that has asked for it: this PE has sent.
  void notify(std::size_t to, std::uint32_t exchange);
  /// Frees the memory of a destroyed exchange in the pool once the PEs of this host that use it, `partners`, have
  /// destroyed the exchange, too. Each of them names this PE as well.
  void retire(std::uint32_t exchange, std::vector<std::uint64_t> offsets, std::span<const std::size_t> partners);
  /// Waits until done(), for the end of that exchange. `polls`: other threads of the program may change the condition.
  template <class Done>
  void wait_for(const ExchangeState& state, bool polls, Done done) {
    struct Forget {  // also after an exception: the exchange may be destroyed then
      const ExchangeState*& waiting;
      ~Forget() { waiting = nullptr; }
    };
    waiting_ = &state;
    const Forget forget{waiting_};
    if (polls)
      engine().wait_polling(std::move(done), report::Phase::collective, report::no_pe);
    else
      engine().wait_until(std::move(done), report::Phase::collective);
  }
  /// What this PE has learned about writing to a partner of its host. The address is fixed.
  Distance& distance(std::size_t partner) { return distances_[partner]; }
  std::uint64_t frames() const { return poster_.counters().frames + poster_.counters().by_value; }
  am::Engine& engine() const { return poster_.engine(); }

  // --- as FrameHandler

  Result handle(const transport::Arrival& arrival, std::uint32_t& next) override;
  bool flush_open(am::FlushReason) override { return false; }
  bool flush_idle(am::IdleFlush) override { return false; }
  std::int64_t due() const override { return am::never; }
  bool flush_due(std::int64_t) override { return false; }
  std::uint16_t signature() const override { return 0x4841; }
  /// Names the parts for which this PE waits.
  std::string description() const override;
  /// The elements that wait for parts, as one message for each partner.
  void count_open(std::map<std::uint32_t, std::uint64_t>& by_target) const override;
  bool ready() const override { return true; }

 private:
  void begin_use();
  struct SetupMessages;
  /// UsageError if `source` has made another set-up call than this PE.
  void require_same_call(std::size_t source, const PartnerSetup& setup) const;
  /// A destroyed exchange. Partners may still read or write its memory.
  struct Retired {
    std::size_t partners_gone = 0, partners = 0;
    std::vector<std::uint64_t> offsets;
    bool is_destroyed = false;  // by this PE
  };
  void free_if_unused(std::uint32_t exchange);
  /// FormatError for a number that this PE has not given.
  void require_made(std::size_t source, std::uint32_t number) const;
  ExchangeState& find(std::size_t source, std::uint32_t number);

  aggregate::FramePoster poster_;
  std::size_t piece_bytes_max_;
  std::uint32_t handler_ = 0;
  std::uint16_t acknowledgement_ = 0, notice_ = 0, gone_ = 0;  // control handlers
  std::map<std::uint32_t, Retired> retired_;                   // by number
  base::CreationTable<ExchangeState*> table_;
  // Of the current set-up call, and of later calls of other PEs; by number of the call.
  std::map<std::uint64_t, std::map<std::size_t, PartnerSetup>> setup_;
  std::uint64_t setup_call_ = 0;  // the last one that this PE has begun
  SetupKind setup_kind_ = SetupKind::asks;
  bool setup_is_open_ = false;
  std::span<const std::size_t> setup_partners_;  // PEs for which await_setup() waits
  std::vector<std::vector<std::uint64_t>> spare_messages_;
  std::vector<std::uint64_t> message_;
  Grouping grouping_;
  const ExchangeState* waiting_ = nullptr;     // this PE waits for its end
  std::map<std::size_t, Distance> distances_;  // by partner
  std::unique_ptr<SetupMessages> messages_;
};

}  // namespace headway::halo
