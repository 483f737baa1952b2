// SPDX-License-Identifier: BSD-3-Clause
/// One-sided transfers: get from a Source, put to a Destination.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <headway/am/future.hpp>
#include <headway/am/pe.hpp>
#include <headway/base/copy.hpp>
#include <headway/base/sendable.hpp>
#include <headway/rma/buffer_key.hpp>
#include <headway/rma/pooled_array.hpp>
#include <headway/transfer/remote_source.hpp>
#include <headway/transfer/send_buffer.hpp>
#include <headway/transfer/transfers.hpp>
#include <span>
#include <type_traits>
#include <utility>

namespace headway {

/// The name of a Destination, which travels in messages.
template <class T>
struct RemoteDestination {
  rma::BufferKey key;
  std::size_t size() const { return key.bytes / sizeof(T); }
};

namespace transfer {

/// UsageError: a Source or Destination for 0 transfers.
[[noreturn]] void refuse_no_uses(const char* what);

/// The common base of Source and Destination.
template <class T, ExposedAs as>
class Exposed {
  static_assert(FixedSize<T>, "headway: elements of a get or put are trivially copyable and contain no address");

 public:
  using Memory = std::span<std::conditional_t<as == ExposedAs::destination, T, const T>>;
  using Remote = std::conditional_t<as == ExposedAs::destination, RemoteDestination<T>, RemoteSource<T>>;

  /// Short content is copied into the name. `done` then runs at the next progress.
  template <class Done>
  Exposed(Pe& pe, Memory memory, std::uint64_t times, Done done)
      : transfers_(is_short(memory) ? nullptr : &Transfers::of(pe)) {
    if (times == 0) refuse_no_uses(as == ExposedAs::destination ? "a Destination for 0 puts" : "a Source for 0 gets");
    if (holds_copy(memory, times)) {
      hold_copy(pe, memory, std::move(done));
    } else {
      name(transfers_->expose(as, std::as_bytes(memory), times, std::move(done)));
    }
  }
  Exposed(Exposed&& other) noexcept
      : transfers_(std::exchange(other.transfers_, nullptr)),
        number_(other.number_),
        held_bytes_(other.held_bytes_),
        remote_(std::move(other.remote_)) {}
  Exposed& operator=(Exposed&& other) noexcept {
    Exposed taken(std::move(other));
    std::swap(transfers_, taken.transfers_);
    std::swap(number_, taken.number_);
    std::swap(held_bytes_, taken.held_bytes_);
    std::swap(remote_, taken.remote_);
    return *this;
  }
  ~Exposed() {
    if (transfers_ == nullptr) return;
    if (held_bytes_ != 0)
      transfers_->release_held(held_bytes_);
    else
      transfers_->withdraw(number_);
  }

  const Remote& remote() const { return remote_; }

 private:
  static bool is_short(Memory memory) {
    return as == ExposedAs::source && memory.size_bytes() <= SourceContent::inside_bytes_max;
  }
  bool holds_copy(Memory memory, std::uint64_t times) const {
    if (transfers_ == nullptr) return true;
    return as == ExposedAs::source && transfers_->holds_copy(std::as_bytes(memory), times);
  }
  template <class Done>
  void hold_copy(Pe& pe, Memory memory, Done done) {
    if constexpr (as == ExposedAs::source) {
      remote_.hold(pe.id(), std::as_bytes(memory));
      end_later(pe, std::move(done));
      if (transfers_ != nullptr) transfers_->hold(held_bytes_ = memory.size_bytes());
    }
  }
  void name(const rma::BufferKey& key) {
    number_ = key.number;
    if constexpr (as == ExposedAs::source)
      remote_.hold(key);
    else
      remote_.key = key;
  }
  static void end_later(Pe&, Promise<> done) { done.set_later(); }
  template <class Done>
  static void end_later(Pe& pe, Done done) {
    pe.engine().keep_open_and_run_later(pe.engine().scope(), std::move(done));
  }

  Transfers* transfers_;
  std::uint64_t number_ = 0;
  std::size_t held_bytes_ = 0;  // of the heap copy in remote_
  Remote remote_{};
};

/// UsageError: the content does not fit.
[[noreturn]] void refuse_get(std::size_t pe, std::size_t bytes, std::size_t room);

/// False if the name does not hold the content.
template <class T>
bool get_short(const RemoteSource<T>& from, std::span<T> to) {
  if (!from.is_short()) return false;
  const std::span<const std::byte> content = from.content();
  if (to.size_bytes() < content.size()) refuse_get(from.pe(), content.size(), to.size_bytes());
  base::copy_received(std::as_writable_bytes(to).data(), content.data(), content.size());
  return true;
}

template <class T, class Done>
void get(Pe& pe, const RemoteSource<T>& from, std::span<T> to, Done& done) {
  const auto tell = [&done] {
    if constexpr (std::is_same_v<Done, Promise<>>)
      done.set();
    else
      done();
  };
  if (get_short(from, to)) return tell();
  Transfers& transfers = Transfers::of(pe);
  const rma::BufferKey key = from.key();
  const std::span<std::byte> bytes = std::as_writable_bytes(to);
  const Transfers::Copied copied = transfers.get_now(key, bytes);
  if (!copied.done) return transfers.get_later(key, bytes, copied, std::move(done));
  tell();  // before the control message: the program may have an answer to send
  transfers.tell_get_done(key, copied);
}

}  // namespace transfer

/// Memory of this PE that other PEs get(), `gets` times in all. The program neither changes nor frees it before. The
/// runtime then calls `done`, or sets it if it is a Promise<>.
///
/// A short Source is copied into its name, and `done` comes at the next progress; the runtime does not count its gets.
/// Short is a Source of up to 192 bytes. For one get it is also one of up to 16 KiB, or 512 bytes if all PEs have it
/// mapped, while these copies take at most 4 MiB (RemoteSource::is_short()). Other Sources must live until `done`: a
/// get from a destroyed one ends the run with an error.
///
///     headway::Source<double> source(pe, field, [&] { reuse(field); });
///     wanted.send(dest, source.remote());
template <class T>
class Source : public transfer::Exposed<T, transfer::ExposedAs::source> {
  using Exposed = transfer::Exposed<T, transfer::ExposedAs::source>;

 public:
  Source(Pe& pe, std::span<const T> memory, Promise<> done, std::uint64_t gets = 1)
      : Exposed(pe, memory, gets, std::move(done)) {}
  template <class Done>
  requires std::is_invocable_v<Done&> Source(Pe& pe, std::span<const T> memory, Done done, std::uint64_t gets = 1)
      : Exposed(pe, memory, gets, std::move(done)) {}
};

/// Memory of this PE into which other PEs put(), `puts` times in all. The runtime calls `done`, or sets it, when the
/// content of all puts has arrived. A put into a destroyed Destination ends the run with an error.
template <class T>
class Destination : public transfer::Exposed<T, transfer::ExposedAs::destination> {
  using Exposed = transfer::Exposed<T, transfer::ExposedAs::destination>;

 public:
  Destination(Pe& pe, std::span<T> memory, Promise<> done, std::uint64_t puts = 1)
      : Exposed(pe, memory, puts, std::move(done)) {}
  template <class Done>
  requires std::is_invocable_v<Done&> Destination(Pe& pe, std::span<T> memory, Done done, std::uint64_t puts = 1)
      : Exposed(pe, memory, puts, std::move(done)) {}
};

/// Copies all of a Source to the beginning of `to`, which must live until the future is set. UsageError if it does not
/// fit. A call from a handler never waits; one from the main program may. Epochs and quiesce() wait for the content,
/// and until the owner has been told.
template <class T>
Future<> get(Pe& pe, const RemoteSource<T>& from, std::type_identity_t<std::span<T>> to) {
  Promise<> done(pe);
  Future<> future = done.future();
  transfer::get(pe, from, to, done);
  return future;
}
/// The same with a callable done(), which runs like a continuation of a Future.
template <class T, class Done>
void get(Pe& pe, const RemoteSource<T>& from, std::type_identity_t<std::span<T>> to, Done done) {
  transfer::get(pe, from, to, done);
}

/// Copies `from` to the beginning of a Destination. The future is set when the program may change `from`. UsageError if
/// it does not fit. Waits as get() does.
template <class T>
Future<> put(Pe& pe, std::type_identity_t<std::span<const T>> from, const RemoteDestination<T>& to) {
  Promise<> done(pe);
  Future<> future = done.future();
  transfer::Transfers::of(pe).put(std::as_bytes(from), to.key, std::move(done));
  return future;
}
template <class T, class Done>
void put(Pe& pe, std::type_identity_t<std::span<const T>> from, const RemoteDestination<T>& to, Done done) {
  transfer::Transfers::of(pe).put(std::as_bytes(from), to.key, std::move(done));
}

}  // namespace headway
