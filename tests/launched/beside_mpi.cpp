// SPDX-License-Identifier: BSD-3-Clause
/// A program that has MPI for itself: it initialises it, and calls it before, beside and after two runs.
#include <mpi.h>

#include <cstdio>
#include <headway/headway.hpp>

namespace {

/// The sum of 1 over all processes, by the program's own MPI.
int count_processes() {
  int one = 1, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

int run(int argc, char** argv, int processes) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    headway::Aggregator<std::size_t> messages(pe);
    std::size_t sum = 0;
    messages.on([&](std::size_t value) { sum += value; });
    for (std::size_t i = 0; i < 100'000; ++i) messages.send((pe.id() + i) % pe.size(), 1);
    // The next one has a message of the program's before it takes those of the run.
    const int right = int((pe.id() + 1) % pe.size()), left = int((pe.id() + pe.size() - 1) % pe.size());
    int mine = int(pe.id()), theirs = -1;
    MPI_Sendrecv(&mine, 1, MPI_INT, right, 1, &theirs, 1, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pe.quiesce();
    const std::size_t all = headway::allreduce(pe, sum, std::plus<>());
    return theirs == left && count_processes() == processes && all == 100'000 * pe.size() ? 0 : 1;
  });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int processes = count_processes();
  const int first = run(argc, argv, processes);
  const bool between = count_processes() == processes;
  const int second = run(argc, argv, processes);
  const bool after = count_processes() == processes;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("%d processes: %d %d %d %d\n", processes, first, int(between), second, int(after));
  MPI_Finalize();
  return first + second + !between + !after;
}
