! SPDX-License-Identifier: BSD-3-Clause
! Ten steps on a ring, in Fortran: a message of 40 bytes to the right neighbour in each, and a reduction at the end.
program ring
  implicit none
  include 'mpif.h'
  integer :: rank, size, step, error, requests(2), statuses(MPI_STATUS_SIZE, 2)
  double precision :: from(5), to(5), total
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  from = rank
  do step = 1, 10
    call MPI_Irecv(to, 5, MPI_DOUBLE_PRECISION, modulo(rank - 1, size), 0, MPI_COMM_WORLD, requests(1), error)
    call MPI_Isend(from, 5, MPI_DOUBLE_PRECISION, modulo(rank + 1, size), 0, MPI_COMM_WORLD, requests(2), error)
    call MPI_Waitall(2, requests, statuses, error)
  end do
  call MPI_Allreduce(from(1), total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
end program
