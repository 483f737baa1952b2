// SPDX-License-Identifier: BSD-3-Clause
/// Functions that start, complete or free requests.
#include <vector>

#include "recorder.hpp"

using namespace headway::mpi_report;

namespace {

/// Handles before a call, which may set them to MPI_REQUEST_NULL, and statuses of our own where the program ignores
/// them and a receive of any source is under way.
struct Before {
  std::vector<std::uint64_t> keys;
  std::vector<MPI_Status> statuses;
};
thread_local Before before;

/// Keeps the handles of this call; this thread has only one under way.
std::uint64_t* keep(const MPI_Request* requests, int n) {
  before.keys.resize(std::size_t(n));
  for (int i = 0; i < n; ++i) before.keys[std::size_t(i)] = key_of(requests[i]);
  return before.keys.data();
}

const std::uint64_t null_key = key_of(MPI_REQUEST_NULL);

MPI_Status* statuses_for(MPI_Status* statuses, int n) {
  if (statuses != MPI_STATUSES_IGNORE || !recorder.must_see_statuses()) return statuses;
  before.statuses.resize(std::size_t(n));
  return before.statuses.data();
}

const MPI_Status* status_at(const MPI_Status* statuses, int i) {
  return statuses == MPI_STATUSES_IGNORE ? nullptr : statuses + i;
}

bool is_null(MPI_Request request) { return key_of(request) == null_key; }

/// Of the calls that complete all.
void all_completed(const std::uint64_t* keys, const MPI_Request* requests, int n, const MPI_Status* statuses) {
  for (int i = 0; i < n; ++i)
    if (keys[i] != null_key) recorder.completed(keys[i], is_null(requests[i]), status_at(statuses, i));
}

void some_completed(const std::uint64_t* keys, const MPI_Request* requests, int n, const int* indices,
                    const MPI_Status* statuses) {
  if (n == MPI_UNDEFINED) return;
  for (int i = 0; i < n; ++i)
    recorder.completed(keys[indices[i]], is_null(requests[indices[i]]), status_at(statuses, i));
}

}  // namespace

HEADWAY_WRAP(Start, (MPI_Request * request), (request), recorder.start_persistent(*request, call.row()), )
HEADWAY_WRAP(Startall, (int n, MPI_Request* requests), (n, requests),
             for (int i = 0; i < n; ++i) recorder.start_persistent(requests[i], call.row()), )
HEADWAY_WRAP(Request_free, (MPI_Request * request), (request), recorder.released(key_of(*request)), )
HEADWAY_WRAP(Cancel, (MPI_Request * request), (request), , )

HEADWAY_FUNCTION(Wait, (MPI_Request * request, MPI_Status* status), {
  const Call call(Function::Wait);
  if (!call) return real_Wait(request, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const std::uint64_t key = key_of(*request);
  const int error = real_Wait(request, status);
  const Held held;
  if (key != null_key) recorder.completed(key, is_null(*request), status);
  return error;
})

HEADWAY_FUNCTION(Waitall, (int n, MPI_Request* requests, MPI_Status* statuses), {
  const Call call(Function::Waitall);
  if (!call) return real_Waitall(n, requests, statuses);
  const std::uint64_t* const keys = keep(requests, n);
  statuses = statuses_for(statuses, n);
  const int error = real_Waitall(n, requests, statuses);
  const Held held;
  all_completed(keys, requests, n, statuses);
  return error;
})

HEADWAY_FUNCTION(Waitany, (int n, MPI_Request* requests, int* index, MPI_Status* status), {
  const Call call(Function::Waitany);
  if (!call) return real_Waitany(n, requests, index, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const std::uint64_t* const keys = keep(requests, n);
  const int error = real_Waitany(n, requests, index, status);
  const Held held;
  if (*index != MPI_UNDEFINED) recorder.completed(keys[*index], is_null(requests[*index]), status);
  return error;
})

HEADWAY_FUNCTION(Waitsome, (int n, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses), {
  const Call call(Function::Waitsome);
  if (!call) return real_Waitsome(n, requests, done, indices, statuses);
  const std::uint64_t* const keys = keep(requests, n);
  statuses = statuses_for(statuses, n);
  const int error = real_Waitsome(n, requests, done, indices, statuses);
  const Held held;
  some_completed(keys, requests, *done, indices, statuses);
  return error;
})

HEADWAY_FUNCTION(Test, (MPI_Request * request, int* flag, MPI_Status* status), {
  const Call call(Function::Test);
  if (!call) return real_Test(request, flag, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const std::uint64_t key = key_of(*request);
  const int error = real_Test(request, flag, status);
  const Held held;
  if (*flag == 0)
    ++recorder.file().failed_tests;
  else if (key != null_key)
    recorder.completed(key, is_null(*request), status);
  return error;
})

HEADWAY_FUNCTION(Testall, (int n, MPI_Request* requests, int* flag, MPI_Status* statuses), {
  const Call call(Function::Testall);
  if (!call) return real_Testall(n, requests, flag, statuses);
  const std::uint64_t* const keys = keep(requests, n);
  statuses = statuses_for(statuses, n);
  const int error = real_Testall(n, requests, flag, statuses);
  const Held held;
  if (*flag == 0)
    ++recorder.file().failed_tests;
  else
    all_completed(keys, requests, n, statuses);
  return error;
})

HEADWAY_FUNCTION(Testany, (int n, MPI_Request* requests, int* index, int* flag, MPI_Status* status), {
  const Call call(Function::Testany);
  if (!call) return real_Testany(n, requests, index, flag, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const std::uint64_t* const keys = keep(requests, n);
  const int error = real_Testany(n, requests, index, flag, status);
  const Held held;
  if (*flag == 0)
    ++recorder.file().failed_tests;
  else if (*index != MPI_UNDEFINED)
    recorder.completed(keys[*index], is_null(requests[*index]), status);
  return error;
})

HEADWAY_FUNCTION(Testsome, (int n, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses), {
  const Call call(Function::Testsome);
  if (!call) return real_Testsome(n, requests, done, indices, statuses);
  const std::uint64_t* const keys = keep(requests, n);
  statuses = statuses_for(statuses, n);
  const int error = real_Testsome(n, requests, done, indices, statuses);
  const Held held;
  if (*done == 0) ++recorder.file().failed_tests;
  some_completed(keys, requests, *done, indices, statuses);
  return error;
})
