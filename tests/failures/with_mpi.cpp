// SPDX-License-Identifier: BSD-3-Clause
/// A program with an MPI: with_mpi initialise|later.
#include <mpi.h>

#include <headway/headway.hpp>
#include <string>

int main(int argc, char** argv) {
  const bool now = argc > 1 && argv[1] == std::string("initialise");
  if (now) MPI_Init(&argc, &argv);
  const int status = headway::run(argc, argv, [](headway::Pe& pe) { pe.quiesce(); });
  if (now) MPI_Finalize();
  return status;
}
