// SPDX-License-Identifier: BSD-3-Clause
/// The MPI functions that are recorded, with their group.
#pragma once

namespace headway::mpi_report {

enum class Group {
  send,
  receive,
  exchange,
  start,
  wait,
  test,
  collective,
  collective_start,
  neighbour,
  one_sided,
  type,
  communicator
};

// HEADWAY_MPI_FUNCTIONS(X): X(name without MPI_, group) for each.
// clang-format off
#define HEADWAY_MPI_FUNCTIONS(X) \
  X(Send, send) X(Bsend, send) X(Ssend, send) X(Rsend, send) \
  X(Isend, start) X(Ibsend, start) X(Issend, start) X(Irsend, start) \
  X(Recv, receive) X(Mrecv, receive) X(Probe, receive) X(Mprobe, receive) \
  X(Irecv, start) X(Imrecv, start) X(Iprobe, test) X(Improbe, test) \
  X(Sendrecv, exchange) X(Sendrecv_replace, exchange) \
  X(Send_init, start) X(Bsend_init, start) X(Ssend_init, start) X(Rsend_init, start) X(Recv_init, start) \
  X(Psend_init, start) X(Precv_init, start) X(Pready, start) X(Pready_range, start) X(Parrived, test) \
  X(Start, start) X(Startall, start) \
  X(Wait, wait) X(Waitall, wait) X(Waitany, wait) X(Waitsome, wait) \
  X(Test, test) X(Testall, test) X(Testany, test) X(Testsome, test) X(Request_free, start) X(Cancel, start) \
  X(Barrier, collective) X(Bcast, collective) X(Gather, collective) X(Gatherv, collective) \
  X(Scatter, collective) X(Scatterv, collective) X(Allgather, collective) X(Allgatherv, collective) \
  X(Alltoall, collective) X(Alltoallv, collective) X(Alltoallw, collective) X(Allreduce, collective) \
  X(Reduce, collective) X(Reduce_scatter, collective) X(Reduce_scatter_block, collective) \
  X(Scan, collective) X(Exscan, collective) \
  X(Ibarrier, collective_start) X(Ibcast, collective_start) X(Igather, collective_start) \
  X(Igatherv, collective_start) X(Iscatter, collective_start) X(Iscatterv, collective_start) \
  X(Iallgather, collective_start) X(Iallgatherv, collective_start) X(Ialltoall, collective_start) \
  X(Ialltoallv, collective_start) X(Ialltoallw, collective_start) X(Iallreduce, collective_start) \
  X(Ireduce, collective_start) X(Ireduce_scatter, collective_start) X(Ireduce_scatter_block, collective_start) \
  X(Iscan, collective_start) X(Iexscan, collective_start) \
  X(Neighbor_allgather, neighbour) X(Neighbor_allgatherv, neighbour) X(Neighbor_alltoall, neighbour) \
  X(Neighbor_alltoallv, neighbour) X(Neighbor_alltoallw, neighbour) \
  X(Ineighbor_allgather, start) X(Ineighbor_allgatherv, start) X(Ineighbor_alltoall, start) \
  X(Ineighbor_alltoallv, start) X(Ineighbor_alltoallw, start) \
  X(Put, one_sided) X(Get, one_sided) X(Accumulate, one_sided) X(Get_accumulate, one_sided) \
  X(Fetch_and_op, one_sided) X(Compare_and_swap, one_sided) X(Rput, one_sided) X(Rget, one_sided) \
  X(Raccumulate, one_sided) X(Win_fence, one_sided) X(Win_lock, one_sided) X(Win_unlock, one_sided) \
  X(Win_lock_all, one_sided) X(Win_unlock_all, one_sided) X(Win_flush, one_sided) X(Win_flush_all, one_sided) \
  X(Win_flush_local, one_sided) X(Win_flush_local_all, one_sided) X(Win_post, one_sided) X(Win_start, one_sided) \
  X(Win_complete, one_sided) X(Win_wait, one_sided) X(Win_free, one_sided) \
  X(Pack, type) X(Unpack, type) X(Type_commit, type) X(Type_free, type) \
  X(Comm_dup, communicator) X(Comm_split, communicator) X(Comm_create, communicator) \
  X(Comm_create_group, communicator) X(Comm_split_type, communicator) X(Cart_create, communicator) \
  X(Dist_graph_create, communicator) X(Dist_graph_create_adjacent, communicator) X(Comm_free, communicator)
// clang-format on

#define HEADWAY_MPI_NAME(name, group) name,
enum class Function { HEADWAY_MPI_FUNCTIONS(HEADWAY_MPI_NAME) };
#undef HEADWAY_MPI_NAME

struct FunctionInfo {
  const char* name;  // without MPI_
  Group group;
};

#define HEADWAY_MPI_INFO(name, group) {#name, Group::group},
inline constexpr FunctionInfo functions[] = {HEADWAY_MPI_FUNCTIONS(HEADWAY_MPI_INFO)};
#undef HEADWAY_MPI_INFO

inline constexpr int function_count = int(sizeof functions / sizeof functions[0]);

/// Whether a call waits for other ranks, so that its time is waiting as far as it is not copying.
constexpr bool waits(Group group) {
  return group == Group::send || group == Group::receive || group == Group::exchange || group == Group::wait ||
         group == Group::collective || group == Group::neighbour;
}

}  // namespace headway::mpi_report
