// SPDX-License-Identifier: BSD-3-Clause
// The wire over MPI: one source, compiled once for each MPI that the build finds. It needs MPI 3.0. One thread at a
// time calls it; a communicator of its own keeps its messages apart from the user's.
#include <headway/transport/wire/wire.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <headway/transport/wire/ucx_defaults.hpp>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int tag_of_channel[] = {1, 2};
constexpr std::size_t sends_tested_max = 16;
#ifdef OPEN_MPI
constexpr const char* eager_bytes_wanted = "263168";  // a posted receive of 256 KiB, and 1 KiB for the library's header
#endif
constexpr unsigned yields_before_sleep = 64;
constexpr useconds_t sleep_us = 100;

struct Send {
  MPI_Request request;
  std::uint64_t cookie;
};

struct Receive {
  MPI_Request request;
  std::uint64_t cookie;
  std::uint64_t bytes;  // of the memory
  std::uint32_t source;
  MPI_Status status{};  // valid when the request has ended
};

}  // namespace

struct headway_wire {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Datatype unit = MPI_DATATYPE_NULL;  // of large messages: their length in bytes may not fit an int
  int size = 0, rank = 0;
  bool any_thread = false, was_there = false;
  std::deque<Receive> frames;  // oldest first; messages match them in this order
  bool has_received = false;   // the last test_frames() has received one
  std::vector<Receive> large;  // of one source, in order
  std::vector<Send> sends;
  std::size_t next_send = 0;  // the send to test next
  std::vector<std::uint64_t> sent_to;
  MPI_Request settling = MPI_REQUEST_NULL;
  std::uint64_t arriving = 0;
  std::string failure;
  int lost = -1;  // the lost process of `failure`; -1: none
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
};

namespace {

// A process can start MPI once; MPI stays started when a run ends.
headway_wire only_wire;

int fail(headway_wire& wire, const char* call, int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  wire.failure = std::string(call) + ": " + text;
  for (std::size_t at; (at = wire.failure.find('\n')) != wire.failure.npos;) wire.failure.replace(at, 1, "; ");
  return -1;
}

// Calls MPI; on failure the calling function records it and returns -1.
#define TRY(call, ...) /* NOLINT(readability-identifier-naming): of this file alone */ \
  do {                                                                                 \
    if (const int error = call(__VA_ARGS__)) return fail(*wire, #call, error);         \
  } while (false)

/// Runs at the end of the program. The user's program may have called MPI_Finalize.
void finalize() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Finalize();
}

/// Before MPI_Init: raises the length up to which Open MPI's TCP, and UCX below MPICH, send without the receiver's
/// answer (64 KiB or less). Settings of the user, here or with mpirun, stay.
void raise_eager_bytes() {
#if defined(OPEN_MPI)
  setenv("OMPI_MCA_btl_tcp_eager_limit", eager_bytes_wanted, 0);
#elif !defined(HEADWAY_SMPI)
  if (!headway::wire::has_fetching_devices()) setenv("UCX_RNDV_THRESH", headway::wire::ucx_eager_bytes, 0);
#endif
}

int begin(headway_wire* wire) {
  int initialized = 0, finalized = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized != 0) {
    wire->failure = "the program has called MPI_Finalize already";
    return -1;
  }
  if (initialized == 0) {
    raise_eager_bytes();
    TRY(MPI_Init_thread, nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
    std::atexit(finalize);
  } else {
    MPI_Query_thread(&level);
    wire->was_there = true;
  }
  wire->any_thread = level >= MPI_THREAD_SERIALIZED;
  TRY(MPI_Comm_dup, MPI_COMM_WORLD, &wire->comm);
  TRY(MPI_Comm_set_errhandler, wire->comm, MPI_ERRORS_RETURN);
  TRY(MPI_Comm_size, wire->comm, &wire->size);
  TRY(MPI_Comm_rank, wire->comm, &wire->rank);
  TRY(MPI_Type_contiguous, HEADWAY_WIRE_LARGE_UNIT, MPI_BYTE, &wire->unit);
  TRY(MPI_Type_commit, &wire->unit);
  int length = 0;
  MPI_Get_library_version(wire->library, &length);
  wire->library[std::strcspn(wire->library, "\n,")] = 0;
  return 0;
}

int start(const headway_wire_meeting* /*none*/, headway_wire** result, headway_wire_facts* facts, char* reason,
          std::size_t reason_bytes) {
  headway_wire* wire = &only_wire;
  if (wire->comm == MPI_COMM_NULL && begin(wire) != 0) {
    std::snprintf(reason, reason_bytes, "%s", wire->failure.c_str());
    return -1;
  }
  wire->sent_to.assign(std::size_t(wire->size), 0);
  facts->processes = std::uint32_t(wire->size);
  facts->process = std::uint32_t(wire->rank);
  facts->any_thread = wire->any_thread;
  facts->was_there = wire->was_there;
  facts->library = wire->library;
  *result = wire;
  return 0;
}

int units(std::size_t bytes) { return int((bytes + HEADWAY_WIRE_LARGE_UNIT - 1) / HEADWAY_WIRE_LARGE_UNIT); }

int send(headway_wire* wire, std::uint32_t target, std::uint32_t channel, const void* message, std::size_t bytes,
         std::uint64_t cookie) {
  MPI_Request request;
  const bool is_large = channel == headway_wire_large;
  wire->lost = int(target);  // if it fails
  TRY(MPI_Isend, message, is_large ? units(bytes) : int(bytes), is_large ? wire->unit : MPI_BYTE, int(target),
      tag_of_channel[channel], wire->comm, &request);
  ++wire->sent_to[target];
  int done = 0;  // mostly true for short messages
  TRY(MPI_Test, &request, &done, MPI_STATUS_IGNORE);
  wire->lost = -1;
  if (done != 0) return 1;
  wire->sends.push_back({request, cookie});
  return 0;
}

int receive(headway_wire* wire, std::uint32_t channel, std::uint32_t source, void* memory, std::size_t bytes,
            std::uint64_t cookie) {
  const bool is_large = channel == headway_wire_large;
  Receive receive{MPI_REQUEST_NULL, cookie, bytes, source, {}};
  TRY(MPI_Irecv, memory, is_large ? units(bytes) : int(bytes), is_large ? wire->unit : MPI_BYTE,
      is_large ? int(source) : MPI_ANY_SOURCE, tag_of_channel[channel], wire->comm, &receive.request);
  if (is_large) {
    wire->large.push_back(receive);
  } else {
    wire->frames.push_back(receive);
  }
  return 0;
}

/// Messages match receives in the order of the posts, but may complete in another order; tests of the oldest receive
/// alone keep the order of messages. A test without a message calls the system, which takes as long as a short message.
/// So the first message after an idle test is not followed by a second test in the same call.
int test_frames(headway_wire* wire, headway_wire_event* events, int events_max) {
  int count = 0;
  const bool several = std::exchange(wire->has_received, false);
  while (count < events_max && !wire->frames.empty() && (several || count == 0)) {
    Receive& oldest = wire->frames.front();
    int done = oldest.request == MPI_REQUEST_NULL, cancelled = 0,
        bytes = 0;  // REQUEST_NULL: wait_for_frame() has completed it
    if (done == 0) {
      oldest.status.MPI_ERROR = MPI_SUCCESS;
      oldest.status.MPI_SOURCE = -1;
      TRY(MPI_Test, &oldest.request, &done, &oldest.status);
    }
    if (done == 0) break;
    TRY(MPI_Test_cancelled, &oldest.status, &cancelled);
    TRY(MPI_Get_count, &oldest.status, MPI_BYTE, &bytes);
    // MPICH over UCX reports a lost process in these ways.
    if (cancelled != 0 || bytes == 0 || oldest.status.MPI_ERROR != MPI_SUCCESS) {
      wire->lost = oldest.status.MPI_SOURCE;
      wire->failure = "a receive was cancelled: a process has died, or the network does not reach it";
      return -1;
    }
    events[count++] = {headway_wire_arrived, std::uint32_t(oldest.status.MPI_SOURCE),
                       headway_wire_frames,  0,
                       oldest.cookie,        std::uint64_t(bytes)};
    wire->frames.pop_front();
    wire->has_received = true;
  }
  return count;
}

int test_large(headway_wire* wire, headway_wire_event* events, int events_max) {
  int count = 0;
  for (std::size_t i = 0; count < events_max && i < wire->large.size();) {
    Receive& receive = wire->large[i];
    int done = 0;
    TRY(MPI_Test, &receive.request, &done, MPI_STATUS_IGNORE);
    if (done == 0) {
      ++i;
      continue;
    }
    events[count++] = {headway_wire_arrived, receive.source, headway_wire_large, 0, receive.cookie, receive.bytes};
    wire->large.erase(wire->large.begin() + std::ptrdiff_t(i));
  }
  return count;
}

/// Tests some sends, in turn: sends to a stopped target must not hide finished sends to others.
int test_sends(headway_wire* wire, headway_wire_event* events, int events_max) {
  int count = 0;
  std::size_t tests = wire->sends.size() < sends_tested_max ? wire->sends.size() : sends_tested_max;
  for (; tests > 0 && count < events_max; --tests) {
    if (wire->next_send >= wire->sends.size()) wire->next_send = 0;
    Send& send = wire->sends[wire->next_send];
    int done = 0;
    TRY(MPI_Test, &send.request, &done, MPI_STATUS_IGNORE);
    if (done == 0) {
      ++wire->next_send;
      continue;
    }
    events[count++] = {headway_wire_sent, 0, 0, 0, send.cookie, 0};
    send = wire->sends.back();
    wire->sends.pop_back();
  }
  return count;
}

int progress(headway_wire* wire, headway_wire_event* events, int events_max) {
  int count = 0;
  for (const auto test : {test_frames, test_large, test_sends}) {
    const int more = test(wire, events + count, events_max - count);
    if (more < 0) return more;
    count += more;
  }
  return count;
}

int leave(headway_wire* wire) {
  for (Receive& receive : wire->frames) {
    if (receive.request == MPI_REQUEST_NULL) continue;
    TRY(MPI_Cancel, &receive.request);
    TRY(MPI_Wait, &receive.request, MPI_STATUS_IGNORE);
  }
  wire->frames.clear();
  wire->settling = MPI_REQUEST_NULL;
  TRY(MPI_Type_free, &wire->unit);
  TRY(MPI_Comm_free, &wire->comm);
  return 0;
}

void abort(headway_wire*, int status) { MPI_Abort(MPI_COMM_WORLD, status); }

const char* failure(headway_wire* wire) { return wire->failure.c_str(); }

std::uint32_t lost(headway_wire* wire) {
  return std::uint32_t(wire->lost >= 0 && wire->lost < wire->size ? wire->lost : wire->size);
}

#ifdef OPEN_MPI
/// Largest message, with the library's header, that Open MPI's TCP sends without the receiver's answer: the value of
/// raise_eager_bytes() or the user's. 64 KiB if the program has initialised MPI without either. 0: not known.
std::uint64_t eager_bytes(headway_wire* /*wire*/) {
  int level = 0, index = 0, count = 0, bytes = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &level) != MPI_SUCCESS) return 0;
  std::uint64_t limit = 0;
  MPI_T_cvar_handle handle{};
  if (MPI_T_cvar_get_index("btl_tcp_eager_limit", &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int verbosity = 0, bind = 0, scope = 0;
    const bool known = MPI_T_cvar_get_info(index, nullptr, nullptr, &verbosity, &type, nullptr, nullptr, nullptr, &bind,
                                           &scope) == MPI_SUCCESS &&
                       count == 1 && MPI_Type_size(type, &bytes) == MPI_SUCCESS && bytes == int(sizeof limit);
    if (!known || MPI_T_cvar_read(handle, &limit) != MPI_SUCCESS) limit = 0;
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return limit;
}
constexpr auto eager = eager_bytes;
#else
constexpr auto eager = nullptr;
#endif

// --- calls that wait

#ifdef HEADWAY_SMPI
// In SMPI a waiting rank costs the others no time, and only blocking collectives are cheap to simulate.
int exchange(headway_wire* wire, const void* mine, std::size_t bytes, void* all) {
  TRY(MPI_Allgather, mine, int(bytes), MPI_BYTE, all, int(bytes), MPI_BYTE, wire->comm);
  return 0;
}

int settle(headway_wire* wire, std::uint64_t* arriving) {
  TRY(MPI_Reduce_scatter_block, wire->sent_to.data(), arriving, 1, MPI_UINT64_T, MPI_SUM, wire->comm);
  return 1;
}

/// Waits for the oldest receive without a limit: the simulator reports a deadlock if no message can arrive.
int wait_for_frame(headway_wire* wire, std::uint64_t ns_max) {
  constexpr std::uint64_t endless_wait_ns = 50'000'000;
  if (ns_max < endless_wait_ns || !wire->sends.empty() || !wire->large.empty() || wire->frames.empty()) return 0;
  Receive& oldest = wire->frames.front();
  if (oldest.request != MPI_REQUEST_NULL) TRY(MPI_Wait, &oldest.request, &oldest.status);
  return 1;
}
#else
/// Waits, and yields the processor to the processes that it waits for.
int wait_yielding(headway_wire* wire, MPI_Request* request) {
  for (unsigned tests = 0;; ++tests) {
    int done = 0;
    TRY(MPI_Test, request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return 0;
    if (tests < yields_before_sleep)
      sched_yield();
    else
      usleep(sleep_us);
  }
}

int exchange(headway_wire* wire, const void* mine, std::size_t bytes, void* all) {
  MPI_Request request;
  TRY(MPI_Iallgather, mine, int(bytes), MPI_BYTE, all, int(bytes), MPI_BYTE, wire->comm, &request);
  return wait_yielding(wire, &request);
}

int settle(headway_wire* wire, std::uint64_t* arriving) {
  if (wire->settling == MPI_REQUEST_NULL) {
    TRY(MPI_Ireduce_scatter_block, wire->sent_to.data(), &wire->arriving, 1, MPI_UINT64_T, MPI_SUM, wire->comm,
        &wire->settling);
  }
  int done = 0;
  TRY(MPI_Test, &wire->settling, &done, MPI_STATUS_IGNORE);
  if (done == 0) return 0;
  *arriving = wire->arriving;
  return 1;
}

constexpr auto wait_for_frame = nullptr;
#endif

constexpr headway_wire_functions functions = {HEADWAY_WIRE_VERSION,
                                              sizeof(headway_wire_functions),
                                              HEADWAY_MPI,
                                              0,
                                              start,
                                              exchange,
                                              send,
                                              receive,
                                              progress,
                                              settle,
                                              leave,
                                              abort,
                                              failure,
                                              lost,
                                              wait_for_frame,
                                              nullptr,  // expose
                                              nullptr,  // withdraw
                                              nullptr,  // reach
                                              nullptr,  // forget
                                              nullptr,  // get
                                              eager};

}  // namespace

extern "C" __attribute__((visibility("default"))) const headway_wire_functions* headway_wire_plugin(void) {
  return &functions;
}
