// SPDX-License-Identifier: BSD-3-Clause
#include <message/payload.hpp>
#include <randomaccess/sequence.hpp>
#include <randomaccess/table.hpp>

#include "buckets.hpp"
#include "direct.hpp"
#include "item.hpp"
#include "peer.hpp"

namespace headway::peers {
namespace {

using randomaccess::Share;
using randomaccess::step;
using randomaccess::Table;

/// The update of HPC Challenge: the value alone, in a bucket of values. Otherwise as Items.
struct Values {
  using Word = std::uint64_t;
  static constexpr std::size_t words() { return 1; }
  static constexpr std::size_t bytes() { return sizeof(Word); }
  static void write(Word* to, std::uint64_t a) { *to = a; }
  static void write(std::byte* to, std::uint64_t a) { std::memcpy(to, &a, sizeof a); }
  static bench::Ends ends(const Word* item) { return {*item, *item}; }
  static bench::Ends ends(const std::byte* item) { return bench::ends_of(item, bytes()); }
};

template <class Blocks, class Updates>
void apply_all(std::uint64_t* __restrict table, const Blocks blocks, const Updates& updates,
               const typename Updates::Word* __restrict item, std::size_t count) {
  const std::size_t words = updates.words();
  for (; count >= 4; count -= 4, item += 4 * words) {
    const bench::Ends a = updates.ends(item), b = updates.ends(item + words);
    const bench::Ends c = updates.ends(item + 2 * words), d = updates.ends(item + 3 * words);
    table[blocks.slot(a.front)] ^= a.back;
    table[blocks.slot(b.front)] ^= b.back;
    table[blocks.slot(c.front)] ^= c.back;
    table[blocks.slot(d.front)] ^= d.back;
  }
  for (; count > 0; --count, item += words) {
    const bench::Ends ends = updates.ends(item);
    table[blocks.slot(ends.front)] ^= ends.back;
  }
}

/// The same for a table larger than the cache: asks for the words of some updates before these are applied.
template <class Blocks, class Updates>
void apply_all_ahead(std::uint64_t* __restrict table, const Blocks blocks, const Updates& updates,
                     const typename Updates::Word* __restrict item, std::size_t count) {
  while (count > 0) {
    const std::size_t now = std::min(count, randomaccess::updates_ahead);
    for (std::size_t i = 0; i < now; ++i) {
      __builtin_prefetch(&table[blocks.slot(updates.ends(item + i * updates.words()).front)], 1);
    }
    apply_all(table, blocks, updates, item, now);
    item += now * updates.words();
    count -= now;
  }
}

/// Calls apply(items, count, rank) for the items from each rank.
template <class Blocks, class Updates, class Apply>
void update_by_buckets(const Blocks blocks, const Updates& updates, Share share, std::size_t bucket_bytes,
                       Apply apply) {
  using Word = typename Updates::Word;
  Buckets<Word> buckets(MPI_COMM_WORLD, updates.words(), bucket_bytes);
  Word** const cursors = buckets.cursors();
  const std::size_t few = std::max<std::size_t>(1, buckets.capacity() / 32);
  std::uint64_t a = randomaccess::starts(share.begin), left = share.size();
  do {
    // As many as fit wherever they go need no test each; a round ends when only few would.
    for (std::size_t room = buckets.room(); left > 0 && room >= few; room = buckets.room()) {
      const std::size_t now = std::min<std::uint64_t>(left, room);
      left -= now;
      for (std::size_t i = 0; i < now; ++i) {
        a = step(a);
        Word*& cursor = cursors[blocks.owner(a)];
        Word* const at = cursor;
        cursor = at + updates.words();
        updates.write(at, a);
      }
    }
  } while (!buckets.exchange(left == 0, apply));
}

/// Calls handle(item, rank) for items from other ranks, own(a) for this rank's.
template <class Blocks, class Updates, class Handle, class Own>
void update_directly(const Blocks blocks, const Updates& updates, std::size_t me, Share share, Handle handle, Own own) {
  DirectMessages messages(MPI_COMM_WORLD, updates.bytes(), handle);
  std::uint64_t a = randomaccess::starts(share.begin);
  for (std::uint64_t left = share.size(); left > 0; --left) {
    a = step(a);
    const std::size_t owner = blocks.owner(a);
    if (owner == me) {
      own(a);
    } else {
      updates.write(messages.next(), a);
      messages.send(owner);
    }
  }
  messages.finish();
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Sends some updates and checks every byte; receivers apply none. Returns errors.
template <class Blocks, class Updates>
std::uint64_t check_payload(const Arguments& arguments, const Blocks blocks, const Updates& updates, std::size_t me,
                            std::size_t pes, Share share) {
  bench::PayloadChecker checker(arguments.bytes, pes);
  const auto check = [&](const auto* item, std::size_t rank) {
    checker(rank, reinterpret_cast<const std::byte*>(item), arguments.bytes);
  };
  const std::uint64_t messages = bench::checked_messages(share.size(), arguments.bytes);
  share.end = share.begin + messages;
  if (arguments.mode == "mpi-direct") {
    const auto own = [&](std::uint64_t a) {
      std::vector<std::byte> item(arguments.bytes);
      updates.write(item.data(), a);
      check(item.data(), me);
    };
    update_directly(blocks, updates, me, share, check, own);
  } else {
    const auto check_all = [&](const auto* item, std::size_t count, std::size_t rank) {
      for (; count > 0; --count, item += updates.words()) check(item, rank);
    };
    update_by_buckets(blocks, updates, share, arguments.buffer_bytes, check_all);
  }
  return checker.errors() + (total(checker.count()) != total(messages));
}

template <class Blocks, class Updates>
void update(const Arguments& arguments, Table& table, const Blocks blocks, const Updates& updates, std::size_t me,
            Share share) {
  std::uint64_t* const words = table.data();
  if (arguments.mode == "mpi-direct") {
    const auto handle = [words, blocks, &updates](const std::byte* item) {
      const bench::Ends ends = updates.ends(item);
      words[blocks.slot(ends.front)] ^= ends.back;
    };
    const auto own = [words, blocks, bytes = updates.bytes()](std::uint64_t a) {
      words[blocks.slot(a)] ^= bench::back_of(a, bytes);
    };
    update_directly(blocks, updates, me, share, handle, own);
  } else {
    const auto apply = [&](const auto* items, std::size_t count, std::size_t /*rank*/) {
      if (table.size() > randomaccess::words_cached)
        apply_all_ahead(words, blocks, updates, items, count);
      else
        apply_all(words, blocks, updates, items, count);
    };
    update_by_buckets(blocks, updates, share, arguments.buffer_bytes, apply);
  }
}

template <class Blocks, class Updates>
bench::Json measure(const Arguments& arguments, const Blocks blocks, const Updates& updates, std::size_t me,
                    std::size_t pes) {
  const auto words = std::uint64_t(1) << arguments.log2;
  const auto updates_all = std::uint64_t(double(words) * arguments.updates_per_word);
  const Share share = randomaccess::share_of(updates_all, me, pes);
  const bool has_payload = arguments.bytes > sizeof(std::uint64_t);
  const std::uint64_t damaged = has_payload ? check_payload(arguments, blocks, updates, me, pes, share) : 0;
  Table table(blocks, me);
  const auto pass = [&](Share part) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    update(arguments, table, blocks, updates, me, part);
    return slowest(MPI_Wtime() - begin);
  };
  pass({share.begin,
        share.begin + std::min<std::uint64_t>(share.size() / 4, 1 << 18)});  // warms caches and MPI's memory
  table.reset();
  const double seconds = pass(share);
  const auto value_of = [&](std::uint64_t a) { return bench::back_of(a, arguments.bytes); };
  const std::uint64_t errors = total(damaged + table.undo_and_count_errors(blocks, me, updates_all, value_of));
  bench::Json record = make_peer_record(arguments, arguments.bytes, updates_all, seconds, errors);
  record["table_log2"] = arguments.log2;
  record["errors"] = errors;
  return record;
}

}  // namespace

bench::Json run_randomaccess(const Arguments& arguments) {
  int me = 0, pes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  return randomaccess::with_blocks(arguments.log2, std::size_t(pes), std::size_t(me), [&](const auto& blocks) {
    const auto with = [&](const auto& updates) {
      return measure(arguments, blocks, updates, std::size_t(me), std::size_t(pes));
    };
    return arguments.bytes == Values::bytes() ? with(Values()) : with_items(arguments.bytes, std::size_t(me), with);
  });
}

}  // namespace headway::peers
