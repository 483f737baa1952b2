// SPDX-License-Identifier: BSD-3-Clause
#include "zerocopy.hpp"

#include "peer.hpp"

namespace headway::peers {
namespace {

/// MPI_Send and MPI_Recv of one size, between a rank and its partner.
struct MpiWire {
  int partner, bytes;
  void meet() { MPI_Barrier(MPI_COMM_WORLD); }
  void send(const std::byte* from) { MPI_Send(from, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD); }
  void receive(std::byte* to) { MPI_Recv(to, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
};

}  // namespace

bench::Json run_zerocopy(const Arguments& arguments) {
  int me = 0, pes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &pes);
  const ZerocopyWork work{arguments.bytes, arguments.messages, arguments.buffers == "fresh", arguments.touch};
  MpiWire wire{me ^ 1, int(work.bytes)};
  const ZerocopyResult result = play_zerocopy(wire, work, std::size_t(me));
  const double one_way_us = me % 2 == 0 ? result.one_way_us : 0;
  double in_all = 0;
  MPI_Allreduce(&one_way_us, &in_all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  bench::Json record = make_peer_record(arguments, work.bytes, work.messages * std::uint64_t(pes),
                                        slowest(result.seconds), total(result.errors));
  const auto pairs = pes / 2;
  add_zerocopy_fields(record, work, in_all / double(pairs));
  return record;
}

}  // namespace headway::peers
