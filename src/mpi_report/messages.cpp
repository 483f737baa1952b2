// SPDX-License-Identifier: BSD-3-Clause
/// Point-to-point functions.
#include "recorder.hpp"

using namespace headway::mpi_report;

// Functions that start or do a send. Those with _c have counts of MPI_Count.
#define SENDS(name, as, Count)                                                                                      \
  HEADWAY_WRAP_AS(as, name, (const void* data, Count count, MPI_Datatype type, int target, int tag, MPI_Comm comm), \
                  (data, count, type, target, tag, comm),                                                           \
                  recorder.sends(std::uint64_t(count), type, target, tag, comm, call.row()), )
#define STARTS_SEND(name, as, Count)                                                                                \
  HEADWAY_WRAP_AS(                                                                                                  \
      as, name,                                                                                                     \
      (const void* data, Count count, MPI_Datatype type, int target, int tag, MPI_Comm comm, MPI_Request* request), \
      (data, count, type, target, tag, comm, request),                                                              \
      (recorder.sends(std::uint64_t(count), type, target, tag, comm, call.row()), recorder.started()), )
#define PERSISTENT_SEND(name, as, Count)                                                                            \
  HEADWAY_WRAP_AS(                                                                                                  \
      as, name,                                                                                                     \
      (const void* data, Count count, MPI_Datatype type, int target, int tag, MPI_Comm comm, MPI_Request* request), \
      (data, count, type, target, tag, comm, request), ,                                                            \
      recorder.track_persistent(*request, Tracked::persistent_send, std::uint64_t(count), type, target, tag, comm))
#define STARTS_RECEIVE(name, as, Count)                                                                       \
  HEADWAY_WRAP_AS(                                                                                            \
      as, name,                                                                                               \
      (void* data, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request), \
      (data, count, type, source, tag, comm, request), recorder.posts_receive(source, tag, comm),             \
      recorder.track_receive(*request, source, comm))
#define PERSISTENT_RECEIVE(name, as, Count)                                                                   \
  HEADWAY_WRAP_AS(                                                                                            \
      as, name,                                                                                               \
      (void* data, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request), \
      (data, count, type, source, tag, comm, request), ,                                                      \
      recorder.track_persistent(*request, Tracked::persistent_receive, std::uint64_t(count), type, source, tag, comm))
// A status of our own tells the source where the program ignores it.
#define RECEIVES(name, as, Count)                                                                                   \
  HEADWAY_FUNCTION(                                                                                                 \
      name, (void* data, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status), { \
        const Call call(Function::as);                                                                              \
        MPI_Status own;                                                                                             \
        if (status == MPI_STATUS_IGNORE) status = &own;                                                             \
        if (call) {                                                                                                 \
          const Held held;                                                                                          \
          recorder.posts_receive(source, tag, comm);                                                                \
        }                                                                                                           \
        const int error = real_##name(data, count, type, source, tag, comm, status);                                \
        if (call && source != MPI_PROC_NULL) {                                                                      \
          const Held held;                                                                                          \
          recorder.received(recorder.ranks_of(comm), status->MPI_SOURCE, source == MPI_ANY_SOURCE);                 \
        }                                                                                                           \
        return error;                                                                                               \
      })
#define SENDS_AND_RECEIVES(name, as, Count)                                                                          \
  HEADWAY_FUNCTION(name,                                                                                             \
                   (const void* data, Count count, MPI_Datatype type, int target, int tag, void* to, Count to_count, \
                    MPI_Datatype to_type, int source, int from_tag, MPI_Comm comm, MPI_Status* status),              \
                   {                                                                                                 \
                     const Call call(Function::as);                                                                  \
                     MPI_Status own;                                                                                 \
                     if (status == MPI_STATUS_IGNORE) status = &own;                                                 \
                     if (call) {                                                                                     \
                       const Held held;                                                                              \
                       recorder.sends(std::uint64_t(count), type, target, tag, comm, call.row());                    \
                       recorder.posts_receive(source, from_tag, comm);                                               \
                     }                                                                                               \
                     const int error = real_##name(data, count, type, target, tag, to, to_count, to_type, source,    \
                                                   from_tag, comm, status);                                          \
                     if (call && source != MPI_PROC_NULL) {                                                          \
                       const Held held;                                                                              \
                       recorder.received(recorder.ranks_of(comm), status->MPI_SOURCE, source == MPI_ANY_SOURCE);     \
                     }                                                                                               \
                     return error;                                                                                   \
                   })
#define REPLACES(name, as, Count)                                                                                   \
  HEADWAY_FUNCTION(name,                                                                                            \
                   (void* data, Count count, MPI_Datatype type, int target, int tag, int source, int from_tag,      \
                    MPI_Comm comm, MPI_Status* status),                                                             \
                   {                                                                                                \
                     const Call call(Function::as);                                                                 \
                     MPI_Status own;                                                                                \
                     if (status == MPI_STATUS_IGNORE) status = &own;                                                \
                     if (call) {                                                                                    \
                       const Held held;                                                                             \
                       recorder.sends(std::uint64_t(count), type, target, tag, comm, call.row());                   \
                       recorder.posts_receive(source, from_tag, comm);                                              \
                     }                                                                                              \
                     const int error = real_##name(data, count, type, target, tag, source, from_tag, comm, status); \
                     if (call && source != MPI_PROC_NULL) {                                                         \
                       const Held held;                                                                             \
                       recorder.received(recorder.ranks_of(comm), status->MPI_SOURCE, source == MPI_ANY_SOURCE);    \
                     }                                                                                              \
                     return error;                                                                                  \
                   })

SENDS(Send, Send, int)
SENDS(Bsend, Bsend, int)
SENDS(Ssend, Ssend, int)
SENDS(Rsend, Rsend, int)
STARTS_SEND(Isend, Isend, int)
STARTS_SEND(Ibsend, Ibsend, int)
STARTS_SEND(Issend, Issend, int)
STARTS_SEND(Irsend, Irsend, int)
PERSISTENT_SEND(Send_init, Send_init, int)
PERSISTENT_SEND(Bsend_init, Bsend_init, int)
PERSISTENT_SEND(Ssend_init, Ssend_init, int)
PERSISTENT_SEND(Rsend_init, Rsend_init, int)
RECEIVES(Recv, Recv, int)
STARTS_RECEIVE(Irecv, Irecv, int)
PERSISTENT_RECEIVE(Recv_init, Recv_init, int)
SENDS_AND_RECEIVES(Sendrecv, Sendrecv, int)
REPLACES(Sendrecv_replace, Sendrecv_replace, int)
#if MPI_VERSION >= 4
SENDS(Send_c, Send, MPI_Count)
SENDS(Bsend_c, Bsend, MPI_Count)
SENDS(Ssend_c, Ssend, MPI_Count)
SENDS(Rsend_c, Rsend, MPI_Count)
STARTS_SEND(Isend_c, Isend, MPI_Count)
STARTS_SEND(Ibsend_c, Ibsend, MPI_Count)
STARTS_SEND(Issend_c, Issend, MPI_Count)
STARTS_SEND(Irsend_c, Irsend, MPI_Count)
PERSISTENT_SEND(Send_init_c, Send_init, MPI_Count)
PERSISTENT_SEND(Bsend_init_c, Bsend_init, MPI_Count)
PERSISTENT_SEND(Ssend_init_c, Ssend_init, MPI_Count)
PERSISTENT_SEND(Rsend_init_c, Rsend_init, MPI_Count)
RECEIVES(Recv_c, Recv, MPI_Count)
STARTS_RECEIVE(Irecv_c, Irecv, MPI_Count)
PERSISTENT_RECEIVE(Recv_init_c, Recv_init, MPI_Count)
SENDS_AND_RECEIVES(Sendrecv_c, Sendrecv, MPI_Count)
REPLACES(Sendrecv_replace_c, Sendrecv_replace, MPI_Count)

// A partitioned send is one message; the bytes of all its partitions.
HEADWAY_WRAP(Psend_init,
             (const void* data, int partitions, MPI_Count count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Info info, MPI_Request* request),
             (data, partitions, count, type, target, tag, comm, info, request), ,
             recorder.track_persistent(*request, Tracked::persistent_send, std::uint64_t(count) * unsigned(partitions),
                                       type, target, tag, comm))
HEADWAY_WRAP(Precv_init,
             (void* data, int partitions, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Info info, MPI_Request* request),
             (data, partitions, count, type, source, tag, comm, info, request), ,
             recorder.track_persistent(*request, Tracked::persistent_receive,
                                       std::uint64_t(count) * unsigned(partitions), type, source, tag, comm))
HEADWAY_WRAP(Pready, (int partition, MPI_Request request), (partition, request), , )
HEADWAY_WRAP(Pready_range, (int low, int high, MPI_Request request), (low, high, request), , )
HEADWAY_WRAP(Parrived, (MPI_Request request, int partition, int* flag), (request, partition, flag), , )
#endif

// A probe of any source tells the program the source, and the receive that follows names it.
HEADWAY_WRAP(Probe, (int source, int tag, MPI_Comm comm, MPI_Status* status), (source, tag, comm, status), , {
  if (source == MPI_ANY_SOURCE && status != MPI_STATUS_IGNORE) recorder.probed(comm, status->MPI_SOURCE);
})
HEADWAY_WRAP(Iprobe, (int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status),
             (source, tag, comm, flag, status), , {
               if (*flag == 0) ++recorder.file().failed_tests;
               if (*flag != 0 && source == MPI_ANY_SOURCE && status != MPI_STATUS_IGNORE)
                 recorder.probed(comm, status->MPI_SOURCE);
             })
HEADWAY_WRAP(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status),
             (source, tag, comm, message, status), , {
               if (status != MPI_STATUS_IGNORE)
                 recorder.received(recorder.ranks_of(comm), status->MPI_SOURCE, source == MPI_ANY_SOURCE);
             })
HEADWAY_WRAP(Improbe, (int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status),
             (source, tag, comm, flag, message, status), , {
               if (*flag == 0) ++recorder.file().failed_tests;
               if (*flag != 0 && status != MPI_STATUS_IGNORE)
                 recorder.received(recorder.ranks_of(comm), status->MPI_SOURCE, source == MPI_ANY_SOURCE);
             })
HEADWAY_WRAP(Mrecv, (void* data, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status),
             (data, count, type, message, status), , )
HEADWAY_WRAP(Imrecv, (void* data, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request),
             (data, count, type, message, request), , recorder.started_other())
