// SPDX-License-Identifier: BSD-3-Clause
/// Start and end, one-sided access, datatypes and communicators.
#include <cstdlib>

#include "recorder.hpp"

using namespace headway::mpi_report;

namespace {

HEADWAY_REAL(Query_thread);

/// After MPI_Init: calls of MPI that it made itself did not count.
void begin() {
  int level = MPI_THREAD_SINGLE;
  real_Query_thread(&level);
  recorder.begin(level);
}

}  // namespace

// Not counted: their time is not the program's.
HEADWAY_FUNCTION(Init, (int* argc, char*** argv), {
  ++depth;
  const int error = real_Init(argc, argv);
  if (error == MPI_SUCCESS) begin();
  --depth;
  return error;
})
HEADWAY_FUNCTION(Init_thread, (int* argc, char*** argv, int wanted, int* provided), {
  ++depth;
  const int error = real_Init_thread(argc, argv, wanted, provided);
  if (error == MPI_SUCCESS) begin();
  --depth;
  return error;
})
HEADWAY_FUNCTION(Finalize, (void), {
  recorder.end();
  return real_Finalize();
})

// One-sided access.
#define UNPACK(...) __VA_ARGS__
#define ACCESS(Count) \
  const void *from, Count n, MPI_Datatype type, int target, MPI_Aint at, Count to_n, MPI_Datatype to_type
#define GETS(Count) void *to, Count n, MPI_Datatype type, int target, MPI_Aint at, Count to_n, MPI_Datatype to_type
#define ARGS(first) first, n, type, target, at, to_n, to_type
#define NOTE recorder.one_sided(std::uint64_t(n), type, target, win, call.row())
#define ONE_SIDED(suffix, Count)                                                                                       \
  HEADWAY_WRAP_AS(Put, Put##suffix, (ACCESS(Count), MPI_Win win), (ARGS(from), win), NOTE, )                           \
  HEADWAY_WRAP_AS(Get, Get##suffix, (GETS(Count), MPI_Win win), (ARGS(to), win), NOTE, )                               \
  HEADWAY_WRAP_AS(Accumulate, Accumulate##suffix, (ACCESS(Count), MPI_Op op, MPI_Win win), (ARGS(from), op, win),      \
                  NOTE, )                                                                                              \
  HEADWAY_WRAP_AS(Rput, Rput##suffix, (ACCESS(Count), MPI_Win win, MPI_Request * request), (ARGS(from), win, request), \
                  NOTE, recorder.started_other())                                                                      \
  HEADWAY_WRAP_AS(Rget, Rget##suffix, (GETS(Count), MPI_Win win, MPI_Request * request), (ARGS(to), win, request),     \
                  NOTE, recorder.started_other())                                                                      \
  HEADWAY_WRAP_AS(Raccumulate, Raccumulate##suffix, (ACCESS(Count), MPI_Op op, MPI_Win win, MPI_Request * request),    \
                  (ARGS(from), op, win, request), NOTE, recorder.started_other())                                      \
  HEADWAY_WRAP_AS(                                                                                                     \
      Get_accumulate, Get_accumulate##suffix,                                                                          \
      (const void* from, Count n, MPI_Datatype type, void* result, Count result_n, MPI_Datatype result_type,           \
       int target, MPI_Aint at, Count to_n, MPI_Datatype to_type, MPI_Op op, MPI_Win win),                             \
      (from, n, type, result, result_n, result_type, target, at, to_n, to_type, op, win), NOTE, )
ONE_SIDED(, int)
#if MPI_VERSION >= 4
ONE_SIDED(_c, MPI_Count)
#endif
HEADWAY_WRAP(Fetch_and_op,
             (const void* from, void* result, MPI_Datatype type, int target, MPI_Aint at, MPI_Op op, MPI_Win win),
             (from, result, type, target, at, op, win), recorder.one_sided(1, type, target, win, call.row()), )
HEADWAY_WRAP(Compare_and_swap,
             (const void* from, const void* compared, void* result, MPI_Datatype type, int target, MPI_Aint at,
              MPI_Win win),
             (from, compared, result, type, target, at, win), recorder.one_sided(1, type, target, win, call.row()), )
HEADWAY_WRAP(Win_fence, (int assertion, MPI_Win win), (assertion, win), , recorder.synchronized())
HEADWAY_WRAP(Win_lock, (int kind, int rank, int assertion, MPI_Win win), (kind, rank, assertion, win), , )
HEADWAY_WRAP(Win_unlock, (int rank, MPI_Win win), (rank, win), , )
HEADWAY_WRAP(Win_lock_all, (int assertion, MPI_Win win), (assertion, win), , )
HEADWAY_WRAP(Win_unlock_all, (MPI_Win win), (win), , )
HEADWAY_WRAP(Win_flush, (int rank, MPI_Win win), (rank, win), , )
HEADWAY_WRAP(Win_flush_all, (MPI_Win win), (win), , )
HEADWAY_WRAP(Win_flush_local, (int rank, MPI_Win win), (rank, win), , )
HEADWAY_WRAP(Win_flush_local_all, (MPI_Win win), (win), , )
HEADWAY_WRAP(Win_post, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win), , )
HEADWAY_WRAP(Win_start, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win), , )
HEADWAY_WRAP(Win_complete, (MPI_Win win), (win), , )
HEADWAY_WRAP(Win_wait, (MPI_Win win), (win), , )
HEADWAY_WRAP(Win_free, (MPI_Win * win), (win), recorder.forget(key_of(*win) * 2 + 1), )

// Datatypes.
HEADWAY_WRAP(Pack, (const void* data, int count, MPI_Datatype type, void* to, int bytes, int* position, MPI_Comm comm),
             (data, count, type, to, bytes, position, comm),
             call.row().bytes += std::uint64_t(count) * recorder.type_of(type).bytes, )
HEADWAY_WRAP(Unpack,
             (const void* from, int bytes, int* position, void* data, int count, MPI_Datatype type, MPI_Comm comm),
             (from, bytes, position, data, count, type, comm),
             call.row().bytes += std::uint64_t(count) * recorder.type_of(type).bytes, )
HEADWAY_WRAP(Type_commit, (MPI_Datatype * type), (type), , )
HEADWAY_WRAP(Type_free, (MPI_Datatype * type), (type), recorder.forget_type(*type), )

// Communicators.
HEADWAY_WRAP(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made), , )
HEADWAY_WRAP(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made), , )
HEADWAY_WRAP(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* made), (comm, group, made), , )
HEADWAY_WRAP(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made), (comm, group, tag, made), , )
HEADWAY_WRAP(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
             (comm, type, key, info, made), , )
HEADWAY_WRAP(Cart_create,
             (MPI_Comm comm, int n, const int* dimensions, const int* periods, int reorder, MPI_Comm* made),
             (comm, n, dimensions, periods, reorder, made), , )
HEADWAY_WRAP(Dist_graph_create,
             (MPI_Comm comm, int n, const int* sources, const int* degrees, const int* targets, const int* weights,
              MPI_Info info, int reorder, MPI_Comm* made),
             (comm, n, sources, degrees, targets, weights, info, reorder, made), , )
HEADWAY_WRAP(Dist_graph_create_adjacent,
             (MPI_Comm comm, int in, const int* sources, const int* in_weights, int out, const int* targets,
              const int* out_weights, MPI_Info info, int reorder, MPI_Comm* made),
             (comm, in, sources, in_weights, out, targets, out_weights, info, reorder, made), , )
HEADWAY_WRAP(Comm_free, (MPI_Comm * comm), (comm), recorder.forget(key_of(*comm) * 2), )
