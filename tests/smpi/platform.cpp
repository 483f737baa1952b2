// SPDX-License-Identifier: BSD-3-Clause
/// A ping-pong takes the time of the machine file, on a platform that the library has written, at each size:
///
///     platform ONE_WAY_NS NS_PER_BYTE
///
/// Rank 0 plays with the last rank, and with rank 1, which may be on its own host.
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

/// Half of a round trip, on rank 0.
double one_way_ns(int me, int other, std::vector<char>& memory, int bytes) {
  constexpr int trips = 100;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int trip = 0; trip < trips; ++trip) {
    if (me == 0) {
      MPI_Send(memory.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
      MPI_Recv(memory.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (me == other) {
      MPI_Recv(memory.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(memory.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - begin) * 1e9 / (2 * trips);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int me = 0, ranks = 0, errors = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3 || ranks < 2) return 2;
  std::vector<char> memory(4 << 20);
  for (const int other : {ranks - 1, 1}) {
    for (const int bytes : {1, 8, 100, 1'000, 10'000, 65'535, 65'536, 65'537, 300'000, 4 << 20}) {
      const double seen = one_way_ns(me, other, memory, bytes);
      const double expected = std::atof(argv[1]) + std::atof(argv[2]) * bytes;
      const bool right = std::abs(seen - expected) <= 0.02 * expected;
      if (me == 0) {
        std::printf("rank %d, %d bytes: %.3f ns, expected %.3f ns%s\n", other, bytes, seen, expected,
                    right ? "" : ": WRONG");
        errors += !right;
      }
    }
  }
  MPI_Bcast(&errors, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Finalize();
  return errors != 0;
}
