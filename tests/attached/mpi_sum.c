/* SPDX-License-Identifier: BSD-3-Clause
 * Calls of plain MPI for the Fortran programs. */
#include <mpi.h>

int mpi_sum(int value);
int mpi_state(void);

int mpi_sum(int value) {
  int all = 0;
  MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/* 0: not initialised, 1: runs, 2: finalized */
int mpi_state(void) {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  return finalised ? 2 : initialised;
}
