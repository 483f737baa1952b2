// SPDX-License-Identifier: BSD-3-Clause
/// Reads and writes memory of any PE with the operations of Split-C: read, write, get, put, store and sync.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <headway/aggregate/aggregator.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/copy_large.hpp>
#include <headway/global/places.hpp>
#include <headway/global/pointer.hpp>
#include <headway/global/requests.hpp>
#include <headway/global/words.hpp>
#include <memory>
#include <span>
#include <vector>

namespace headway {

struct GlobalOptions {
  /// Of the messages. Idle PEs send open buffers in any case.
  AggregatorOptions aggregation = {};
  /// False: memory of other PEs is reached by messages only, even where it could be mapped.
  bool mapped = true;
};

namespace global {

/// Blocks of elements. The distance between the first elements of two neighbouring blocks is `stride` elements.
struct Strides {
  std::size_t block = 1, stride = 1, count = 0;
};

}  // namespace global

/// A PE's access to memory of all PEs by GlobalPtr. Memory of PEs of the same host is loaded and stored directly.
/// Requests for other memory, and their answers, are aggregated messages. Words (1, 2, 4, 8 bytes) are read and written
/// whole.
///
///     headway::GlobalMemory memory(pe);
///     headway::DistArray<std::uint64_t> table(pe, n);
///     headway::barrier(pe);                                // all PEs have made their part
///     for (std::size_t i = 0; i < k; ++i) memory.get(table[index[i]], &value[i]);
///     memory.sync();                                       // all values have arrived
///
///     read, write     return when the value has arrived, or is in place
///     get, put        return at once; sync() waits for them
///     store           returns at once; the owner counts the bytes, and quiesce() waits for all stores
///     fetch           read for coroutines: co_await memory.fetch(p)
///
/// Every PE makes it, in the same order. Before sync() the calls have no order among each other. Calls that wait run
/// handlers meanwhile, and are a UsageError inside a handler. Call quiesce() before it is destroyed.
class GlobalMemory {
 public:
  explicit GlobalMemory(Pe& pe, const GlobalOptions& options = {});
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;
  ~GlobalMemory();

  /// The address in this process; nullptr where the memory is reached by messages.
  template <class T>
  T* local(GlobalPtr<T> p) const {
    return local(p, bases_);
  }

  // --- one value

  template <class T>
  [[nodiscard]] T read(GlobalPtr<T> p) {
    if (const T* at = local_value(p, bases_)) return global::load(at);
    T value;
    if constexpr (global::is_word<T>) {
      const std::uint64_t word = wait_for_word(p.pe(), p.offset(), sizeof(T));
      std::memcpy(&value, &word, sizeof value);
    } else {
      get(p, &value);
      wait_for_gets();
    }
    return value;
  }
  /// read(places[i]) for loops: loads a mapped element without building a pointer first.
  template <class T>
  [[nodiscard]] T read(const global::Places<T>& places, std::size_t i) {
    const auto [pe, offset] = places.find(i);
    if constexpr (global::is_word<T>) {
      if (pe < bases_.size()) [[likely]] {
        if (const T* at = bases_.find<T>(pe, offset)) return global::load(at);
      }
    }
    return read(GlobalPtr<T>(pe, offset));
  }

  /// *to has the value after sync(), and must live until then.
  template <class T>
  void get(GlobalPtr<T> p, T* to) {
    if (const T* at = local_value(p, get_bases_)) {
      *to = global::load(at);
    } else if constexpr (global::is_word<T>) {
      get_word(p.pe(), p.offset(), to, sizeof(T));
    } else {
      get_bytes(p.pe(), p.offset(), reinterpret_cast<std::byte*>(to), sizeof(T));
    }
  }

  /// Returns when the value, and all puts before it, are in place.
  template <class T>
  void write(GlobalPtr<T> p, const T& value) {
    if (T* at = local_value(p, bases_)) return global::save(at, value);
    put(p, value);
    sync();
  }

  template <class T>
  void put(GlobalPtr<T> p, const T& value) {
    if (T* at = local_value(p, bases_)) return global::save(at, value);
    if constexpr (global::is_word<T>)
      put_word(p.pe(), p.offset(), global::word_of(value), sizeof(T), false);
    else
      put_bytes(p.pe(), p.offset(), std::as_bytes(std::span(&value, 1)), false);
  }

  /// As put(), but the owner counts the bytes (stored_bytes()), and sync() does not wait for it.
  template <class T>
  void store(GlobalPtr<T> p, const T& value) {
    if constexpr (global::is_word<T>)
      put_word(p.pe(), p.offset(), global::word_of(value), sizeof(T), true);
    else
      put_bytes(p.pe(), p.offset(), std::as_bytes(std::span(&value, 1)), true);
  }

  // --- contiguous values

  template <class T>
  void get(GlobalPtr<T> p, std::span<T> to) {
    if (const T* at = local_bytes(p, bases_, to.size_bytes()))
      base::copy_bytes(std::as_writable_bytes(to).data(), reinterpret_cast<const std::byte*>(at), to.size_bytes());
    else
      get_bytes(p.pe(), p.offset(), reinterpret_cast<std::byte*>(to.data()), to.size_bytes());
  }
  template <class T>
  void put(GlobalPtr<T> p, std::span<const std::type_identity_t<T>> values) {
    if (T* at = local_bytes(p, bases_, values.size_bytes()))
      base::copy_bytes(reinterpret_cast<std::byte*>(at), std::as_bytes(values).data(), values.size_bytes());
    else
      put_bytes(p.pe(), p.offset(), std::as_bytes(values), false);
  }
  template <class T>
  void store(GlobalPtr<T> p, std::span<const std::type_identity_t<T>> values) {
    put_bytes(p.pe(), p.offset(), std::as_bytes(values), true);
  }

  // --- values that are scattered on their PE and contiguous in the span

  /// `count` blocks of `block` elements, `stride` elements apart, from p on. They may overlap.
  ///
  ///     memory.get_strided(p, {.block = 2, .stride = n, .count = n}, std::span(two_columns));
  template <class T>
  void get_strided(GlobalPtr<T> p, const global::Strides& strides, std::span<T> to) {
    get_blocks(p.pe(), blocks_of(p, strides, to.size(), false), {}, std::as_writable_bytes(to).data());
  }
  /// As get_strided(); the blocks must not overlap.
  template <class T>
  void put_strided(GlobalPtr<T> p, const global::Strides& strides, std::span<const std::type_identity_t<T>> values) {
    put_blocks(p.pe(), blocks_of(p, strides, values.size(), true), {}, std::as_bytes(values));
  }
  /// p[indices[i]] for each i. The call has read the indices when it returns.
  template <class T>
  void get_indexed(GlobalPtr<T> p, std::span<const std::uint64_t> indices, std::span<T> to) {
    get_blocks(p.pe(), blocks_of(p, indices, to.size()), indices, std::as_writable_bytes(to).data());
  }
  /// If an index appears twice, either value remains.
  template <class T>
  void put_indexed(GlobalPtr<T> p, std::span<const std::uint64_t> indices,
                   std::span<const std::type_identity_t<T>> values) {
    put_blocks(p.pe(), blocks_of(p, indices, values.size()), indices, std::as_bytes(values));
  }

  // --- atomic operations on integers of 4 or 8 bytes

  /// Returns at once; sync() waits for it.
  template <class T>
  void add(GlobalPtr<T> p, T value) {
    check_atomic<T>();
    if (T* at = local(p))
      std::atomic_ref(*at).fetch_add(value, std::memory_order_relaxed);
    else
      change_word(p.pe(), p.offset(), global::Operation::add, sizeof(T), global::word_of(value));
  }
  /// These wait for, and return, the old value.
  template <class T>
  T fetch_add(GlobalPtr<T> p, T value) {
    check_atomic<T>();
    if (T* at = local(p)) return std::atomic_ref(*at).fetch_add(value, std::memory_order_relaxed);
    return T(change_and_wait(p.pe(), p.offset(), global::Operation::add, sizeof(T), global::word_of(value), 0));
  }
  template <class T>
  T exchange(GlobalPtr<T> p, T value) {
    check_atomic<T>();
    if (T* at = local(p)) return std::atomic_ref(*at).exchange(value, std::memory_order_acq_rel);
    return T(change_and_wait(p.pe(), p.offset(), global::Operation::exchange, sizeof(T), global::word_of(value), 0));
  }
  /// Writes `desired` if the old value is `expected`.
  template <class T>
  T compare_exchange(GlobalPtr<T> p, T expected, T desired) {
    check_atomic<T>();
    if (T* at = local(p)) {
      std::atomic_ref(*at).compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
      return expected;
    }
    return T(change_and_wait(p.pe(), p.offset(), global::Operation::compare_exchange, sizeof(T),
                             global::word_of(desired), global::word_of(expected)));
  }

  // --- waiting

  /// Returns when the values of all gets of this PE have arrived, and its puts and adds are in place. Not collective.
  /// Takes a round trip to each PE that it put to.
  void sync();

  /// Bytes that store() of any PE has written to this PE's pool.
  std::uint64_t stored_bytes() const { return stored_bytes_; }
  /// Waits for `bytes` more than at the last call of wait_for_stores(), or at the beginning.
  void wait_for_stores(std::uint64_t bytes);

  /// The awaitable of fetch(). The handler of the answer resumes the coroutine, unless it was destroyed.
  template <class T>
  class Fetch;
  template <class T>
  [[nodiscard]] Fetch<T> fetch(GlobalPtr<T> p) {
    static_assert(global::is_word<T>, "headway: fetch() takes values of 1, 2, 4 or 8 bytes; use get() for others");
    return Fetch<T>(*this, p);
  }

  /// For each kind of message, requests and answers: what this PE has sent and handled.
  std::array<AggregatorStatistics, 11> statistics() const;
  /// The aggregation options in use.
  const AggregatorOptions& aggregation() const { return batches_wanted_.options(); }

 private:
  using Waiting = global::Waiting;
  using Pending = global::Pending;
  using Wanted = global::Wanted;
  using Batch = global::Batch;
  using Word = global::Word;
  using WordPut = global::WordPut;
  using WordChange = global::WordChange;
  using SyncWanted = global::SyncWanted;
  using Synced = global::Synced;
  using Blocks = global::Blocks;
  using Transfer = global::Transfer;
  using Bases = global::Bases;
  using Bytes = std::span<const std::byte>;
  using Offsets = std::span<const std::uint64_t>;

  static constexpr std::uint32_t none = Pending::none, for_waiting = Pending::for_waiting,
                                 for_batch = Pending::for_batch, is_piece = Wanted::is_piece,
                                 batch_max = Batch::words_max;
  static constexpr std::uint64_t is_store = WordPut::is_store;
  static constexpr unsigned bytes_shift = WordPut::bytes_shift;
  static constexpr std::size_t piece_bytes = 16_KiB, pieces_bytes_max = 1_MiB, gets_max = 1 << 15;

  template <class T>
  static constexpr void check_atomic() {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                  "headway: atomic operations take integers of 4 or 8 bytes");
  }
  template <class T>
  T* local(GlobalPtr<T> p, const Bases& bases) const {
    const PeId pe = p.pe();
    if (pe >= bases.size()) [[unlikely]]
      refuse_pointer(pe);
    return bases.find<T>(pe, p.offset());
  }
  /// The same for `bytes` bytes. UsageError where the pool is mapped and they lie outside. All pools of one host have
  /// one length.
  template <class T>
  T* local_bytes(GlobalPtr<T> p, const Bases& bases, std::size_t bytes) const {
    T* const at = local(p, bases);
    if (at != nullptr && (bytes > own_.size() || p.offset() > own_.size() - bytes)) [[unlikely]]
      refuse_bytes(p.pe(), p.offset(), bytes);
    return at;
  }
  /// The same for one value. Words are not checked, because the check would cost more than the access.
  template <class T>
  T* local_value(GlobalPtr<T> p, const Bases& bases) const {
    if constexpr (global::is_word<T>)
      return local(p, bases);
    else
      return local_bytes(p, bases, sizeof(T));
  }
  [[noreturn]] void refuse_pointer(PeId pe) const;
  [[noreturn]] void refuse_bytes(PeId pe, std::uint64_t offset, std::size_t bytes) const;

  /// UsageError where the arguments do not describe `values` elements.
  template <class T>
  static Blocks blocks_of(GlobalPtr<T> p, const global::Strides& strides, std::size_t values, bool put) {
    check_strides(strides, values, sizeof(T), put);
    return {p.offset(), strides.stride * sizeof(T), strides.block * sizeof(T), values == 0 ? 0 : strides.count};
  }
  template <class T>
  static Blocks blocks_of(GlobalPtr<T> p, Offsets indices, std::size_t values) {
    check_indices(indices.size(), values);
    return {p.offset(), sizeof(T), sizeof(T), values};
  }
  static void check_strides(const global::Strides& strides, std::size_t values, std::size_t element_bytes, bool put);
  static void check_indices(std::size_t indices, std::size_t values);

  /// Takes the slot that has been free for the longest time. Answers arrive about in the order of their requests, so
  /// neighbouring slots are used one after the other. The last free slot is never taken.
  std::uint32_t take_slot(void* to, std::uint32_t bytes) {
    if (first_free_ == last_free_) grow_pending();
    const std::uint32_t slot = first_free_;
    Pending& pending = pending_[slot];
    first_free_ = pending.next;
    pending = {to, bytes, 0};
    return slot;
  }
  void free_slot(std::uint32_t slot) {
    pending_[slot].bytes = 0;
    pending_[last_free_].next = slot;
    last_free_ = slot;
  }
  void get_word(PeId pe, std::uint64_t offset, void* to, std::uint32_t bytes) {
    Batch* batch = open_[pe];
    if (batch == nullptr || batch->count == batch_max || batch->bytes != bytes) [[unlikely]]
      batch = next_batch(pe, bytes);
    batch->offsets[batch->count] = offset;
    batch->to[batch->count] = to;
    ++batch->count;
  }
  void note_put(PeId pe) {
    global::PutsTo& puts = puts_to_[pe];
    if (puts.sent == puts.asked) put_to_.push_back(pe);
    ++puts.sent;
  }
  void put_word(PeId pe, std::uint64_t offset, std::uint64_t word, std::size_t bytes, bool store) {
    if (!store) note_put(pe);
    const auto log2 = std::uint64_t(std::countr_zero(bytes));
    words_put_.send(pe, {offset | log2 << bytes_shift | (store ? is_store : 0), word});
  }

  void give_word(const Word& answer);
  void give_bytes(std::uint64_t slot, Bytes bytes);
  void grow_pending();
  const Pending& pending_at(std::uint64_t slot) const;
  Batch* next_batch(PeId pe, std::uint32_t bytes);
  void send_batch(PeId pe);
  void send_batches();
  void give_batch(Batch& batch, Bytes words);
  void combine(Batch& batch);
  Bytes gather(Offsets offsets, std::size_t bytes, std::span<std::uint64_t, batch_max> words) const;
  void get_bytes(PeId pe, std::uint64_t offset, std::byte* to, std::size_t bytes);
  void ask_for_pieces();
  void ask_for_blocks(Transfer& transfer);
  std::byte* find_blocks(PeId pe, const Blocks& blocks, Offsets indices) const;
  void get_blocks(PeId pe, const Blocks& blocks, Offsets indices, std::byte* to);
  void put_blocks(PeId pe, const Blocks& blocks, Offsets indices, Bytes values);
  std::byte* checked(const Blocks& blocks, Offsets indices) const;
  void answer_blocks(PeId source, std::uint64_t slot, const Blocks& blocks, Offsets indices);
  void apply_blocks(PeId source, const Blocks& blocks, Offsets indices, Bytes values);
  void put_bytes(PeId pe, std::uint64_t offset, Bytes bytes, bool store);
  void change_word(PeId pe, std::uint64_t offset, global::Operation operation, std::size_t bytes,
                   std::uint64_t operand);
  std::uint64_t change_and_wait(PeId pe, std::uint64_t offset, global::Operation operation, std::size_t bytes,
                                std::uint64_t operand, std::uint64_t expected);
  std::uint64_t wait_for_word(PeId pe, std::uint64_t offset, std::uint32_t bytes);
  void begin_fetch(Waiting& waiting, std::uint32_t& slot, PeId pe, std::uint64_t offset, std::uint32_t bytes);
  void wait_for(const Waiting& waiting, PeId pe);
  void wait_for_gets();
  void wait_for_some_gets();
  std::byte* checked(std::uint64_t offset, std::size_t bytes, bool word) const;
  void apply_put(PeId source, const WordPut& put);
  void apply_change(PeId source, const WordChange& change);
  void count_put(PeId source);

  Pe* pe_;
  Bases bases_;
  /// The same for get(). If some PEs are reached by messages, this PE's own memory is too, in batches: a branch on the
  /// owner would be mispredicted, which costs 5 ns per get at two PEs.
  Bases get_bases_;
  std::vector<Batch*> open_;  // by PE; nullptr: none
  std::vector<std::unique_ptr<Batch>> batches_;
  std::vector<Batch*> spare_;
  std::span<std::byte> own_;
  std::vector<Pending> pending_ = std::vector<Pending>(1);
  std::uint32_t first_free_ = 0, last_free_ = 0;
  std::uint64_t gets_in_flight_ = 0;
  std::uint32_t batches_sent_ = 0;
  bool combines_ = false;  // each different word of a batch is requested once
  std::deque<Transfer> transfers_;
  std::size_t pieces_in_flight_bytes_ = 0;
  std::vector<std::byte> gathered_;          // blocks for the answer to another PE
  std::vector<global::PutsTo> puts_to_;      // by target
  std::vector<PeId> put_to_;                 // targets with puts after the last sync()
  std::vector<global::PutsFrom> puts_from_;  // by source
  std::uint64_t stored_bytes_ = 0, stored_taken_ = 0;

  Aggregator<Wanted> wanted_;
  Aggregator<Word> words_;
  Aggregator<std::uint64_t, Offsets> batches_wanted_;
  Aggregator<WordPut> words_put_;
  Aggregator<std::uint64_t, Bytes> bytes_, bytes_put_;
  Aggregator<WordChange> changes_;
  Aggregator<Blocks, std::uint64_t, Offsets> blocks_wanted_;
  Aggregator<Blocks, Offsets, Bytes> blocks_put_;
  Aggregator<SyncWanted> syncs_wanted_;
  Aggregator<Synced> syncs_;
};

template <class T>
class GlobalMemory::Fetch {
 public:
  Fetch(GlobalMemory& memory, GlobalPtr<T> p) : memory_(&memory), p_(p) {}
  Fetch(const Fetch&) = delete;
  Fetch& operator=(const Fetch&) = delete;
  ~Fetch() {
    if (slot_ != none && !waiting_.done) memory_->pending_[slot_].to = nullptr;
  }

  bool await_ready() {
    const T* const at = memory_->local(p_);
    if (at != nullptr) waiting_.word = global::word_of(global::load(at));
    return at != nullptr;
  }
  void await_suspend(std::coroutine_handle<> coroutine) {
    waiting_.coroutine = coroutine;
    memory_->begin_fetch(waiting_, slot_, p_.pe(), p_.offset(), sizeof(T));
  }
  T await_resume() const {
    T value;
    std::memcpy(&value, &waiting_.word, sizeof value);
    return value;
  }

 private:
  GlobalMemory* memory_;
  GlobalPtr<T> p_;
  Waiting waiting_;
  std::uint32_t slot_ = none;
};

}  // namespace headway
