// SPDX-License-Identifier: BSD-3-Clause
/// Counts what the wrapped MPI functions of this process do, in the rank's file. Each call costs two reads of the
/// processor's counter and a fixed number of writes, whatever the number of ranks.
#pragma once

#include <dlfcn.h>
#include <mpi.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rank_file.hpp"
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#if defined(OPEN_MPI)
// Handles of Open MPI are addresses of its variables. Programs without an MPI that a program with one starts inherit
// this library; weak, these references do them no harm.
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_unsigned_long_long
#pragma weak ompi_request_null
#endif

namespace headway::mpi_report {

inline std::uint64_t ticks_now() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::uint64_t(t.tv_sec) * 1'000'000'000 + std::uint64_t(t.tv_nsec);
#endif
}

/// The MPI's own function. Open MPI's Fortran functions call PMPI_ functions, so for Open MPI this library replaces
/// these, too; a reference to PMPI_Send would then be one to itself.
template <class F>
F real_function(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}
#define HEADWAY_REAL(name) \
  static const auto real_##name = ::headway::mpi_report::real_function<decltype(&PMPI_##name)>("PMPI_" #name)

/// A handle of either kind, a number or a pointer, as a key.
template <class Handle>
std::uint64_t key_of(Handle handle) {
  std::uint64_t key = 0;
  static_assert(sizeof handle <= sizeof key);
  std::memcpy(&key, &handle, sizeof handle);
  return key;
}

/// World ranks of a communicator's or window's ranks (of an intercommunicator: of the other group); of a communicator
/// with a topology also of the neighbours to which this rank sends.
struct Ranks {
  std::uint64_t key = 0;
  std::vector<int> world;
  std::vector<int> neighbours;
  int world_of(int rank) const { return rank >= 0 && rank < int(world.size()) ? world[std::size_t(rank)] : -1; }
};

struct TypeInfo {
  std::uint64_t key = 0;
  std::uint64_t bytes = 0;
  Layout layout = named;
};

/// A request that a wait must know: a receive, or a persistent one.
struct Tracked {
  std::uint64_t key = 0;  // 0: the entry is free
  enum Kind : std::uint8_t { receive, persistent_send, persistent_receive } kind = receive;
  bool active = false;
  const Ranks* ranks = nullptr;
  int peer = -1, tag = 0;  // of the communicator
  std::uint64_t bytes = 0;
  Layout layout = named;
};

/// Open addressing; the number of entries is a power of two, at most half of them are used.
class RequestTable {
 public:
  Tracked* find(std::uint64_t key);
  Tracked& insert(std::uint64_t key);
  void erase(Tracked* entry);
  bool empty() const { return used_ == 0; }

 private:
  std::size_t home(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15 >> 20) & (entries_.size() - 1); }
  std::vector<Tracked> entries_ = std::vector<Tracked>(256);
  std::size_t used_ = 0;
};

class Recorder {
 public:
  bool recording() const { return recording_; }
  RankFile& file() { return *file_; }
  bool threads() const { return threads_; }

  void begin(int threads_level);  // after MPI_Init
  void end();                     // before MPI_Finalize

  // Messages; `ranks` of the communicator.
  void sends(std::uint64_t count, MPI_Datatype type, int target, int tag, MPI_Comm comm, FunctionRow& row);
  void sends_bytes(std::uint64_t bytes, Layout layout, int world, int tag, FunctionRow& row);
  void posts_receive(int source, int tag, MPI_Comm comm);
  /// A message has arrived: from a rank of the communicator, which `any_source` tells was not named.
  void received(const Ranks& ranks, int source, bool any_source);
  /// A probe of any source has found a message; the receive that follows names its source.
  void probed(MPI_Comm comm, int source);
  void neighbour_blocks(MPI_Comm comm, FunctionRow& row, const std::vector<std::uint64_t>& bytes);

  // Requests.
  void started() { ++outstanding_; }
  void started_other() {  // no message
    begin_burst();
    started();
  }
  void track_receive(MPI_Request request, int source, MPI_Comm comm);  // after posts_receive()
  void track_persistent(MPI_Request request, Tracked::Kind kind, std::uint64_t count, MPI_Datatype type, int peer,
                        int tag, MPI_Comm comm);
  void start_persistent(MPI_Request request, FunctionRow& row);
  bool must_see_statuses() const { return any_pending_ > 0; }
  /// The request that had the key has completed, if it was active; `is_null` now.
  void completed(std::uint64_t key, bool is_null, const MPI_Status* status);
  void released(std::uint64_t key);

  // Collectives and one-sided accesses.
  void collective(std::uint64_t count, MPI_Datatype type, FunctionRow& row);
  void collective_bytes(std::uint64_t bytes, FunctionRow& row);
  void reduction(std::uint64_t count, MPI_Datatype type, FunctionRow& row);
  /// Blocks to all ranks of a communicator, of which some may be empty.
  template <class Bytes>
  void blocks(MPI_Comm comm, Bytes bytes_of, FunctionRow& row) {
    const Ranks& ranks = ranks_of(comm);
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < ranks.world.size(); ++i) {
      const std::uint64_t bytes = bytes_of(i);
      all += bytes;
      ++file_->blocks;
      if (bytes == 0) {
        ++file_->empty_blocks;
        continue;
      }
      count_size(in_collectives, bytes);
      if (Partner* partner = partner_of(ranks.world[i])) partner->block_bytes += bytes;
    }
    row.bytes += all;
  }
  /// All that came before a blocking collective is done.
  void synchronized();
  void one_sided(std::uint64_t count, MPI_Datatype type, int target, MPI_Win win, FunctionRow& row);
  /// A blocking wait took that long.
  void waited(std::uint64_t ticks) {
    if (ticks > idle_ticks_) ++phase_;
  }

  const TypeInfo& type_of(MPI_Datatype type);
  const Ranks& ranks_of(MPI_Comm comm);
  const Ranks& ranks_of_window(MPI_Win win);
  int size_of(MPI_Comm comm) { return int(ranks_of(comm).world.size()); }
  void forget_type(MPI_Datatype type);
  void forget(std::uint64_t key);  // of a communicator or window

 private:
  void count_size(Kind kind, std::uint64_t bytes) {
    ++file_->sizes[kind][size_class(bytes)];
    ++file_->messages[kind];
    file_->bytes[kind] += bytes;
  }
  Partner* partner_of(int world) { return world >= 0 && world < file_->size ? file_->partners() + world : nullptr; }
  Partner& enter(Partner& partner);
  /// A burst is what starts until nothing is under way.
  void begin_burst() { burst_ += outstanding_ == 0; }
  void enter_source(Partner& partner, int tag);
  void close_exchange();
  void enter_list(const List& list);
  Ranks& new_ranks(std::uint64_t key, MPI_Group group);

  RankFile* file_ = nullptr;
  bool recording_ = false, threads_ = false;
  std::uint64_t outstanding_ = 0, any_pending_ = 0, idle_ticks_ = ~std::uint64_t(0);
  std::uint32_t exchange_ = 1, phase_ = 1, burst_ = 1;
  int probed_ = -1;          // the world rank that a probe of any source found last
  std::vector<int> active_;  // world ranks of the exchange
  bool has_sent_ = false;
  RequestTable requests_;
  std::vector<Ranks*> ranks_;
  Ranks* last_ranks_ = nullptr;
  TypeInfo types_[64];
};

extern Recorder recorder;
extern std::atomic_flag lock;
inline thread_local int depth [[gnu::tls_model("initial-exec")]] = 0;

/// Held while several threads may count.
class Held {
 public:
  Held() {
    if (recorder.threads())
      while (lock.test_and_set(std::memory_order_acquire)) {
      }
  }
  ~Held() {
    if (recorder.threads()) lock.clear(std::memory_order_release);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
};

/// One call of an MPI function by the program. Calls that the MPI makes of itself do not count.
class Call {
 public:
  explicit Call(Function function) : function_(function), counts_(depth++ == 0 && recorder.recording()) {
    if (counts_) begin_ = ticks_now();
  }
  ~Call() {
    --depth;
    if (!counts_ || !recorder.recording()) return;
    const std::uint64_t now = ticks_now();
    const Held held;
    FunctionRow& of = row();
    ++of.calls;
    of.ticks += now - begin_;
    recorder.file().last_ticks = now;
    if (waits(functions[int(function_)].group)) recorder.waited(now - begin_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  explicit operator bool() const { return counts_; }
  FunctionRow& row() const { return recorder.file().functions[int(function_)]; }

 private:
  Function function_;
  bool counts_;
  std::uint64_t begin_ = 0;
};

}  // namespace headway::mpi_report

// HEADWAY_WRAP(Name, (parameters), (arguments), before, after): MPI_Name, which runs `before` and `after` where the
// call counts. `call` is the Call, `error` the result in `after`.
#if defined(OPEN_MPI)
#define HEADWAY_ALIAS(name, params) [[gnu::visibility("default"), gnu::alias("MPI_" #name)]] int PMPI_##name params;
#else
#define HEADWAY_ALIAS(name, params)
#endif

// MPI_Name with that body, which may call real_Name.
#define HEADWAY_FUNCTION(name, params, ...)                                                    \
  HEADWAY_REAL(name);                                                                          \
  extern "C" {                                                                                 \
  [[gnu::visibility("default")]] int MPI_##name params __VA_ARGS__ HEADWAY_ALIAS(name, params) \
  }
#define HEADWAY_WRAP_AS(function, name, params, args, before, after) \
  HEADWAY_FUNCTION(name, params, {                                   \
    const Call call(Function::function);                             \
    if (call) {                                                      \
      const Held held;                                               \
      before;                                                        \
    }                                                                \
    const int error = real_##name args;                              \
    if (call) {                                                      \
      const Held held;                                               \
      after;                                                         \
    }                                                                \
    return error;                                                    \
  })
#define HEADWAY_WRAP(name, params, args, before, after) HEADWAY_WRAP_AS(name, name, params, args, before, after)
