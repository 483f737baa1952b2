// SPDX-License-Identifier: BSD-3-Clause
/// Collective functions. Bytes are those that the rank contributes.
#include "recorder.hpp"

using namespace headway::mpi_report;

namespace {

HEADWAY_REAL(Comm_rank);

bool is_root(int root, MPI_Comm comm) {
  int rank = 0;
  real_Comm_rank(comm, &rank);
  return root == MPI_ROOT || rank == root;
}

void scattered(std::uint64_t count, MPI_Datatype type, MPI_Comm comm, int root, FunctionRow& row) {
  if (is_root(root, comm)) recorder.collective(count * unsigned(recorder.size_of(comm)), type, row);
}

template <class Count>
std::uint64_t own_part(const Count* counts, MPI_Comm comm) {
  int rank = 0;
  real_Comm_rank(comm, &rank);
  return std::uint64_t(counts[rank]);
}

template <class Count>
void scattered_v(const Count* counts, MPI_Datatype type, MPI_Comm comm, int root, FunctionRow& row) {
  if (!is_root(root, comm)) return;
  std::uint64_t all = 0;
  for (int i = 0; i < recorder.size_of(comm); ++i) all += std::uint64_t(counts[i]);
  recorder.collective(all, type, row);
}

template <class Count>
void reduced_scattered(const Count* counts, MPI_Datatype type, MPI_Comm comm, FunctionRow& row) {
  std::uint64_t all = 0;
  for (int i = 0; i < recorder.size_of(comm); ++i) all += std::uint64_t(counts[i]);
  recorder.reduction(all, type, row);
}

/// What a rank gives to a collective that takes its send buffer, or with MPI_IN_PLACE its part of the receive buffer.
void given(const void* from, std::uint64_t count, MPI_Datatype type, std::uint64_t to_count, MPI_Datatype to_type,
           FunctionRow& row) {
  from == MPI_IN_PLACE ? recorder.collective(to_count, to_type, row) : recorder.collective(count, type, row);
}

void to_all(const void* from, std::uint64_t count, MPI_Datatype type, std::uint64_t to_count, MPI_Datatype to_type,
            MPI_Comm comm, FunctionRow& row) {
  const bool in_place = from == MPI_IN_PLACE;
  const std::uint64_t bytes = (in_place ? to_count : count) * recorder.type_of(in_place ? to_type : type).bytes;
  recorder.blocks(
      comm, [&](std::size_t) { return bytes; }, row);
}

template <class Count>
void to_all_v(const void* from, const Count* counts, MPI_Datatype type, const Count* to_counts, MPI_Datatype to_type,
              MPI_Comm comm, FunctionRow& row) {
  const bool in_place = from == MPI_IN_PLACE;
  const std::uint64_t bytes = recorder.type_of(in_place ? to_type : type).bytes;
  const Count* const of = in_place ? to_counts : counts;
  recorder.blocks(
      comm, [&](std::size_t i) { return std::uint64_t(of[i]) * bytes; }, row);
}

template <class Count>
void to_all_w(const void* from, const Count* counts, const MPI_Datatype* types, const Count* to_counts,
              const MPI_Datatype* to_types, MPI_Comm comm, FunctionRow& row) {
  const bool in_place = from == MPI_IN_PLACE;
  recorder.blocks(
      comm,
      [&](std::size_t i) {
        return std::uint64_t((in_place ? to_counts : counts)[i]) *
               recorder.type_of((in_place ? to_types : types)[i]).bytes;
      },
      row);
}

std::vector<std::uint64_t> block_bytes;

template <class Bytes>
void to_neighbours(MPI_Comm comm, Bytes bytes_of, FunctionRow& row) {
  block_bytes.resize(recorder.ranks_of(comm).neighbours.size());
  for (std::size_t i = 0; i < block_bytes.size(); ++i) block_bytes[i] = bytes_of(i);
  recorder.neighbour_blocks(comm, row, block_bytes);
}

}  // namespace

// BOTH(Name, Iname, parameters, arguments, note): the blocking and the non-blocking form.
#define UNPACK(...) __VA_ARGS__
#define BLOCKING(name, as, params, args, note) \
  HEADWAY_WRAP_AS(as, name, (UNPACK params), (UNPACK args), note, recorder.synchronized())
#define STARTING(name, as, params, args, note)                                                    \
  HEADWAY_WRAP_AS(as, name, (UNPACK params, MPI_Request * request), (UNPACK args, request), note, \
                  recorder.started_other())
#if MPI_VERSION >= 4
#define BOTH(name, iname, params, args, note)                       \
  BLOCKING(name, name, params(int, int), args, note)                \
  STARTING(iname, iname, params(int, int), args, note)              \
  BLOCKING(name##_c, name, params(MPI_Count, MPI_Aint), args, note) \
  STARTING(iname##_c, iname, params(MPI_Count, MPI_Aint), args, note)
#else
#define BOTH(name, iname, params, args, note)        \
  BLOCKING(name, name, params(int, int), args, note) \
  STARTING(iname, iname, params(int, int), args, note)
#endif

// Parameters, by the types of counts and displacements.
#define BCAST(Count, Shift) (void* data, Count count, MPI_Datatype type, int root, MPI_Comm comm)
#define GATHER(Count, Shift) \
  (const void* from, Count n, MPI_Datatype type, void* to, Count to_n, MPI_Datatype to_type, int root, MPI_Comm comm)
#define GATHERV(Count, Shift)                                                                                         \
  (const void* from, Count n, MPI_Datatype type, void* to, const Count* to_ns, const Shift* at, MPI_Datatype to_type, \
   int root, MPI_Comm comm)
#define SCATTERV(Count, Shift)                                                                                        \
  (const void* from, const Count* ns, const Shift* at, MPI_Datatype type, void* to, Count to_n, MPI_Datatype to_type, \
   int root, MPI_Comm comm)
#define ALLGATHER(Count, Shift) \
  (const void* from, Count n, MPI_Datatype type, void* to, Count to_n, MPI_Datatype to_type, MPI_Comm comm)
#define ALLGATHERV(Count, Shift)                                                                                      \
  (const void* from, Count n, MPI_Datatype type, void* to, const Count* to_ns, const Shift* at, MPI_Datatype to_type, \
   MPI_Comm comm)
#define ALLTOALLV(Count, Shift)                                                                         \
  (const void* from, const Count* ns, const Shift* at, MPI_Datatype type, void* to, const Count* to_ns, \
   const Shift* to_at, MPI_Datatype to_type, MPI_Comm comm)
#define ALLTOALLW(Count, Shift)                                                                                 \
  (const void* from, const Count* ns, const Shift* at, const MPI_Datatype* types, void* to, const Count* to_ns, \
   const Shift* to_at, const MPI_Datatype* to_types, MPI_Comm comm)
#define NEIGHBOURW(Count, Shift)                                                                                   \
  (const void* from, const Count* ns, const MPI_Aint* at, const MPI_Datatype* types, void* to, const Count* to_ns, \
   const MPI_Aint* to_at, const MPI_Datatype* to_types, MPI_Comm comm)
#define ALLREDUCE(Count, Shift) (const void* from, void* to, Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
#define REDUCE(Count, Shift) \
  (const void* from, void* to, Count n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
#define REDUCE_SCATTER(Count, Shift) \
  (const void* from, void* to, const Count* ns, MPI_Datatype type, MPI_Op op, MPI_Comm comm)

#define COUNT(n) std::uint64_t(n)
#define ROW call.row()

BLOCKING(Barrier, Barrier, (MPI_Comm comm), (comm), )
STARTING(Ibarrier, Ibarrier, (MPI_Comm comm), (comm), )
BOTH(Bcast, Ibcast, BCAST, (data, count, type, root, comm),
     if (is_root(root, comm)) recorder.collective(COUNT(count), type, ROW))
BOTH(Gather, Igather, GATHER, (from, n, type, to, to_n, to_type, root, comm),
     given(from, COUNT(n), type, COUNT(to_n), to_type, ROW))
BOTH(Gatherv, Igatherv, GATHERV, (from, n, type, to, to_ns, at, to_type, root, comm),
     if (from != MPI_IN_PLACE) recorder.collective(COUNT(n), type, ROW))
BOTH(Scatter, Iscatter, GATHER, (from, n, type, to, to_n, to_type, root, comm),
     scattered(COUNT(n), type, comm, root, ROW))
BOTH(Scatterv, Iscatterv, SCATTERV, (from, ns, at, type, to, to_n, to_type, root, comm),
     scattered_v(ns, type, comm, root, ROW))
BOTH(Allgather, Iallgather, ALLGATHER, (from, n, type, to, to_n, to_type, comm),
     given(from, COUNT(n), type, COUNT(to_n), to_type, ROW))
BOTH(Allgatherv, Iallgatherv, ALLGATHERV, (from, n, type, to, to_ns, at, to_type, comm),
     given(from, COUNT(n), type, own_part(to_ns, comm), to_type, ROW))
BOTH(Alltoall, Ialltoall, ALLGATHER, (from, n, type, to, to_n, to_type, comm),
     to_all(from, COUNT(n), type, COUNT(to_n), to_type, comm, ROW))
BOTH(Alltoallv, Ialltoallv, ALLTOALLV, (from, ns, at, type, to, to_ns, to_at, to_type, comm),
     to_all_v(from, ns, type, to_ns, to_type, comm, ROW))
BOTH(Alltoallw, Ialltoallw, ALLTOALLW, (from, ns, at, types, to, to_ns, to_at, to_types, comm),
     to_all_w(from, ns, types, to_ns, to_types, comm, ROW))
BOTH(Allreduce, Iallreduce, ALLREDUCE, (from, to, n, type, op, comm), recorder.reduction(COUNT(n), type, ROW))
BOTH(Reduce, Ireduce, REDUCE, (from, to, n, type, op, root, comm), recorder.reduction(COUNT(n), type, ROW))
BOTH(Reduce_scatter, Ireduce_scatter, REDUCE_SCATTER, (from, to, ns, type, op, comm),
     reduced_scattered(ns, type, comm, ROW))
BOTH(Reduce_scatter_block, Ireduce_scatter_block, ALLREDUCE, (from, to, n, type, op, comm),
     recorder.reduction(COUNT(n) * unsigned(recorder.size_of(comm)), type, ROW))
BOTH(Scan, Iscan, ALLREDUCE, (from, to, n, type, op, comm), recorder.reduction(COUNT(n), type, ROW))
BOTH(Exscan, Iexscan, ALLREDUCE, (from, to, n, type, op, comm), recorder.reduction(COUNT(n), type, ROW))

// Neighbourhood collectives: a message to each neighbour.
#define EACH(bytes) \
  to_neighbours(    \
      comm, [&]([[maybe_unused]] std::size_t i) { return bytes; }, ROW)
BOTH(Neighbor_allgather, Ineighbor_allgather, ALLGATHER, (from, n, type, to, to_n, to_type, comm),
     EACH(COUNT(n) * recorder.type_of(type).bytes))
BOTH(Neighbor_allgatherv, Ineighbor_allgatherv, ALLGATHERV, (from, n, type, to, to_ns, at, to_type, comm),
     EACH(COUNT(n) * recorder.type_of(type).bytes))
BOTH(Neighbor_alltoall, Ineighbor_alltoall, ALLGATHER, (from, n, type, to, to_n, to_type, comm),
     EACH(COUNT(n) * recorder.type_of(type).bytes))
BOTH(Neighbor_alltoallv, Ineighbor_alltoallv, ALLTOALLV, (from, ns, at, type, to, to_ns, to_at, to_type, comm),
     EACH(COUNT(ns[i]) * recorder.type_of(type).bytes))
BOTH(Neighbor_alltoallw, Ineighbor_alltoallw, NEIGHBOURW, (from, ns, at, types, to, to_ns, to_at, to_types, comm),
     EACH(COUNT(ns[i]) * recorder.type_of(types[i]).bytes))
