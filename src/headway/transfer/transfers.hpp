/// Moves the content of buffers between PEs, by memory that both reach or in pieces by frames. For the layer itself;
/// programs use send_buffer(), Source, Destination, get() and put().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/aggregate/content_mover.hpp>
#include <headway/transfer/numbered_table.hpp>
#include <headway/transfer/remote_source.hpp>
#include <headway/transfer/stages.hpp>
#include <headway/transfer/turns.hpp>
#include <headway/am/when_done.hpp>
#include <headway/am/engine.hpp>
#include <headway/rma/buffer_key.hpp>
#include <headway/rma/fastest_path.hpp>
#include <headway/rma/reach.hpp>
#include <headway/transport/endpoint.hpp>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace headway::transfer {

class Pipeline;
class PipelinedRead;

/// What a PE has given to others, until they have said that they are done with it as often as was agreed.
enum class Given : std::uint8_t {
  sent,  // content of a message
  to_get,
  to_put,
};

/// Where content is that others have not mapped: copied to where they have, through the caches or past them, or where it
/// was.
enum Placed : std::size_t { through_caches, around_caches, where_it_lies };

/// Of one PE. What it sends are messages of an aggregator, in the scope of who asked: quiescence and epochs wait for
/// them.
///
///     small Source     owner: a copy in the pool, that others have mapped, or none, whichever is faster; then as below
///     get in pieces    getter: "want n bytes from here on" -> owner: "there", and writes them (Pipeline) as the
///                      getter reads; ... "used"
///                      else, and between hosts: -> owner: pieces by frames -> getter: ... "used"
///     small put        putter: its content, in one note -> owner
///     put by frames    putter: pieces -> owner: "this one is in place" -> putter: ... "used"
///     get by network   getter: "open it" -> owner: its key -> getter reads it; "used"
///     put by network   putter: "take it", with its key -> owner reads it; "it is in place" -> putter: "used"
///     otherwise        a copy by who gets or puts; then "used"
///
/// Of all that a PE asks for in pieces at most 1 MiB is on its way, and half of that of one PE; as much of all that it
/// puts: one after the other, so no PE spills more than that half for each that it serves. What goes by network counts
/// as 256 KiB.
///
/// Programs that use no transfers do not contain it, and have two aggregators less.
class Transfers final : public aggregate::ContentMover {
 public:
  static Transfers& of(Pe& pe);
  static aggregate::ContentMover& mover_of(Pe& pe) { return of(pe); }

  static std::unique_ptr<am::Extension> make(Pe& pe);
  explicit Transfers(Pe& pe);
  ~Transfers() override;
  void end() noexcept override;

  // --- of this PE's own memory

  /// Whether a Source of more than SourceContent::inside_bytes_max is copied into what it is known by, as those are: one
  /// for which a key that travels, and what that names after it, would cost more; unless misuse is to be found, or
  /// HEADWAY_TRANSFER names a way that has keys.
  bool takes_over(std::span<const std::byte> memory, std::uint64_t times) const;
  /// What such copies that are not inside take, until they are given back: at most SizeConstants::taken_bytes_max.
  void take(std::size_t bytes) { taken_bytes_ += bytes; }
  void give_back(std::size_t bytes) { taken_bytes_ -= bytes; }

  /// `done` is told when others have been done with it `times` times.
  rma::BufferKey give(Given as, std::span<const std::byte> memory, std::uint64_t times, am::WhenDone done);
  /// From now on it is an error if somebody wants it.
  void withdraw(std::uint64_t number);

  // --- content of messages

  SendPath send_path(std::size_t destination, std::span<const std::byte> content, bool posts) override;
  void learn_sent(std::span<const std::byte> content, std::int64_t ns) override;
  rma::BufferKey give_content(SendPath path, std::span<const std::byte> content, std::uint64_t checksum,
                              am::WhenDone done) override;
  std::uint64_t checksum_of(std::span<const std::byte> content) const override;
  void check(const rma::BufferKey& key) override;
  const std::byte* mapped(const rma::BufferKey& key) override;
  std::optional<std::int64_t> fetch_now(const rma::BufferKey& key, std::byte* to, bool may_pull) override;
  void fetch_later(const rma::BufferKey& key, std::weak_ptr<void> owner, std::function<std::byte*()> begin,
                   std::function<void()> finished) override;
  void tell_taken(const rma::BufferKey& key, std::int64_t ns) override;
  void require_unchanged(const rma::BufferKey& key, std::span<const std::byte> content,
                         std::uint64_t checksum) const override;

  // --- between memory

  struct Copied {
    bool done = false;
    bool timed = false;  // whether it was, or what follows is to be
    std::int64_t ns = not_timed;
  };
  /// Copies it there, after which its owner is to be told by tell_got(), if that can be now, and pieces have not been
  /// faster; else get_later() does. UsageError where it does not fit, FormatError for a key that is none.
  Copied get_now(const rma::BufferKey& from, std::span<std::byte> to);
  void tell_got(const rma::BufferKey& from, const Copied& copied) { tell_used(from, Given::to_get, copied.ns); }
  void get_later(const rma::BufferKey& from, std::span<std::byte> to, const Copied& copied, am::WhenDone done);
  void put(std::span<const std::byte> from, const rma::BufferKey& to, am::WhenDone done);

  std::int64_t now() const { return pe_->engine().now(); }

 private:
  enum class Teaches : std::uint8_t { nothing, mapped_sends, stagings, writes };
  struct Exposure {
    Exposure(Given a, std::span<const std::byte> m, std::uint64_t times, std::uint64_t sum, am::WhenDone d)
        : as(a), memory(m), left(times), checksum(sum), done(std::move(d)) {}

    Given as;
    std::span<const std::byte> memory;
    std::uint64_t left;
    std::uint64_t checksum;
    am::WhenDone done;
    std::size_t placed = where_it_lies;
    Teaches teaches = Teaches::nothing;  // how long others have taken, and this PE before them
    std::int64_t own_ns = 0;
    std::span<const std::byte> stage;   // a copy of it for those who have that mapped
    ExposedMemory* exposed = nullptr;  // to the network, from when somebody asked for it
    std::vector<std::byte> network_key{};
  };
  struct Pull {
    rma::BufferKey key;
    am::ScopeId scope;
    bool for_message;  // whose content it is
    std::weak_ptr<void> owner;
    std::byte* to = nullptr;
    std::function<std::byte*()> begin;  // empty, or says where to when the first is asked for
    am::WhenDone finished;
    std::uint64_t wanted = 0, received = 0;
    std::int64_t begin_ns = 0;
    bool timed = true, begun = false, by_network = false;
  };
  struct Push {
    rma::BufferKey key;
    am::ScopeId scope;
    const std::byte* from;
    std::uint64_t sent = 0, in_place = 0;
    am::WhenDone done;
    ExposedMemory* exposed = nullptr;  // to the network, which then moves it
  };
  struct Note;
  struct Mail;

  rma::Reach& reach() const {
    if (reach_ == nullptr) reach_ = &rma::Reach::of(*pe_);
    return *reach_;
  }
  std::uint64_t piece_bytes(std::size_t other) const {
    return is_on_host(other) ? sizes_.piece_bytes_within_host : sizes_.piece_bytes_between_hosts;
  }
  void take_note(PeId source, const Note& note, std::span<const std::byte> content);
  void send_note(std::size_t to, const Note& note, std::span<const std::byte> content = {});
  void send_piece(std::size_t to, const Note& note, std::span<const std::byte> content = {});
  bool is_on_host(std::size_t other) const { return host_.contains(other); }
  Exposure& exposure(PeId source, const Note& note, Given as);
  void send_pieces(PeId source, const Note& note);
  std::byte* wanted(PeId source, const Note& note, std::uint64_t bytes);
  void received(std::uint64_t number, std::uint64_t bytes);
  void take_piece(PeId source, const Note& note, std::span<const std::byte> content);
  void begin_reading(PeId source, const Note& note);
  void go_on_reading(std::uint64_t number, std::uint64_t bytes, PipelinedRead read);
  PipelinedRead pipelined_read(const Pull& pull, std::uint64_t at, std::uint64_t offset, std::uint64_t bytes);
  void take_put(PeId source, const Note& note, std::span<const std::byte> content);
  void take_small_put(PeId source, const Note& note, std::span<const std::byte> content);
  void note_in_place(PeId source, const Note& note);
  void end_use(PeId source, const Note& note);
  void learn(const Exposure& exposure, PeId source, std::int64_t ns);
  void pull(Pull pull);
  void begin_pull(Pull& pull);
  bool map(const NumberedTable<Exposure>::Added& added);
  void want_more();
  void push_more();
  bool goes_by_network(std::size_t other, std::uint64_t bytes) const;
  void open(PeId source, const Note& note);
  void read_opened(PeId source, const Note& note, std::span<const std::byte> key);
  void take_over_network(PeId source, const Note& note, std::span<const std::byte> key);
  bool read_over_network(PeId source, std::span<const std::byte> key, std::span<std::byte> to,
                         std::function<void()> then);
  void end_pull(std::uint64_t number);
  void tell(am::WhenDone done);
  void close(ExposedMemory*& exposed);
  /// As what it counts while the network moves it.
  std::uint64_t counted(const rma::BufferKey& key) const {
    return std::min<std::uint64_t>(sizes_.ask_bytes(), key.bytes);
  }
  bool is_in_scope(am::ScopeId scope, bool& comes_later, void (Transfers::*more)());
  void begin_waiting(am::ScopeId scope);
  void end_waiting(am::ScopeId scope);
  [[noreturn]] void refuse_late_content(const Pull& pull);
  void tell_used(const rma::BufferKey& key, Given as, std::int64_t ns, bool refused = false);
  Copied copy_in(const rma::BufferKey& key, std::byte* to, bool may_pull);
  rma::BufferKey key_of(const NumberedTable<Exposure>::Added& added, bool timed) const;
  void forget(std::uint64_t number, Exposure& exposure);
  bool is_mapped_by(std::size_t destination, std::span<const std::byte> content) const;

  Pe* pe_;
  const SizeConstants& sizes_;
  mutable rma::Reach* reach_ = nullptr;  // once it has been asked for: they are made in any order
  PeRange host_;                         // the PEs of this host
  TransferPath path_;
  bool checks_;
  std::size_t taken_bytes_ = 0;
  Stages stages_;
  std::unique_ptr<Pipeline> pipeline_;
  NumberedTable<Exposure> exposures_;
  NumberedTable<Pull> pulls_;
  NumberedTable<Push> pushes_;
  /// Those of which not all has been asked for, or sent; the first is under way. Each holds its scope open.
  Turns pulls_to_ask_{sizes_.window_bytes}, pushes_to_send_{sizes_.window_bytes};
  bool asks_later_ = false, pushes_later_ = false;  // in the scope of the first, where that is another
  rma::FastestPath<2> mapped_sends_;                // with the message, by key
  rma::FastestPath<4> gets_;
  rma::FastestPath<3> stagings_;  // of what is short and others copy, by Placed
  rma::FastestPath<2> writes_;    // of what is longer
  bool network_refuses_ = false;
  std::unique_ptr<Mail> mail_;  // last: its handler uses the others
};

}  // namespace headway::transfer
