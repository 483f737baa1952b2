// SPDX-License-Identifier: BSD-3-Clause
/// Moves content between PEs: through memory that both reach, or in pieces. Internal; programs use send_buffer(),
/// Source, Destination, get() and put().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/aggregate/content_mover.hpp>
#include <headway/am/engine.hpp>
#include <headway/am/when_done.hpp>
#include <headway/rma/buffer_key.hpp>
#include <headway/rma/fastest_path.hpp>
#include <headway/rma/reach.hpp>
#include <headway/transfer/numbered_table.hpp>
#include <headway/transfer/remote_source.hpp>
#include <headway/transfer/turns.hpp>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/observer.hpp>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace headway::transfer {

class Pipeline;
class PipelinedRead;

/// What exposed memory is to other PEs, until they have used it as often as its owner stated.
enum class ExposedAs : std::uint8_t { message_content, source, destination };

/// The transfers of one PE. Its control messages are messages of an aggregator, in the scope of the caller: quiescence
/// and epochs wait for them.
///
///     short Source     its name holds a copy (holds_copy()); no control messages
///     get in pieces    getter: "want" -> owner: "pipelined", and writes a ring (Pipeline) that the getter reads;
///     "used"
///                      between hosts, or without shared memory: owner: "piece", with content -> getter; "used"
///     small put        putter: "put_all", with all content -> owner
///     put by frames    putter: "put", with content -> owner: "in_place" -> putter; "used"
///     get by network   getter: "open" -> owner: "opened", with the network's key -> getter reads; "used"
///     put by network   putter: "take", with the network's key -> owner reads: "in_place" -> putter; "used"
///     otherwise        the PE that gets or puts copies the content; "used"
///
/// At most 1 MiB of the content that a PE gets in pieces is in flight, and half of that from one PE; the same for puts.
/// So the owner spills at most that half for each PE that it serves. A transfer by the network counts as 256 KiB.
///
/// A program without transfers does not link this class, and has two aggregators less.
class Transfers final : public aggregate::ContentMover {
 public:
  static Transfers& of(Pe& pe);
  static aggregate::ContentMover& mover_of(Pe& pe) { return of(pe); }

  static std::unique_ptr<am::Extension> make(Pe& pe);
  explicit Transfers(Pe& pe);
  ~Transfers() override;
  void end() noexcept override;

  // --- of this PE's own memory

  /// Whether the name of a Source of more than SourceContent::inside_bytes_max holds a copy of it, because a key and
  /// its answer would cost more: up to SizeConstants::copied_bytes_max for one get. No with HEADWAY_CHECK=on, or if
  /// HEADWAY_TRANSFER fixes a path with keys.
  bool holds_copy(std::span<const std::byte> memory, std::uint64_t times) const;
  /// Counts the bytes of these copies: at most SizeConstants::held_bytes_max.
  void hold(std::size_t bytes) { held_bytes_ += bytes; }
  void release_held(std::size_t bytes) { held_bytes_ -= bytes; }

  /// Enters memory in the table. The runtime calls `done` after `times` uses by other PEs.
  rma::BufferKey expose(ExposedAs as, std::span<const std::byte> memory, std::uint64_t times, am::WhenDone done);
  /// Removes memory from the table. A later use by another PE is an error.
  void withdraw(std::uint64_t number);

  // --- content of messages

  SendPath send_path(std::size_t destination, std::span<const std::byte> content, bool posts) override;
  void learn_sent(std::span<const std::byte> content, std::int64_t ns) override;
  rma::BufferKey expose_content(SendPath path, std::span<const std::byte> content, std::uint64_t checksum,
                                am::WhenDone done) override;
  std::uint64_t checksum_of(std::span<const std::byte> content) const override;
  void check(const rma::BufferKey& key) override;
  const std::byte* mapped(const rma::BufferKey& key) override;
  std::optional<std::int64_t> fetch_now(const rma::BufferKey& key, std::byte* to, bool may_pull) override;
  void fetch_later(const rma::BufferKey& key, std::weak_ptr<void> owner, std::function<std::byte*()> begin,
                   std::function<void()> finished) override;
  void tell_used(const rma::BufferKey& key, std::int64_t ns) override;
  void require_unchanged(const rma::BufferKey& key, std::span<const std::byte> content,
                         std::uint64_t checksum) const override;

  // --- between memory

  struct Copied {
    bool done = false;
    bool timed = false;  // the copy, or the later get in pieces, is measured
    std::int64_t ns = not_timed;
  };
  /// Copies the content at once if that is possible and pieces have not been faster: the caller then calls
  /// tell_get_done(), else get_later(). UsageError if the content does not fit, FormatError for an invalid key.
  Copied get_now(const rma::BufferKey& from, std::span<std::byte> to);
  void tell_get_done(const rma::BufferKey& from, const Copied& copied) {
    send_used(from, ExposedAs::source, copied.ns);
  }
  void get_later(const rma::BufferKey& from, std::span<std::byte> to, const Copied& copied, am::WhenDone done);
  void put(std::span<const std::byte> from, const rma::BufferKey& to, am::WhenDone done);

  std::int64_t now() const { return pe_->engine().now(); }

 private:
  struct Exposure {
    Exposure(ExposedAs a, std::span<const std::byte> m, std::uint64_t times, std::uint64_t sum, am::WhenDone d)
        : as(a), memory(m), left(times), checksum(sum), done(std::move(d)) {}

    ExposedAs as;
    std::span<const std::byte> memory;
    std::uint64_t left;
    std::uint64_t checksum;
    am::WhenDone done;
    bool measures_send = false;                   // mapped_sends_ learns the time of its use
    std::optional<std::size_t> ring_write;        // a RingWrite, since the first request for the ring
    transport::ExposedMemory* exposed = nullptr;  // to the network, since the first request
    std::vector<std::byte> network_key{};
  };
  struct Pull {
    rma::BufferKey key;
    am::ScopeId scope;
    bool for_message;  // the content of a message, not a get
    std::weak_ptr<void> owner;
    std::byte* to = nullptr;
    std::function<std::byte*()> begin;  // empty, or returns `to`, before the first request
    am::WhenDone finished;
    std::uint64_t requested = 0, received = 0;
    std::int64_t begin_ns = 0;
    bool timed = true, begun = false, by_network = false;
  };
  struct Push {
    rma::BufferKey key;
    am::ScopeId scope;
    const std::byte* from;
    std::uint64_t sent = 0, in_place = 0;
    am::WhenDone done;
    transport::ExposedMemory* exposed = nullptr;  // to the network, if that moves it
  };
  struct ControlMessage;
  struct ControlAggregators;

  rma::Reach& reach() const {
    if (reach_ == nullptr) reach_ = &rma::Reach::of(*pe_);
    return *reach_;
  }
  std::uint64_t piece_bytes(std::size_t other) const {
    return is_on_host(other) ? sizes_.piece_bytes_within_host : sizes_.piece_bytes_between_hosts;
  }
  void handle_control(PeId source, const ControlMessage& message, std::span<const std::byte> content);
  void send_control(std::size_t to, const ControlMessage& message, std::span<const std::byte> content = {});
  void send_piece(std::size_t to, const ControlMessage& message, std::span<const std::byte> content = {});
  bool is_on_host(std::size_t other) const { return host_.contains(other); }
  Exposure& find_exposure(PeId source, const ControlMessage& message, ExposedAs as);
  void handle_want(PeId source, const ControlMessage& message);
  std::byte* piece_destination(PeId source, const ControlMessage& message, std::uint64_t bytes);
  void received(std::uint64_t number, std::uint64_t bytes);
  void handle_piece(PeId source, const ControlMessage& message, std::span<const std::byte> content);
  void handle_pipelined(PeId source, const ControlMessage& message);
  void continue_reading(std::uint64_t number, std::uint64_t bytes, PipelinedRead read);
  PipelinedRead pipelined_read(const Pull& pull, std::uint64_t at, std::uint64_t offset, std::uint64_t bytes);
  void handle_put(PeId source, const ControlMessage& message, std::span<const std::byte> content);
  void handle_small_put(PeId source, const ControlMessage& message, std::span<const std::byte> content);
  void handle_in_place(PeId source, const ControlMessage& message);
  void handle_used(PeId source, const ControlMessage& message);
  void learn(const Exposure& exposure, PeId source, std::int64_t ns);
  void pull(Pull pull);
  void begin_pull(Pull& pull);
  void mark_transfer(model::trace::MarkEnd end, const rma::BufferKey& key, std::uint64_t number);
  void request_more();
  void send_more_puts();
  bool uses_network(std::size_t other, std::uint64_t bytes) const;
  void handle_open(PeId source, const ControlMessage& message);
  void handle_opened(PeId source, const ControlMessage& message, std::span<const std::byte> key);
  void handle_take(PeId source, const ControlMessage& message, std::span<const std::byte> key);
  bool read_over_network(PeId source, std::span<const std::byte> key, std::span<std::byte> to,
                         std::function<void()> then);
  void end_pull(std::uint64_t number);
  void run_done(am::WhenDone done);
  void close(transport::ExposedMemory*& exposed);
  /// Bytes of the window that a transfer by the network occupies.
  std::uint64_t window_bytes(const rma::BufferKey& key) const {
    return std::min<std::uint64_t>(sizes_.request_bytes(), key.bytes);
  }
  bool is_in_scope(am::ScopeId scope, bool& comes_later, void (Transfers::*more)());
  void hold_scope_open(am::ScopeId scope);
  void release_scope(am::ScopeId scope);
  [[noreturn]] void refuse_late_content(const Pull& pull);
  void send_used(const rma::BufferKey& key, ExposedAs as, std::int64_t ns, bool refused = false);
  Copied copy_in(const rma::BufferKey& key, std::byte* to, bool may_pull);
  void remove(std::uint64_t number, Exposure& exposure);
  bool is_mapped_by(std::size_t destination, std::span<const std::byte> content) const;

  Pe* pe_;
  const base::SizeConstants& sizes_;
  mutable rma::Reach* reach_ = nullptr;  // set at the first use: extensions are made in any order
  transport::PeRange host_;              // the PEs of this host
  base::TransferPath path_;
  bool checks_;
  std::size_t held_bytes_ = 0;
  std::unique_ptr<Pipeline> pipeline_;
  NumberedTable<Exposure> exposures_;
  NumberedTable<Pull> pulls_;
  NumberedTable<Push> pushes_;
  /// Transfers that are not completely requested or sent. Each keeps its scope open.
  Turns pulls_to_request_{sizes_.window_bytes}, pushes_to_send_{sizes_.window_bytes};
  bool requests_later_ = false, pushes_later_ = false;  // a call in the scope of the first transfer is registered
  rma::FastestPath<2> mapped_sends_;                    // with the message, by key
  rma::FastestPath<4> gets_;
  rma::FastestPath<2> ring_writes_;  // of content that the owner writes to the ring
  bool network_refuses_ = false;
  std::unique_ptr<ControlAggregators> control_;  // last member: its handler uses the others
};

}  // namespace headway::transfer
