#include <randomaccess/sequence.hpp>
#include <randomaccess/table.hpp>

#include "buckets.hpp"
#include "direct.hpp"
#include "peer.hpp"

namespace headway::peers {
namespace {

using randomaccess::Share;
using randomaccess::step;
using randomaccess::Table;

template <class Blocks>
void apply_all(std::uint64_t* __restrict table, const Blocks blocks, const std::uint64_t* __restrict items,
               std::size_t count) {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const std::uint64_t a = items[i], b = items[i + 1], c = items[i + 2], d = items[i + 3];
    table[blocks.slot(a)] ^= a;
    table[blocks.slot(b)] ^= b;
    table[blocks.slot(c)] ^= c;
    table[blocks.slot(d)] ^= d;
  }
  for (; i < count; ++i) table[blocks.slot(items[i])] ^= items[i];
}

template <class Blocks>
void update_by_buckets(Table& table, const Blocks blocks, Share share, std::size_t bucket_bytes) {
  Buckets<std::uint64_t> buckets(MPI_COMM_WORLD, 1, bucket_bytes);
  std::uint64_t** const cursors = buckets.cursors();
  const std::size_t few = std::max<std::size_t>(1, buckets.capacity() / 32);
  const auto apply = [&](const std::uint64_t* items, std::size_t count, std::size_t /*rank*/) {
    apply_all(table.data(), blocks, items, count);
  };
  std::uint64_t a = randomaccess::starts(share.begin), left = share.size();
  do {
    // As many as fit wherever they go need no test each; a round ends when only few would.
    for (std::size_t room = buckets.room(); left > 0 && room >= few; room = buckets.room()) {
      const std::size_t now = std::min<std::uint64_t>(left, room);
      left -= now;
      for (std::size_t i = 0; i < now; ++i) {
        a = step(a);
        *cursors[blocks.owner(a)]++ = a;
      }
    }
  } while (!buckets.exchange(left == 0, apply));
}

template <class Blocks>
void update_directly(Table& table, const Blocks blocks, std::size_t me, Share share) {
  std::uint64_t* const words = table.data();
  const auto handle = [words, blocks](const std::byte* item) {
    std::uint64_t a;
    std::memcpy(&a, item, sizeof a);
    words[blocks.slot(a)] ^= a;
  };
  DirectMessages messages(MPI_COMM_WORLD, sizeof(std::uint64_t), handle);
  std::uint64_t a = randomaccess::starts(share.begin);
  for (std::uint64_t left = share.size(); left > 0; --left) {
    a = step(a);
    const std::size_t owner = blocks.owner(a);
    if (owner == me) {
      words[blocks.slot(a)] ^= a;
    } else {
      std::memcpy(messages.next(), &a, sizeof a);
      messages.send(owner);
    }
  }
  messages.finish();
  MPI_Barrier(MPI_COMM_WORLD);
}

template <class Blocks>
bench::Json measure(const Arguments& arguments, const Blocks blocks, std::size_t me, std::size_t pes) {
  const auto words = std::uint64_t(1) << arguments.log2;
  const auto updates = std::uint64_t(double(words) * arguments.updates_per_word);
  const Share share = randomaccess::share_of(updates, me, pes);
  Table table(blocks, me);
  const auto pass = [&](Share part) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (arguments.mode == "mpi-direct") {
      update_directly(table, blocks, me, part);
    } else {
      update_by_buckets(table, blocks, part, arguments.buffer_bytes);
    }
    return slowest(MPI_Wtime() - begin);
  };
  pass({share.begin,
        share.begin + std::min<std::uint64_t>(share.size() / 4, 1 << 18)});  // warms caches and MPI's memory
  table.reset();
  const double seconds = pass(share);
  const std::uint64_t errors = total(table.undo_and_count_errors(blocks, me, updates));
  bench::Json record = make_peer_record(arguments, sizeof(std::uint64_t), updates, seconds, errors);
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
    return measure(arguments, blocks, std::size_t(me), std::size_t(pes));
  });
}

}  // namespace headway::peers
