// SPDX-License-Identifier: BSD-3-Clause
/// main() of a program for SMPI that has the plug-in for MPI linked in (HeadwaySmpi.cmake): MPI begins and ends in it,
/// since at the process's end there are no ranks, and it tells the library which of them this is, for all have one
/// environment.
#include <mpi.h>

#include <headway/base/launcher.hpp>

#undef main
int main_of_rank(int argc, char** argv);  // the program's own, which main stands for elsewhere

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  headway::base::Launcher launcher;
  launcher.name = "smpirun";
  launcher.variable = "-np";
  launcher.size = std::size_t(ranks);
  launcher.rank = std::size_t(rank);
  launcher.simulated = true;
  headway::base::Launcher::set(launcher);
  const int status = main_of_rank(argc, argv);
  MPI_Finalize();
  return status;
}
