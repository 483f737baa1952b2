// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <numeric>

#include "buckets.hpp"
#include "direct.hpp"
#include "item.hpp"
#include "peer.hpp"

namespace headway::peers {
namespace {

constexpr std::uint64_t acknowledged_messages = 100;

/// The ranks that this rank exchanges messages with, and the acknowledgements.
struct Pattern {
  std::vector<std::size_t> others;  // to which this rank sends, and from which it gets
  bool acknowledged;                // every 100 messages
  bool waits;                       // for all acknowledgements, before the next 100 to each
};

Pattern pattern_of(const std::string& bench, std::size_t me, std::size_t pes) {
  if (bench != "synthetic") return {{me ^ 1}, bench == "staggered", false};
  std::vector<std::size_t> others;
  for (std::size_t step = 1; step < pes; ++step) others.push_back((me + step) % pes);
  return {others, true, true};
}

/// An exchange of buckets is an acknowledgement: when it returns, the receivers have handled all earlier messages. A
/// pattern that waits for acknowledgements therefore fills no bucket beyond 100 messages.
template <class Item, class Handle>
void send_by_buckets(const Items<Item>& items, const Pattern& pattern, std::uint64_t messages, std::size_t bucket_bytes,
                     Handle handle) {
  const std::size_t bytes = items.bytes();
  if (pattern.waits) bucket_bytes = std::min(bucket_bytes, acknowledged_messages * bytes);
  Buckets<std::byte> buckets(MPI_COMM_WORLD, bytes, bucket_bytes);
  const auto apply = [&](const std::byte* received, std::size_t count, std::size_t source) {
    for (std::size_t i = 0; i < count; ++i) handle(received + i * bytes, source);
  };
  std::uint64_t sent = 0;
  do {
    const std::size_t now = std::min<std::uint64_t>(buckets.capacity(), messages - sent);
    for (const std::size_t other : pattern.others) {
      std::byte* cursor = buckets.cursors()[other];
      for (std::size_t i = 0; i < now; ++i, cursor += bytes) items.write(cursor, sent + i);
      buckets.cursors()[other] = cursor;
    }
    sent += now;
  } while (!buckets.exchange(sent == messages, apply));
}

/// A message per item, nothing else.
template <class Item, class Handle>
void send_directly(const Items<Item>& items, const Pattern& pattern, std::uint64_t messages, Handle handle) {
  DirectMessages direct(MPI_COMM_WORLD, items.bytes(), handle);
  for (std::uint64_t i = 0; i < messages; ++i) {
    for (const std::size_t other : pattern.others) {
      items.write(direct.next(), i);
      direct.send(other);
    }
  }
  direct.finish();
  MPI_Barrier(MPI_COMM_WORLD);
}

/// The same, with a message of 8 bytes back for every 100: how many of the sender's have been handled. Returns errors.
template <class Item, class Handle>
std::uint64_t send_acknowledged(const Items<Item>& items, const Pattern& pattern, std::uint64_t messages,
                                std::size_t pes, Handle handle) {
  std::vector<std::uint64_t> came(pes), confirmed(pes);
  const auto confirm = [&](const std::byte* item, std::size_t source) {
    std::memcpy(&confirmed[source], item, sizeof confirmed[source]);  // of one source they come in order
  };
  DirectMessages acknowledgements(MPI_COMM_WORLD, sizeof(std::uint64_t), confirm, 1);
  const auto handle_and_tell = [&](const std::byte* item, std::size_t source) {
    handle(item, source);
    if (++came[source] % acknowledged_messages != 0) return;
    std::memcpy(acknowledgements.next(), &came[source], sizeof came[source]);
    acknowledgements.send(source);
  };
  DirectMessages direct(MPI_COMM_WORLD, items.bytes(), handle_and_tell);
  const auto all_confirmed = [&] { return std::accumulate(confirmed.begin(), confirmed.end(), std::uint64_t(0)); };
  for (std::uint64_t sent = 0; sent < messages;) {
    const std::uint64_t end = std::min(messages, sent + acknowledged_messages);
    for (; sent < end; ++sent) {
      for (const std::size_t other : pattern.others) {
        items.write(direct.next(), sent);
        direct.send(other);
      }
    }
    const std::uint64_t expected = end / acknowledged_messages * acknowledged_messages * pattern.others.size();
    do {
      direct.poll();
      acknowledgements.poll();
    } while (pattern.waits && all_confirmed() < expected);
  }
  direct.finish();
  acknowledgements.finish();
  MPI_Barrier(MPI_COMM_WORLD);
  return all_confirmed() != messages / acknowledged_messages * acknowledged_messages * pattern.others.size();
}

template <class Item>
bench::Json measure(const Arguments& arguments, const Items<Item>& items, const Pattern& pattern, std::size_t pes) {
  std::uint64_t errors = 0;
  const auto pass = [&](std::uint64_t messages, auto handle) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (arguments.mode == "mpi-alltoallv") {
      send_by_buckets(items, pattern, messages, arguments.buffer_bytes, handle);
    } else if (pattern.acknowledged) {
      errors += send_acknowledged(items, pattern, messages, pes, handle);
    } else {
      send_directly(items, pattern, messages, handle);
    }
    return slowest(MPI_Wtime() - begin);
  };
  // Every byte of some messages, which also warms caches and MPI's memory; then all of them, timed, by their sums.
  const std::uint64_t some = bench::checked_messages(arguments.messages, arguments.bytes);
  std::map<std::size_t, bench::Checker> checkers;
  for (const std::size_t other : pattern.others) checkers.try_emplace(other, arguments.bytes, some, other);
  pass(some, [&](const std::byte* item, std::size_t source) { checkers.at(source)(item, arguments.bytes); });
  for (const auto& [source, checker] : checkers) errors += checker.errors();
  bench::Sum sum;
  const double seconds = pass(arguments.messages, [&sum, &items](const std::byte* item, std::size_t /*source*/) {
    bench::add(sum, items.ends(item));
  });
  errors += sum != bench::expected_sum(arguments.messages, arguments.bytes) * pattern.others.size();
  return make_peer_record(arguments, arguments.bytes, total(arguments.messages * pattern.others.size()), seconds,
                          total(errors));
}

}  // namespace

bench::Json run_messages(const Arguments& arguments) {
  int me = 0, pes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  const Pattern pattern = pattern_of(arguments.bench, std::size_t(me), std::size_t(pes));
  return with_items(arguments.bytes, std::size_t(me),
                    [&](const auto& items) { return measure(arguments, items, pattern, std::size_t(pes)); });
}

}  // namespace headway::peers
