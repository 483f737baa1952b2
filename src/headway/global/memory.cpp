// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/am/wait.hpp>
#include <headway/base/copy_large.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/global/memory.hpp>
#include <headway/rma/pool.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway {
namespace {

AggregatorOptions named(AggregatorOptions options, const char* name) {
  options.name = name;
  // Else answers would stay in the buffers of idle PEs.
  options.flush_when_idle = true;
  return options;
}

/// f(atomic_ref) of the word of `bytes` bytes at `at`.
template <class F>
std::uint64_t with_word(std::byte* at, std::size_t bytes, F f) {
  const auto of = [&]<class W>(std::type_identity<W>) {
    return std::uint64_t(f(std::atomic_ref(*reinterpret_cast<W*>(at))));
  };
  switch (bytes) {
    case 1: return of(std::type_identity<std::uint8_t>());
    case 2: return of(std::type_identity<std::uint16_t>());
    case 4: return of(std::type_identity<std::uint32_t>());
    default: return of(std::type_identity<std::uint64_t>());
  }
}

std::uint64_t load_word(std::byte* at, std::size_t bytes) {
  return with_word(at, bytes, [](auto word) { return word.load(std::memory_order_relaxed); });
}

}  // namespace

GlobalMemory::GlobalMemory(Pe& pe, const GlobalOptions& options)
    : pe_(&pe),
      bases_(pe.size()),
      get_bases_(pe.size()),
      own_(rma::Pool::of(pe).memory()),
      puts_to_(pe.size()),
      puts_from_(pe.size()),
      wanted_(pe, named(options.aggregation, "wanted")),
      words_(pe, named(options.aggregation, "words")),
      batches_wanted_(pe, named(options.aggregation, "batches wanted")),
      words_put_(pe, named(options.aggregation, "words put")),
      bytes_(pe, named(options.aggregation, "bytes")),
      bytes_put_(pe, named(options.aggregation, "bytes put")),
      changes_(pe, named(options.aggregation, "words changed")),
      blocks_wanted_(pe, named(options.aggregation, "blocks wanted")),
      blocks_put_(pe, named(options.aggregation, "blocks put")),
      syncs_wanted_(pe, named(options.aggregation, "sync wanted")),
      syncs_(pe, named(options.aggregation, "sync")) {
  // Loads and stores are not checked; the handlers of messages check offsets.
  const bool mapped = options.mapped && !pe.engine().transfer_settings().check;
  for (std::size_t p = 0; p < pe.size(); ++p) {
    if (p == pe.id() || mapped) get_bases_[p] = bases_[p] = pe.engine().endpoint().shared_memory().pool(p).data();
  }
  if (!bases_.all_mapped()) get_bases_[pe.id()] = nullptr;
  open_.resize(pe.size(), nullptr);
  wanted_.on([this](PeId source, const Wanted& wanted) {
    const std::uint32_t bytes = wanted.bytes & ~is_piece;
    if (bytes == wanted.bytes)
      words_.send(source, {load_word(checked(wanted.offset, bytes, true), bytes), wanted.slot});
    else
      bytes_.send(source, wanted.slot, Bytes(checked(wanted.offset, bytes, false), bytes));
  });
  words_.on([this](const Word& answer) { give_word(answer); });
  batches_wanted_.on([this](PeId source, std::uint64_t slot_and_bytes, Offsets offsets) {
    if (offsets.size() > batch_max)
      throw FormatError(fmt::format("PE {} asks for {} in one message, allowed are at most {}", source.value,
                                    base::counted(offsets.size(), "word"), batch_max));
    std::array<std::uint64_t, batch_max> words;
    bytes_.send(source, std::uint32_t(slot_and_bytes), gather(offsets, slot_and_bytes >> 32, words));
  });
  bytes_.on([this](std::uint64_t slot, Bytes bytes) { give_bytes(slot, bytes); });
  words_put_.on([this](PeId source, const WordPut& put) { apply_put(source, put); });
  bytes_put_.on([this](PeId source, std::uint64_t place, Bytes bytes) {
    base::copy_bytes(checked(place & ~is_store, bytes.size(), false), bytes.data(), bytes.size());
    if ((place & is_store) != 0)
      stored_bytes_ += bytes.size();
    else
      count_put(source);
  });
  blocks_wanted_.on([this](PeId source, const Blocks& blocks, std::uint64_t slot, Offsets indices) {
    answer_blocks(source, slot, blocks, indices);
  });
  blocks_put_.on([this](PeId source, const Blocks& blocks, Offsets indices, Bytes values) {
    apply_blocks(source, blocks, indices, values);
  });
  changes_.on([this](PeId source, const WordChange& change) { apply_change(source, change); });
  syncs_wanted_.on([this](PeId source, const SyncWanted& wanted) {
    global::PutsFrom& puts = puts_from_[source];
    if (puts.applied >= wanted.puts)
      syncs_.send(source, {wanted.puts});
    else
      puts.awaited = wanted.puts;
  });
  syncs_.on([this](PeId source, const Synced& synced) {
    if (synced.puts > puts_to_[source].sent)
      throw FormatError(fmt::format("PE {} confirms {}, but PE {} has sent it {}", source.value,
                                    base::counted(synced.puts, "put"), pe_->id().value, puts_to_[source].sent));
    puts_to_[source].synced = synced.puts;
  });
}

GlobalMemory::~GlobalMemory() = default;

void GlobalMemory::refuse_pointer(PeId pe) const {
  const bool null = pe.value == GlobalPtr<char>().pe().value;
  throw UsageError(null ? fmt::format("PE {} followed a null GlobalPtr: check the pointer before", pe_->id().value)
                        : fmt::format("PE {} followed a GlobalPtr to PE {}, the run has PEs 0 to {}", pe_->id().value,
                                      pe.value, bases_.size() - 1));
}

void GlobalMemory::refuse_bytes(PeId pe, std::uint64_t offset, std::size_t bytes) const {
  throw UsageError(fmt::format("{} at offset {} of PE {}'s shared memory, which has {}", base::counted(bytes, "byte"),
                               offset, pe.value, base::counted(own_.size(), "byte")));
}

// --- at the owner

std::byte* GlobalMemory::checked(std::uint64_t offset, std::size_t bytes, bool word) const {
  const bool is_word = bytes != 0 && bytes <= 8 && (bytes & (bytes - 1)) == 0 && (offset & (bytes - 1)) == 0;
  if (offset > own_.size() || bytes > own_.size() - offset || (word && !is_word)) {
    throw FormatError(fmt::format("{}{} at offset {} of PE {}'s shared memory, which has {}", word ? "a word of " : "",
                                  base::counted(bytes, "byte"), offset, pe_->id().value,
                                  base::counted(own_.size(), "byte")));
  }
  return own_.data() + offset;
}

/// The words at `offsets`, contiguous in `words`.
GlobalMemory::Bytes GlobalMemory::gather(Offsets offsets, std::size_t bytes,
                                         std::span<std::uint64_t, batch_max> words) const {
  const auto copy = [&]<class W>(std::type_identity<W>) {
    W* const to = reinterpret_cast<W*>(words.data());
    const std::uint64_t end = own_.size();
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const std::uint64_t offset = offsets[i];
      if (offset >= end || (offset & (sizeof(W) - 1)) != 0) [[unlikely]]
        (void)checked(offset, sizeof(W), true);
      to[i] = std::atomic_ref(*reinterpret_cast<W*>(own_.data() + offset)).load(std::memory_order_relaxed);
    }
    return Bytes(reinterpret_cast<const std::byte*>(to), offsets.size() * sizeof(W));
  };
  switch (bytes) {
    case 1: return copy(std::type_identity<std::uint8_t>());
    case 2: return copy(std::type_identity<std::uint16_t>());
    case 4: return copy(std::type_identity<std::uint32_t>());
    case 8: return copy(std::type_identity<std::uint64_t>());
    default:
      throw FormatError(
          fmt::format("words of {} are asked for, allowed are 1, 2, 4 and 8", base::counted(bytes, "byte")));
  }
}

void GlobalMemory::count_put(PeId source) {
  global::PutsFrom& puts = puts_from_[source];
  if (++puts.applied == puts.awaited) syncs_.send(source, {std::exchange(puts.awaited, ~std::uint64_t(0))});
}

void GlobalMemory::apply_put(PeId source, const WordPut& put) {
  const std::size_t bytes = std::size_t(1) << (put.place >> bytes_shift & 3);
  const std::uint64_t offset = put.place & ((std::uint64_t(1) << bytes_shift) - 1);
  with_word(checked(offset, bytes, true), bytes, [&](auto word) {
    word.store(typename decltype(word)::value_type(put.word), std::memory_order_relaxed);
    return 0;
  });
  if ((put.place & is_store) != 0)
    stored_bytes_ += bytes;
  else
    count_put(source);
}

void GlobalMemory::apply_change(PeId source, const WordChange& change) {
  const std::uint64_t before = with_word(checked(change.offset, change.bytes, true), change.bytes, [&](auto word) {
    using W = typename decltype(word)::value_type;
    switch (change.operation) {
      case global::Operation::add: return word.fetch_add(W(change.operand), std::memory_order_relaxed);
      case global::Operation::exchange: return word.exchange(W(change.operand), std::memory_order_acq_rel);
      case global::Operation::compare_exchange: {
        auto expected = W(change.expected);
        word.compare_exchange_strong(expected, W(change.operand), std::memory_order_acq_rel);
        return expected;
      }
    }
    throw FormatError(fmt::format("operation {} on a word, allowed are 0 to 2", unsigned(change.operation)));
  });
  if (change.slot == none)
    count_put(source);
  else
    words_.send(source, {before, change.slot});
}

// --- answers

void GlobalMemory::grow_pending() {
  const auto size = std::uint32_t(pending_.size()), more = std::max<std::uint32_t>(size, 255);
  pending_.resize(size + more);
  for (std::uint32_t slot = size; slot < size + more; ++slot) free_slot(slot);
}

const GlobalMemory::Pending& GlobalMemory::pending_at(std::uint64_t slot) const {
  if (slot >= pending_.size() || pending_[slot].bytes == 0) {
    throw FormatError(
        fmt::format("an answer for request {} arrived at PE {}, which has no such request", slot, pe_->id().value));
  }
  return pending_[slot];
}

void GlobalMemory::give_word(const Word& answer) {
  const Pending pending = pending_at(answer.slot);
  free_slot(answer.slot);
  if (pending.bytes != for_waiting) {
    throw FormatError(fmt::format("one word arrived at PE {} for request {}, which is for a batch or a piece",
                                  pe_->id().value, answer.slot));
  }
  auto* const waiting = static_cast<Waiting*>(pending.to);
  if (waiting == nullptr) return;  // its coroutine was destroyed
  waiting->word = answer.word;
  waiting->done = true;
  if (waiting->coroutine) waiting->coroutine.resume();
}

void GlobalMemory::give_bytes(std::uint64_t slot, Bytes bytes) {
  const Pending pending = pending_at(slot);
  if (pending.bytes == for_batch) {
    Batch& batch = *static_cast<Batch*>(pending.to);
    if (bytes.size() != std::size_t(batch.different) * batch.bytes) {
      throw FormatError(fmt::format("{} arrived at PE {} for a batch, expected {} words of {}",
                                    base::counted(bytes.size(), "byte"), pe_->id().value, batch.different,
                                    base::counted(batch.bytes, "byte")));
    }
    free_slot(std::uint32_t(slot));
    gets_in_flight_ -= batch.count;
    give_batch(batch, bytes);
    spare_.push_back(&batch);
    return;
  }
  if (pending.bytes != bytes.size()) {
    throw FormatError(fmt::format("{} arrived at PE {} for a piece, expected {}", base::counted(bytes.size(), "byte"),
                                  pe_->id().value, pending.bytes));
  }
  base::copy_bytes(static_cast<std::byte*>(pending.to), bytes.data(), bytes.size());
  free_slot(std::uint32_t(slot));
  --gets_in_flight_;
  pieces_in_flight_bytes_ -= bytes.size();
  ask_for_pieces();
}

// --- asking

/// The open batch for words of `bytes` bytes of `pe`. Sends a batch that is full or has words of another length.
GlobalMemory::Batch* GlobalMemory::next_batch(PeId pe, std::uint32_t bytes) {
  if (gets_in_flight_ >= gets_max) wait_for_some_gets();
  for (;;) {  // sending may run handlers, which may call this
    Batch*& batch = open_[pe];
    if (batch == nullptr) break;
    if (batch->count < batch_max && batch->bytes == bytes) return batch;
    send_batch(pe);
  }
  if (spare_.empty()) {
    batches_.push_back(std::make_unique<Batch>());
    spare_.push_back(batches_.back().get());
  }
  open_[pe] = spare_.back();
  spare_.pop_back();
  open_[pe]->count = 0;
  open_[pe]->bytes = bytes;
  return open_[pe];
}

/// Requests each different word once. Looks for duplicates in one batch of 32, and in every batch while at least one
/// word in eight is a duplicate.
void GlobalMemory::combine(Batch& batch) {
  constexpr std::uint32_t batches_per_look = 32;
  batch.different = batch.count;
  if (!combines_ && batches_sent_++ % batches_per_look != 0) return;
  std::array<std::uint16_t, std::size_t(2) * batch_max> found{};  // by hash: index + 1
  batch.different = 0;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    const std::uint64_t offset = batch.offsets[i];
    std::size_t at = offset * 0x9e3779b97f4a7c15 >> 55;
    while (found[at] != 0 && batch.offsets[found[at] - 1] != offset) at = (at + 1) % found.size();
    if (found[at] == 0) {
      batch.offsets[batch.different++] = offset;
      found[at] = std::uint16_t(batch.different);
    }
    batch.which[i] = std::uint8_t(found[at] - 1);
  }
  combines_ = batch.different * 8 <= batch.count * 7;
}

void GlobalMemory::send_batch(PeId pe) {
  Batch* const batch = std::exchange(open_[pe], nullptr);
  combine(*batch);
  const Offsets offsets(batch->offsets.data(), batch->different);
  if (pe == pe_->id()) {
    std::array<std::uint64_t, batch_max> words;
    give_batch(*batch, gather(offsets, batch->bytes, words));
    spare_.push_back(batch);
    return;
  }
  gets_in_flight_ += batch->count;
  const std::uint64_t slot = take_slot(batch, for_batch);
  batches_wanted_.send(pe, slot | std::uint64_t(batch->bytes) << 32, offsets);
}

void GlobalMemory::send_batches() {
  for (std::size_t pe = 0; pe < open_.size(); ++pe) {
    if (open_[pe] != nullptr) send_batch(pe);
  }
}

void GlobalMemory::give_batch(Batch& batch, Bytes words) {
  const auto give = [&]<class W>(std::type_identity<W>) {
    const auto one = [&](std::uint32_t i, std::size_t word) {
      std::memcpy(batch.to[i], words.data() + word * sizeof(W), sizeof(W));
    };
    if (batch.different == batch.count) {
      for (std::uint32_t i = 0; i < batch.count; ++i) one(i, i);
    } else {
      for (std::uint32_t i = 0; i < batch.count; ++i) one(i, batch.which[i]);
    }
  };
  switch (batch.bytes) {
    case 1: return give(std::type_identity<std::uint8_t>());
    case 2: return give(std::type_identity<std::uint16_t>());
    case 4: return give(std::type_identity<std::uint32_t>());
    default: return give(std::type_identity<std::uint64_t>());
  }
}

void GlobalMemory::get_bytes(PeId pe, std::uint64_t offset, std::byte* to, std::size_t bytes) {
  if (bytes == 0) return;
  transfers_.push_back({pe, offset, to, bytes});
  ask_for_pieces();
}

/// At most pieces_bytes_max bytes are in flight. This bounds the memory of an owner if the requester makes no progress.
void GlobalMemory::ask_for_pieces() {
  while (!transfers_.empty() && pieces_in_flight_bytes_ < pieces_bytes_max) {
    Transfer& transfer = transfers_.front();
    if (transfer.block != 0) {
      ask_for_blocks(transfer);
      continue;
    }
    const auto bytes = std::uint32_t(std::min(transfer.left, piece_bytes));
    const Wanted wanted{transfer.offset, take_slot(transfer.to, bytes), bytes | is_piece};
    const PeId pe = transfer.pe;
    ++gets_in_flight_;
    pieces_in_flight_bytes_ += bytes;
    transfer.offset += bytes;
    transfer.to += bytes;
    transfer.left -= bytes;
    if (transfer.left == 0) transfers_.pop_front();
    wanted_.send(pe, wanted);  // may run handlers, which may call this
  }
}

void GlobalMemory::put_bytes(PeId pe, std::uint64_t offset, Bytes bytes, bool store) {
  if (pe >= bases_.size()) refuse_pointer(pe);
  while (!bytes.empty()) {
    const Bytes piece = bytes.first(std::min(bytes.size(), piece_bytes));
    if (!store) note_put(pe);
    bytes_put_.send(pe, offset | (store ? is_store : 0), piece);
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
  }
}

void GlobalMemory::change_word(PeId pe, std::uint64_t offset, global::Operation operation, std::size_t bytes,
                               std::uint64_t operand) {
  note_put(pe);
  changes_.send(pe, {offset, operand, 0, none, std::uint8_t(bytes), operation});
}

std::uint64_t GlobalMemory::change_and_wait(PeId pe, std::uint64_t offset, global::Operation operation,
                                            std::size_t bytes, std::uint64_t operand, std::uint64_t expected) {
  pe_->engine().require_may_block(report::Phase::condition);
  Waiting waiting;
  changes_.send(pe, {offset, operand, expected, take_slot(&waiting, for_waiting), std::uint8_t(bytes), operation});
  changes_.flush();
  wait_for(waiting, pe);
  return waiting.word;
}

std::uint64_t GlobalMemory::wait_for_word(PeId pe, std::uint64_t offset, std::uint32_t bytes) {
  pe_->engine().require_may_block(report::Phase::condition);
  Waiting waiting;
  wanted_.send(pe, {offset, take_slot(&waiting, for_waiting), bytes});
  wanted_.flush();
  wait_for(waiting, pe);
  return waiting.word;
}

void GlobalMemory::begin_fetch(Waiting& waiting, std::uint32_t& slot, PeId pe, std::uint64_t offset,
                               std::uint32_t bytes) {
  slot = take_slot(&waiting, for_waiting);
  wanted_.send(pe, {offset, slot, bytes});
}

// --- waiting

void GlobalMemory::wait_for(const Waiting& waiting, PeId pe) {
  pe_->engine().wait_until([&] { return waiting.done; }, report::Phase::condition, std::uint32_t(pe.value));
}

void GlobalMemory::wait_for_gets() {
  send_batches();
  pe_->engine().wait_until([&] { return gets_in_flight_ == 0 && transfers_.empty(); }, report::Phase::condition);
}

void GlobalMemory::wait_for_some_gets() {
  if (pe_->engine().may_block()) wait_until(*pe_, [&] { return gets_in_flight_ < gets_max / 2; });
}

void GlobalMemory::sync() {
  pe_->engine().require_may_block(report::Phase::condition);
  send_batches();
  // Handlers may put meanwhile: those are for the next time.
  std::vector<std::pair<PeId, std::uint64_t>> awaited;
  for (const PeId pe : std::exchange(put_to_, {})) {
    awaited.emplace_back(pe, puts_to_[pe].sent);
    puts_to_[pe].asked = puts_to_[pe].sent;
    syncs_wanted_.send(pe, {puts_to_[pe].sent});
  }
  wait_until(*pe_, [&] {
    while (!awaited.empty() && puts_to_[awaited.back().first].synced >= awaited.back().second) awaited.pop_back();
    return awaited.empty() && gets_in_flight_ == 0 && transfers_.empty();
  });
}

void GlobalMemory::wait_for_stores(std::uint64_t bytes) {
  pe_->engine().require_may_block(report::Phase::condition);
  stored_taken_ += bytes;
  wait_until(*pe_, [&] { return stored_bytes_ >= stored_taken_; });
}

std::array<AggregatorStatistics, 11> GlobalMemory::statistics() const {
  return {wanted_.statistics(),       words_.statistics(),         batches_wanted_.statistics(),
          words_put_.statistics(),    bytes_.statistics(),         bytes_put_.statistics(),
          changes_.statistics(),      blocks_wanted_.statistics(), blocks_put_.statistics(),
          syncs_wanted_.statistics(), syncs_.statistics()};
}

}  // namespace headway
