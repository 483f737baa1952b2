// SPDX-License-Identifier: BSD-3-Clause
/// Checks a build for SMPI and its simulated machines: no rank sees another's variables, the clock is the simulation's,
/// and messages take the time that LogGP gives. The arguments describe the machine it runs on:
///
///     wire LATENCY_NS OVERHEAD_NS PICOSECONDS_PER_BYTE
#include <mpi.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <headway/base/clock.hpp>
#include <vector>

inline int of_this_rank = 0;

template <class T>
struct Holder {
  static inline int of_this_rank = 0;
};

namespace {

int errors = 0;

void expect(const char* what, double seen, double expected, double tolerance) {
  const bool right = std::abs(seen - expected) <= tolerance;
  std::printf("%s: %.3f, expected %.3f%s\n", what, seen, expected, right ? "" : ": WRONG");
  errors += !right;
}

/// Nanoseconds from before rank 0 sends until rank 1 has the message, which waits for it; at rank 1. All ranks have one
/// clock.
double one_way_ns(int me, std::size_t bytes) {
  std::vector<char> message(me < 2 ? bytes : 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) {
    for (const double begin = MPI_Wtime(); MPI_Wtime() - begin < 1e-3;) continue;  // the other waits by now
    const double sent = MPI_Wtime();
    std::memcpy(message.data(), &sent, sizeof sent);
    MPI_Send(message.data(), int(bytes), MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  } else if (me == 1) {
    MPI_Recv(message.data(), int(bytes), MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double sent = 0;
    std::memcpy(&sent, message.data(), sizeof sent);
    return (MPI_Wtime() - sent) * 1e9;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int me = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4 || ranks < 2) return 2;
  const double latency_ns = std::atof(argv[1]), overhead_ns = std::atof(argv[2]),
               ns_per_byte = std::atof(argv[3]) / 1000;

  ++of_this_rank;
  ++Holder<int>::of_this_rank;
  MPI_Barrier(MPI_COMM_WORLD);
  const double wall = MPI_Wtime();
  const std::int64_t clock = headway::base::monotonic_ns();
  const double small = one_way_ns(me, 8), large = one_way_ns(me, 16 << 20);
  const double passed = (MPI_Wtime() - wall) * 1e9, passed_by_clock = double(headway::base::monotonic_ns() - clock);
  if (me == 1) {
    expect("an inline variable", of_this_rank, 1, 0);
    expect("a static of a template", Holder<int>::of_this_rank, 1, 0);
    expect("ns by the clock of the library", passed_by_clock, passed, 100);
    expect("ns of 8 bytes", small, latency_ns + 2 * overhead_ns + 8 * ns_per_byte, 0.02 * small);
    expect("ns of 16 MiB", large, latency_ns + (16 << 20) * ns_per_byte, 1e-4 * large);  // no overhead: not detached
  }
  MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return errors != 0;
}
