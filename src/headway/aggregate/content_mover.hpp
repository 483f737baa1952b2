// SPDX-License-Identifier: BSD-3-Clause
/// The aggregator's interface to the layer transfer: zero-copy content of messages. The sender sends a key; the
/// receiver fetches the content by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/am/engine.hpp>
#include <headway/am/when_done.hpp>
#include <headway/rma/buffer_key.hpp>
#include <headway/transport/frame.hpp>
#include <memory>
#include <optional>
#include <span>

namespace headway::aggregate {

/// One per PE; used on the PE's thread. The layer transfer implements it, for programs that use that layer.
class ContentMover : public am::Extension {
 public:
  /// The PE's mover; nullptr where the program does not contain the layer transfer.
  static inline ContentMover& (*if_linked)(Pe& pe) = nullptr;

  // --- the sender

  /// Content that is not longer fits an eager slot with its message.
  static constexpr std::size_t in_eager_slot_bytes_max = std::size_t(4) << 10;
  static_assert(in_eager_slot_bytes_max + 32 <= transport::in_place_bytes_most);
  /// Shorter content travels inside its message: the copy costs less than a key and its answer. A receiver that `posts`
  /// memory copies content twice then. Longer content may travel inside its message, too: send_path().
  static constexpr std::size_t keyed_bytes_min(bool posts) {
    return posts ? std::size_t(2) << 10 : in_eager_slot_bytes_max + 1;
  }
  struct SendPath {
    bool by_key;
    bool timed;  // the sender measures this path: learn_sent(), or the key asks the receiver for the time
  };
  /// How content for `destination` travels. `posts`: the receiver copies it to memory that its program posts.
  virtual SendPath send_path(std::size_t destination, std::span<const std::byte> content, bool posts) = 0;
  /// Nanoseconds that both PEs took to copy content that travelled inside its message.
  virtual void learn_sent(std::span<const std::byte> content, std::int64_t ns) = 0;
  /// The key of content that is sent by key. `done` is called when the receiver needs the memory no longer.
  virtual rma::BufferKey expose_content(SendPath path, std::span<const std::byte> content, std::uint64_t checksum,
                                        am::WhenDone done) = 0;
  /// A checksum for require_unchanged(); 0 where HEADWAY_CHECK is off.
  virtual std::uint64_t checksum_of(std::span<const std::byte> content) const = 0;

  // --- the receiver

  static constexpr std::int64_t not_timed = 0, read_in_place = 1;
  /// FormatError for an invalid key.
  virtual void check(const rma::BufferKey& key) = 0;
  /// The content, if this process has it mapped; else nullptr. FormatError for an invalid key.
  virtual const std::byte* mapped(const rma::BufferKey& key) = 0;
  /// Copies the content to `to` and returns the nanoseconds for tell_used(). Nothing if it cannot be copied at once or,
  /// with `may_pull`, if fetch_later() has been faster.
  virtual std::optional<std::int64_t> fetch_now(const rma::BufferKey& key, std::byte* to, bool may_pull) = 0;
  /// Fetches the content in pieces to begin(), which is called before the first piece is asked for; then calls
  /// finished(). UsageError if `owner` is destroyed before.
  virtual void fetch_later(const rma::BufferKey& key, std::weak_ptr<void> owner, std::function<std::byte*()> begin,
                           std::function<void()> finished) = 0;
  /// Tells the sender that this PE needs its content no longer. `ns`: how long the copy took, or one of the constants.
  virtual void tell_used(const rma::BufferKey& key, std::int64_t ns) = 0;
  /// UsageError if the checksum of the fetched content is not `checksum`.
  virtual void require_unchanged(const rma::BufferKey& key, std::span<const std::byte> content,
                                 std::uint64_t checksum) const = 0;
};

}  // namespace headway::aggregate
