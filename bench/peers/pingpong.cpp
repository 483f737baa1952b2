// SPDX-License-Identifier: BSD-3-Clause
#include <headway/base/clock.hpp>
#include <message/laps.hpp>

#include "item.hpp"
#include "peer.hpp"

namespace headway::peers {
namespace {

/// `trips` times a message to the partner by MPI_Send and MPI_Recv, and one back. handle(item) for each that comes.
template <class Item, class Handle>
bench::Laps play(const Items<Item>& items, int me, std::uint64_t trips, Bytes& out, Bytes& in, Handle handle) {
  const int partner = me ^ 1, bytes = int(items.bytes());
  const auto hit = [&](std::uint64_t trip) {
    items.write(out.data(), trip);
    MPI_Send(out.data(), bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
  };
  MPI_Barrier(MPI_COMM_WORLD);
  bench::Laps laps(trips, base::monotonic_ns());
  for (std::uint64_t trip = 0; trip < trips; ++trip) {
    if (me % 2 == 0) hit(trip);
    MPI_Recv(in.data(), bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    handle(in.data());
    if (me % 2 != 0) hit(trip);
    if (laps.due(trip + 1)) laps.mark(base::monotonic_ns());
  }
  return laps;
}

template <class Item>
bench::Json measure(const Arguments& arguments, const Items<Item>& items, int me, int pes) {
  Bytes out(arguments.bytes), in(arguments.bytes);
  const std::uint64_t some = bench::checked_messages(arguments.messages, arguments.bytes);
  bench::Checker checker(arguments.bytes, some, std::size_t(me) ^ 1);
  play(items, me, some, out, in, [&](const std::byte* item) { checker(item, arguments.bytes); });

  bench::Sum sum;
  const double begin = MPI_Wtime();
  const bench::Laps laps =
      play(items, me, arguments.messages, out, in, [&](const std::byte* item) { bench::add(sum, items.ends(item)); });
  const double seconds = slowest(MPI_Wtime() - begin);

  const double one_way_us = me % 2 == 0 ? laps.one_way_us() : 0;
  double in_all = 0;
  MPI_Allreduce(&one_way_us, &in_all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const bool wrong = sum != bench::expected_sum(arguments.messages, arguments.bytes);
  const std::uint64_t errors = total(checker.errors() + (wrong ? 1 : 0));
  bench::Json record =
      make_peer_record(arguments, arguments.bytes, arguments.messages * std::uint64_t(pes), seconds, errors);
  const auto pairs = pes / 2;
  record["one_way_us"] = bench::to_json(bench::spread_of({in_all / double(pairs)}));
  return record;
}

}  // namespace

bench::Json run_pingpong(const Arguments& arguments) {
  int me = 0, pes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  return with_items(arguments.bytes, std::size_t(me),
                    [&](const auto& items) { return measure(arguments, items, me, pes); });
}

}  // namespace headway::peers
