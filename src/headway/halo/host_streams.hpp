// SPDX-License-Identifier: BSD-3-Clause
/// Coalescing: the PEs of a host send their elements for another host in one message.
///
///     senders of host A      memory of A               wire        memory of B                receivers of B
///       pack ------------->  gathered, generation g  --------->    arrived, generation g ---> unpack
///                            the last sender posts   one stream    the target PE copies
///
/// A sender packs each of its elements once, also if several PEs of the other host need it. No sender waits for
/// another. An end() waits until all senders of the stream have begun, and until the target PE makes progress.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/am/pe.hpp>
#include <headway/halo/index_list.hpp>
#include <headway/halo/plan.hpp>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headway::halo {

class Exchanges;
struct FieldRef;
struct PartnerSetup;
enum class SetupKind : std::uint8_t;

/// Whether PEs of one host send their elements for another host together. A PE that says `never` sends its own ones
/// alone. `always` counts if one of the senders says so, and if it saves a message.
enum class Coalescing : std::uint8_t { where_it_pays, always, never };

/// The messages with elements that a PE has sent to other hosts for an exchange. Acknowledgements are not counted.
struct HostTraffic {
  std::uint64_t messages = 0, bytes = 0;
};

/// A PE begins at most so many exchanges more than its partners have ended. So three buffers suffice for a stream: a
/// sender begins generation g after one of its receivers has ended g - 3, which had the elements of all senders.
inline constexpr std::uint32_t generations_ahead = 3;

/// In PieceHeader::begin: the piece belongs to the stream of the sender's host.
inline constexpr std::uint64_t stream_of_host = std::uint64_t(1) << 63;

/// Buffers of one stream, one for each of the last generations.
struct StreamBuffers {
  std::byte* first = nullptr;
  std::uint64_t bytes = 0;  // of one generation

  static std::uint64_t step(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }
  std::byte* of(std::uint32_t generation) const { return first + generation % generations_ahead * step(bytes); }
};

/// Alone in its cache line.
struct alignas(64) StreamWord {
  std::atomic<std::uint64_t> value{0};
};
using StreamWords = std::array<StreamWord, generations_ahead>;  // by generation modulo their number

/// The part of a sender in the stream from its host to another one.
struct OutgoingStream {
  std::size_t host = 0;               // the other one
  IndexList list;                     // the elements of this PE, each once
  StreamWords* packed = nullptr;      // how often senders have packed elements into each buffer
  StreamBuffers buffers;              // in the pool of a PE of this host
  std::uint64_t begin = 0;            // of this PE's elements
  std::uint64_t senders = 0;          // PEs of this host
  std::uint64_t messages = 0;         // that it stands for
  std::size_t target = 0;             // the PE that takes the stream
  std::size_t partners = 0;           // of this PE
  std::size_t complete_partners = 0;  // with parts: in this generation
};

/// The stream from another host, as its receivers see it.
struct IncomingStream {
  const StreamWords* arrived = nullptr;       // the last generation that is complete in each buffer
  StreamBuffers buffers;                      // in the pool of the target PE
  std::atomic<std::uint64_t>* ask = nullptr;  // the generation for which this PE wants a control message
  std::vector<std::size_t> receives = {};     // partners, in plan.receives()
  std::uint32_t taken = 0;                    // the last generation that this PE has unpacked

  bool has(std::uint32_t generation) const {
    return (*arrived)[generation % generations_ahead].value.load(std::memory_order_seq_cst) == generation;
  }
};

/// The elements of one partner in an incoming stream.
struct StreamPart {
  const IncomingStream* stream = nullptr;
  std::uint64_t begin = 0, elements = 0;  // of the partner
  IndexList places;                       // of these elements, those for this PE, in the order of the plan
};

/// The stream from another host, as the PE sees it that takes it from the wire.
struct TakenStream {
  StreamWords* arrived = nullptr;
  StreamBuffers buffers;
  StreamWord* asks = nullptr;  // of each receiver
  std::vector<std::size_t> receivers;
  std::array<std::uint64_t, generations_ahead> received{};  // bytes in each buffer
};

/// All streams of an exchange on one PE.
class HostStreams {
 public:
  /// `generation`: the last one before the first use.
  HostStreams(Pe& pe, Exchanges& exchanges, std::uint32_t number, std::uint32_t generation);
  HostStreams(const HostStreams&) = delete;
  HostStreams& operator=(const HostStreams&) = delete;

  /// Whether there can be streams between hosts of this run. The same on all PEs.
  static bool are_possible(Pe& pe);

  // --- set-up, collective: prepare(), a meeting of partners, and meet()

  /// Lists this PE's elements for each other host.
  void prepare(std::span<const Partner> sends, std::size_t element_bytes, Coalescing coalescing);
  /// For the set-up message to a partner; nothing if its elements leave alone.
  void add_places_for(std::size_t pe, std::vector<std::uint64_t>& message) const;
  /// Those of a set-up message from a partner; ignored if it is of this host. FormatError for an invalid list.
  void take_places(std::size_t pe, std::span<const std::uint64_t> places);
  /// Decides which streams there are. `refused`: partners without a part in them. `former`: streams of the exchange
  /// before a rebuild, or nullptr; frees their memory once no PE uses it. FormatError if elements do not fit.
  void meet(std::span<const Partner> receives, std::span<const std::size_t> refused, HostStreams* former);

  /// The stream of the elements for a partner; nullptr: they leave alone.
  OutgoingStream* outgoing_to(std::size_t pe);
  std::vector<OutgoingStream>& outgoing() { return outgoing_; }
  std::vector<IncomingStream>& incoming() { return incoming_; }
  /// As plan.receives(). Without stream: the elements arrive alone.
  const StreamPart& part(std::size_t receive) const { return parts_[receive]; }
  /// The PEs with which this one shares memory of streams, ascending, and its own memory, as offsets in its pool.
  std::vector<std::size_t> sharers() const;
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }
  std::string description() const;

  // --- exchanges

  /// Packs this PE's elements of a generation. The last sender of the host posts the stream.
  void send(OutgoingStream& stream, std::span<const FieldRef> fields, std::uint32_t generation, HostTraffic& traffic);
  /// A piece from a PE of another host. Returns whether its generation is complete. FormatError for a piece that does
  /// not fit.
  bool take(std::size_t source, std::uint32_t generation, std::uint64_t begin, std::span<const std::byte> piece);
  /// Asks for control messages when the generation is complete. The caller looks again after this call.
  void ask_for_notices(std::uint32_t generation) const;

 private:
  /// Elements that this PE would send in a stream; with no bytes: that leave alone.
  struct OwnOffer {
    OutgoingStream stream;
    std::uint64_t bytes_apart = 0;  // as often as partners get them
    std::vector<std::size_t> receivers;
  };
  /// Elements that a PE would send with others of its host.
  struct Offer {
    std::size_t sender;
    std::uint64_t bytes;        // each element once
    std::uint64_t bytes_apart;  // as often as partners get them
    Coalescing coalescing;
    std::vector<std::uint64_t> receivers;
  };
  /// A stream for this PE, until its target tells where elements arrive.
  struct Announced {
    std::size_t target = 0;
    std::uint64_t bytes = 0;
    std::vector<std::uint64_t> sections;  // of each sender, ascending: its number, begin and bytes
    std::vector<std::uint64_t> receivers;
    bool is_placed = false;  // the target has told where elements arrive
  };
  using Mail = std::map<std::size_t, std::vector<std::uint64_t>>;  // by receiver of the message

  std::size_t host_of(std::size_t pe) const;
  std::size_t host_begin(std::size_t host) const;
  std::size_t host_end(std::size_t host) const;
  /// The PE of host `from` that decides on the stream from there to host `to`.
  std::size_t decider_of(std::size_t from, std::size_t to) const;
  /// A set-up call in which `sources` send to this PE, and no others.
  std::map<std::size_t, PartnerSetup> call(SetupKind kind, const Mail& mail, std::vector<std::size_t> sources);
  /// The offers to this PE, by the other host.
  std::map<std::size_t, std::vector<Offer>> exchange_offers(std::span<const std::size_t> refused,
                                                            std::span<const std::size_t> former_sharers);
  bool pays(std::span<const Offer> offers, std::size_t receivers) const;
  void decide(std::size_t host, std::span<const Offer> offers, Mail& mail);
  void join(std::size_t decider, std::span<const std::uint64_t> numbers);
  /// A decision on the stream from the host of `decider` to this one.
  void take_decision(std::size_t decider, std::span<const std::uint64_t> numbers);
  void take_over(std::size_t from, const Announced& stream, Mail& mail);
  void receive(const Announced& announced, std::uint64_t offset, std::span<const Partner> receives);
  std::byte* pool(std::size_t pe) const;
  /// Memory of a stream in the pool of a PE of this host, which has told its offset: words, and buffers of `bytes`
  /// bytes. FormatError if it does not lie there.
  std::byte* memory_of(std::size_t pe, std::uint64_t offset, std::size_t words, std::uint64_t bytes) const;
  /// Frees the memory of this PE.
  void free_memory();
  /// Memory for words in front of buffers of `bytes` bytes, in the pool of this PE.
  std::uint64_t allocate(std::size_t words, std::uint64_t bytes);
  [[noreturn]] void refuse(std::size_t source, const std::string& what) const;

  Pe* pe_;
  Exchanges* exchanges_;
  std::uint32_t number_, base_;
  std::vector<OutgoingStream> outgoing_;
  std::vector<IncomingStream> incoming_;  // does not grow after set-up
  std::vector<StreamPart> parts_;
  // Until set-up ends:
  std::size_t element_bytes_ = 0;
  Coalescing coalescing_ = Coalescing::never;
  std::vector<OwnOffer> offered_;
  std::map<std::size_t, IndexList> places_, own_places_;  // own: in this PE's elements; by partner
  std::map<std::size_t, Announced> announced_;            // by the other host
  // Of the streams:
  std::map<std::size_t, TakenStream> taken_;  // by the other host
  std::vector<std::size_t> sharers_;          // unsorted, repeated
  std::vector<std::uint64_t> offsets_;
};

}  // namespace headway::halo
