// SPDX-License-Identifier: BSD-3-Clause
/// traffic WHAT: an MPI program with calls that mpi_report_test.cpp has counted by hand. For four ranks.
#include <mpi.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

int rank, size;

/// 20 steps on a ring. To each of two neighbours two messages of 80 bytes and one of 2000, by MPI_Isend.
void ring(int steps) {
  std::vector<char> from(2000), to(3 * 2 * 2000);
  const int neighbours[] = {(rank + 1) % size, (rank + size - 1) % size};
  for (int step = 0; step < steps; ++step) {
    MPI_Request requests[12];
    int n = 0;
    for (const int neighbour : neighbours)
      for (int field = 0; field < 3; ++field, ++n)
        MPI_Irecv(&to[2000 * n], 2000, MPI_BYTE, neighbour, field, MPI_COMM_WORLD, &requests[n]);
    for (const int neighbour : neighbours)
      for (int field = 0; field < 3; ++field, ++n)
        MPI_Isend(from.data(), field < 2 ? 80 : 2000, MPI_BYTE, neighbour, field, MPI_COMM_WORLD, &requests[n]);
    MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
  }
}

/// The same neighbours by persistent requests, MPI_Sendrecv and a neighbourhood collective: 10 steps each, with a
/// message of 8 bytes to each neighbour.
void other_rings() {
  double from[2] = {}, to[2] = {};
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Request requests[4];
  MPI_Recv_init(&to[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(&to[1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Send_init(&from[0], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Send_init(&from[1], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[3]);
  for (int step = 0; step < 10; ++step) {
    MPI_Startall(4, requests);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
  for (int step = 0; step < 10; ++step) {
    MPI_Sendrecv(from, 1, MPI_DOUBLE, right, 0, to, 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(from, 1, MPI_DOUBLE, left, 1, to, 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Comm cart;
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &cart);
  for (int step = 0; step < 10; ++step) MPI_Neighbor_alltoall(from, 1, MPI_DOUBLE, to, 1, MPI_DOUBLE, cart);
  MPI_Comm_free(&cart);
}

/// Rank 0 answers 100 requests of each other rank, with 8 bytes each way.
void replies() {
  long number = rank;
  for (int i = 0; i < 100 * (rank == 0 ? size - 1 : 1); ++i) {
    if (rank == 0) {
      MPI_Status status;
      MPI_Recv(&number, 1, MPI_LONG, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
      MPI_Send(&number, 1, MPI_LONG, status.MPI_SOURCE, 1, MPI_COMM_WORLD);
    } else {
      MPI_Send(&number, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
      MPI_Recv(&number, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

/// Ten steps in each of which every rank sends 100 messages of 16 bytes to ranks by a pseudo-random rule.
void updates() {
  const auto target = [](int from, int step, int i) {
    unsigned long x = (unsigned(from) * 1000003ul + unsigned(step) * 10007ul + unsigned(i) + 1) * 0x9e3779b97f4a7c15ul;
    return int((x >> 33) % unsigned(size));
  };
  std::vector<char> from(16), to(16 * 100 * 4);
  for (int step = 0; step < 10; ++step) {
    std::vector<MPI_Request> requests;
    for (int source = 0; source < size; ++source)
      for (int i = 0; i < 100; ++i) {
        if (target(source, step, i) != rank) continue;
        MPI_Irecv(&to[16 * requests.size()], 16, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &requests.emplace_back());
      }
    for (int i = 0; i < 100; ++i)
      MPI_Isend(from.data(), 16, MPI_BYTE, target(rank, step, i), 0, MPI_COMM_WORLD, &requests.emplace_back());
    MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/// One of each of the other kinds, between ranks of a communicator in reverse order.
void others() {
  MPI_Comm reverse;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reverse);
  double from[16] = {}, to[16] = {};
  MPI_Datatype column;
  MPI_Type_vector(4, 1, 4, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  if (rank == 0) MPI_Send(from, 1, column, 2, 0, reverse);  // 32 bytes to rank 1 of the world
  if (rank == 1) MPI_Recv(to, 1, column, 3, 0, reverse, MPI_STATUS_IGNORE);
  MPI_Type_free(&column);
  MPI_Allreduce(from, to, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Bcast(from, 16, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  MPI_Alltoall(from, 2, MPI_DOUBLE, to, 2, MPI_DOUBLE, MPI_COMM_WORLD);
  const int counts[] = {rank == 0 ? 3 : 0, 0, 0, 0}, places[] = {0, 4, 8, 12};
  const int to_counts[] = {rank == 0 ? 3 : 0, 0, 0, 0};
  MPI_Alltoallv(from, counts, places, MPI_INT, to, to_counts, places, MPI_INT, MPI_COMM_WORLD);
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win window;
  MPI_Win_create(to, sizeof to, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Put(from, 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Comm_free(&reverse);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (what == "ring") ring(20);
  if (what == "killed") {
    ring(20);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) std::raise(SIGKILL);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (what == "others") {
    other_rings();
    others();
  }
  if (what == "replies") replies();
  if (what == "updates") updates();
  MPI_Finalize();
}
