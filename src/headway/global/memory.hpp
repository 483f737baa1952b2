/// Reading and writing the memory of any PE: Split-C's read, write, get, put, store and sync.
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
#include <memory>
#include <span>
#include <vector>

namespace headway {

struct GlobalOptions {
  AggregatorOptions aggregation = {};  // of what goes by messages; idle PEs send what they have in any case
  /// False: memory of other PEs is reached by messages alone, also where it could be mapped.
  bool mapped = true;
};

namespace global {

/// What fits a word travels as one: 1, 2, 4 or 8 bytes that do not straddle a word.
template <class T>
inline constexpr bool is_word = sizeof(T) <= 8 && std::has_single_bit(sizeof(T));

/// Blocks of elements, each of which begins `stride` elements behind the one before.
struct Strides {
  std::size_t block = 1, stride = 1, count = 0;
};

enum class Operation : std::uint8_t { add, exchange, compare_exchange };

}  // namespace global

/// A PE's access to memory of all PEs, by GlobalPtr. Memory of PEs on the same host is read and written where it lies;
/// all else goes by messages, many to a frame, answers too. Words (1, 2, 4, 8 bytes) are read and written whole.
///
///     headway::GlobalMemory memory(pe);
///     headway::DistArray<std::uint64_t> table(pe, n);
///     headway::barrier(pe);                                // all have made theirs
///     for (std::size_t i = 0; i < k; ++i) memory.get(table[index[i]], &value[i]);
///     memory.sync();                                       // all values are there
///
///     read, write     return when the value is there, or in place
///     get, put        return at once; sync() says when
///     store           returns at once; the owner knows how much came, quiesce() says when all has
///     fetch           the same as read for coroutines: co_await memory.fetch(p)
///
/// Made collectively, in the same order on every PE. None of the calls are ordered among each other before sync().
/// Those that wait run handlers meanwhile and are a UsageError inside one. quiesce() before it is destroyed.
class GlobalMemory {
 public:
  explicit GlobalMemory(Pe& pe, const GlobalOptions& options = {});
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;
  ~GlobalMemory();

  /// Where it lies in this process; nullptr where it is reached by messages.
  template <class T>
  T* local(GlobalPtr<T> p) const {
    return local(p, bases_);
  }

  // --- one value

  template <class T>
  [[nodiscard]] T read(GlobalPtr<T> p) {
    if (const T* at = local_value(p, bases_)) return load(at);
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
  /// read(places[i]), for loops: without a pointer between the index and the load of what is mapped.
  template <class T>
  [[nodiscard]] T read(const Places<T>& places, std::size_t i) {
    const auto [pe, offset] = places.find(i);
    if constexpr (global::is_word<T>) {
      if (pe < bases_.size()) [[likely]] {
        if (const T* at = bases_.find<T>(pe, offset)) return load(at);
      }
    }
    return read(GlobalPtr<T>(pe, offset));
  }

  /// *to holds the value after sync(), and must live until then.
  template <class T>
  void get(GlobalPtr<T> p, T* to) {
    if (const T* at = local_value(p, get_bases_)) {
      *to = load(at);
    } else if constexpr (global::is_word<T>) {
      get_word(p.pe(), p.offset(), to, sizeof(T));
    } else {
      get_bytes(p.pe(), p.offset(), reinterpret_cast<std::byte*>(to), sizeof(T));
    }
  }

  /// Returns when the value is in place. Waits for all puts before it as well.
  template <class T>
  void write(GlobalPtr<T> p, const T& value) {
    if (T* at = local_value(p, bases_)) return save(at, value);
    put(p, value);
    sync();
  }

  template <class T>
  void put(GlobalPtr<T> p, const T& value) {
    if (T* at = local_value(p, bases_)) return save(at, value);
    if constexpr (global::is_word<T>)
      put_word(p.pe(), p.offset(), word_of(value), sizeof(T), false);
    else
      put_bytes(p.pe(), p.offset(), std::as_bytes(std::span(&value, 1)), false);
  }

  /// As put, but the owner counts what has come (stored_bytes()), and sync() does not wait for it.
  template <class T>
  void store(GlobalPtr<T> p, const T& value) {
    if constexpr (global::is_word<T>)
      put_word(p.pe(), p.offset(), word_of(value), sizeof(T), true);
    else
      put_bytes(p.pe(), p.offset(), std::as_bytes(std::span(&value, 1)), true);
  }

  // --- many values, one behind the other

  template <class T>
  void get(GlobalPtr<T> p, std::span<T> to) {
    if (const T* at = local_bytes(p, bases_, to.size_bytes()))
      copy_bytes(std::as_writable_bytes(to).data(), reinterpret_cast<const std::byte*>(at), to.size_bytes());
    else
      get_bytes(p.pe(), p.offset(), reinterpret_cast<std::byte*>(to.data()), to.size_bytes());
  }
  template <class T>
  void put(GlobalPtr<T> p, std::span<const std::type_identity_t<T>> values) {
    if (T* at = local_bytes(p, bases_, values.size_bytes()))
      copy_bytes(reinterpret_cast<std::byte*>(at), std::as_bytes(values).data(), values.size_bytes());
    else
      put_bytes(p.pe(), p.offset(), std::as_bytes(values), false);
  }
  template <class T>
  void store(GlobalPtr<T> p, std::span<const std::type_identity_t<T>> values) {
    put_bytes(p.pe(), p.offset(), std::as_bytes(values), true);
  }

  // --- many values that do not lie in one piece on their PE, but do here, one behind the other

  /// `count` blocks of `block` elements from p on, every `stride` elements. They may overlap.
  ///
  ///     memory.get_strided(p, {.block = 2, .stride = n, .count = n}, std::span(two_columns));
  template <class T>
  void get_strided(GlobalPtr<T> p, const global::Strides& strides, std::span<T> to) {
    get_blocks(p.pe(), blocks_of(p, strides, to.size(), false), {}, std::as_writable_bytes(to).data());
  }
  /// As get_strided, but they may not overlap.
  template <class T>
  void put_strided(GlobalPtr<T> p, const global::Strides& strides, std::span<const std::type_identity_t<T>> values) {
    put_blocks(p.pe(), blocks_of(p, strides, values.size(), true), {}, std::as_bytes(values));
  }
  /// p[indices[i]] for each i. The indices are read by the time it returns.
  template <class T>
  void get_indexed(GlobalPtr<T> p, std::span<const std::uint64_t> indices, std::span<T> to) {
    get_blocks(p.pe(), blocks_of(p, indices, to.size()), indices, std::as_writable_bytes(to).data());
  }
  /// Where an index is there twice, either value stays.
  template <class T>
  void put_indexed(GlobalPtr<T> p, std::span<const std::uint64_t> indices,
                   std::span<const std::type_identity_t<T>> values) {
    put_blocks(p.pe(), blocks_of(p, indices, values.size()), indices, std::as_bytes(values));
  }

  // --- atomically, integers of 4 or 8 bytes

  /// Adds; returns at once, sync() says when it is done.
  template <class T>
  void add(GlobalPtr<T> p, T value) {
    check_atomic<T>();
    if (T* at = local(p))
      std::atomic_ref(*at).fetch_add(value, std::memory_order_relaxed);
    else
      change_word(p.pe(), p.offset(), global::Operation::add, sizeof(T), word_of(value));
  }
  /// Return what was there before, and wait for it.
  template <class T>
  T fetch_add(GlobalPtr<T> p, T value) {
    check_atomic<T>();
    if (T* at = local(p)) return std::atomic_ref(*at).fetch_add(value, std::memory_order_relaxed);
    return T(change_and_wait(p.pe(), p.offset(), global::Operation::add, sizeof(T), word_of(value), 0));
  }
  template <class T>
  T exchange(GlobalPtr<T> p, T value) {
    check_atomic<T>();
    if (T* at = local(p)) return std::atomic_ref(*at).exchange(value, std::memory_order_acq_rel);
    return T(change_and_wait(p.pe(), p.offset(), global::Operation::exchange, sizeof(T), word_of(value), 0));
  }
  /// Puts `desired` there if it was `expected`.
  template <class T>
  T compare_exchange(GlobalPtr<T> p, T expected, T desired) {
    check_atomic<T>();
    if (T* at = local(p)) {
      std::atomic_ref(*at).compare_exchange_strong(expected, desired, std::memory_order_acq_rel);
      return expected;
    }
    return T(change_and_wait(p.pe(), p.offset(), global::Operation::compare_exchange, sizeof(T), word_of(desired),
                             word_of(expected)));
  }

  // --- waiting

  /// Returns when all that this PE got is there, and all that it put or added is in place. Not collective: a round trip
  /// to each PE that it put to.
  void sync();

  /// Bytes that came to this PE's pool by store(), in all.
  std::uint64_t stored_bytes() const { return stored_bytes_; }
  /// Waits until they are so many more than at the last such call, or the beginning.
  void wait_for_stores(std::uint64_t bytes);

  /// What co_await memory.fetch(p) waits for. The coroutine is resumed by the handler of the answer; one that is
  /// destroyed meanwhile is not.
  template <class T>
  class Fetch;
  template <class T>
  [[nodiscard]] Fetch<T> fetch(GlobalPtr<T> p) {
    static_assert(global::is_word<T>, "headway: what is fetched has 1, 2, 4 or 8 bytes; get() others");
    return Fetch<T>(*this, p);
  }

  /// Of each kind of its messages, questions and answers: what this PE has sent and handled.
  std::array<AggregatorStatistics, 11> statistics() const;
  /// What its messages are aggregated by.
  const AggregatorOptions& aggregation() const { return batches_wanted_.options(); }

 private:
  /// Somebody who waits for a word.
  struct Waiting {
    std::uint64_t word = 0;
    bool done = false;
    std::coroutine_handle<> coroutine = {};
  };

  /// What an answer is for: memory to write to, somebody who waits, or a batch.
  struct Pending {
    void* to = nullptr;
    std::uint32_t bytes = 0;  // 0: it is free; or what else `to` is
    std::uint32_t next = 0;   // while it is free
  };
  static constexpr std::uint32_t none = ~std::uint32_t(0), for_waiting = none - 1, for_batch = none - 2;

  struct Wanted {
    std::uint64_t offset;
    std::uint32_t slot;
    std::uint32_t bytes;  // of a word, or with is_piece of anything
  };
  static constexpr std::uint32_t is_piece = std::uint32_t(1) << 31;
  /// Words of one length that were got from one PE: asked for together, and answered together. What they are for stays
  /// here meanwhile.
  static constexpr std::uint32_t batch_max = 256;
  struct Batch {
    std::uint32_t count = 0, bytes = 0;
    std::uint32_t different = 0;  // offsets, the first of them; count, where nobody has looked
    std::array<std::uint64_t, batch_max> offsets;
    std::array<void*, batch_max> to;
    std::array<std::uint8_t, batch_max> which;  // of the different ones; where different < count
  };
  struct Word {
    std::uint64_t word;
    std::uint32_t slot;
  };
  struct WordPut {
    std::uint64_t place;  // offset | log2 of bytes << 60 | is_store
    std::uint64_t word;
  };
  struct WordChange {
    std::uint64_t offset, operand, expected;
    std::uint32_t slot;  // or none: it counts as a put
    std::uint8_t bytes;
    global::Operation operation;
  };
  struct SyncWanted {
    std::uint64_t puts;  // that were sent to the PE, in all
  };
  struct Synced {
    std::uint64_t puts;
  };
  static constexpr std::uint64_t is_store = std::uint64_t(1) << 63;
  static constexpr unsigned bytes_shift = 60;
  using Bytes = std::span<const std::byte>;
  using Offsets = std::span<const std::uint64_t>;

  /// Where bytes lie that are not in one piece: block k begins k * stride behind the first. Which blocks are meant, the
  /// first `count` or those of a list of so many, is said beside it.
  struct Blocks {
    std::uint64_t offset, stride, block, count;  // bytes, but for the count
  };

  /// A bulk get, in pieces: of one piece of memory, or of blocks, none of which is larger than a piece.
  struct Transfer {
    PeId pe;
    std::uint64_t offset;
    std::byte* to;
    std::size_t left;
    std::uint64_t stride = 0, block = 0;  // of blocks
    std::vector<std::uint64_t> indices = {};
    std::size_t indices_asked = 0;
  };

  struct PutsTo {
    std::uint64_t sent = 0, asked = 0, synced = 0;  // sent >= asked >= synced
  };
  struct PutsFrom {
    std::uint64_t applied = 0, awaited = ~std::uint64_t(0);
  };

  static constexpr std::size_t piece_bytes = 16_KiB, pieces_bytes_max = 1_MiB, gets_max = 1 << 15;

  template <class T>
  static constexpr void check_atomic() {
    static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                  "headway: what is changed atomically is an integer of 4 or 8 bytes");
  }
  /// Where the PEs' pools lie in this process; nullptr: by messages.
  class Bases {
   public:
    explicit Bases(std::size_t pes) : bases_(pes, nullptr), begin_(bases_.data()), size_(pes) {}
    Bases(const Bases&) = delete;
    Bases& operator=(const Bases&) = delete;

    std::size_t size() const { return size_; }
    std::byte*& operator[](PeId pe) { return bases_[pe]; }
    bool all_mapped() const { return std::ranges::find(bases_, nullptr) == bases_.end(); }

    /// nullptr where it is reached by messages. `pe` is below size().
    template <class T>
    T* find(PeId pe, std::uint64_t offset) const {
      std::byte* const base = begin_[pe];
      if (base == nullptr) [[unlikely]]
        return nullptr;
      T* const at = reinterpret_cast<T*>(base + offset);
      if (at == nullptr) __builtin_unreachable();
      return at;
    }

   private:
    std::vector<std::byte*> bases_;
    std::byte* const* begin_;
    std::size_t size_;  // a comparison, where a vector's size is three instructions more
  };

#if defined(__SANITIZE_THREAD__)
  template <class T>
  static constexpr bool is_plain = false;
#else
  /// Loaded and stored by one instruction where it is volatile, as a relaxed atomic is; but around those GCC forgets what
  /// it knows of all memory.
  template <class T>
  static constexpr bool is_plain = std::is_arithmetic_v<T> && global::is_word<T> && alignof(T) == sizeof(T);
#endif
  template <class T>
  static T load(const T* at) {
    if constexpr (is_plain<T>)
      return *static_cast<const volatile T*>(at);
    else if constexpr (global::is_word<T> && alignof(T) == sizeof(T))
      return std::atomic_ref(*const_cast<T*>(at)).load(std::memory_order_relaxed);
    else
      return *at;
  }
  template <class T>
  static void save(T* at, const T& value) {
    if constexpr (is_plain<T>)
      *static_cast<volatile T*>(at) = value;
    else if constexpr (global::is_word<T> && alignof(T) == sizeof(T))
      std::atomic_ref(*at).store(value, std::memory_order_relaxed);
    else
      *at = value;
  }
  template <class T>
  static std::uint64_t word_of(const T& value) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
  }
  template <class T>
  T* local(GlobalPtr<T> p, const Bases& bases) const {
    const PeId pe = p.pe();
    if (pe >= bases.size()) [[unlikely]]
      refuse_pointer(pe);
    return bases.find<T>(pe, p.offset());
  }
  /// The same for so many bytes. UsageError where not all of them are in its pool, which is mapped; pools of one host are
  /// equally long.
  template <class T>
  T* local_bytes(GlobalPtr<T> p, const Bases& bases, std::size_t bytes) const {
    T* const at = local(p, bases);
    if (at != nullptr && (bytes > own_.size() || p.offset() > own_.size() - bytes)) [[unlikely]]
      refuse_bytes(p.pe(), p.offset(), bytes);
    return at;
  }
  /// The same for one value; a word's load or store is all that there is to it, and is not checked.
  template <class T>
  T* local_value(GlobalPtr<T> p, const Bases& bases) const {
    if constexpr (global::is_word<T>)
      return local(p, bases);
    else
      return local_bytes(p, bases, sizeof(T));
  }
  [[noreturn]] void refuse_pointer(PeId pe) const;
  [[noreturn]] void refuse_bytes(PeId pe, std::uint64_t offset, std::size_t bytes) const;

  /// UsageError for what no memory of `values` elements can be.
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

  /// First free, first taken again: answers come about in the order of their questions, so that neighbours are used
  /// one after the other. The last free one is never taken.
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
    PutsTo& puts = puts_to_[pe];
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
  void change_word(PeId pe, std::uint64_t offset, global::Operation operation, std::size_t bytes, std::uint64_t operand);
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
  /// The same for get(). Where some of it goes by messages its own memory does, too, in batches: whose turn it is nobody
  /// can predict (a get of 5 ns more at two PEs).
  Bases get_bases_;
  std::vector<Batch*> open_;  // by PE; nullptr: none
  std::vector<std::unique_ptr<Batch>> batches_;
  std::vector<Batch*> spare_;
  std::span<std::byte> own_;
  std::vector<Pending> pending_ = std::vector<Pending>(1);
  std::uint32_t first_free_ = 0, last_free_ = 0;
  std::uint64_t gets_in_flight_ = 0;
  std::uint32_t batches_sent_ = 0;
  bool combines_ = false;  // gets of one word in a batch ask for it once
  std::deque<Transfer> transfers_;
  std::size_t pieces_in_flight_bytes_ = 0;
  std::vector<std::byte> gathered_;  // blocks that others want
  std::vector<PutsTo> puts_to_;      // by target
  std::vector<PeId> put_to_;         // those with some that no sync() has asked for
  std::vector<PutsFrom> puts_from_;  // by source
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
    if (at != nullptr) waiting_.word = word_of(load(at));
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
