! SPDX-License-Identifier: BSD-3-Clause
! A Fortran program against L7's interface, which calls MPI between. Ends with 0 if all values are right.
program l7_fortran
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: int32, real64
  implicit none
  interface
    function mpi_sum(value) bind(c) result(total)
      import :: c_int
      integer(c_int), value :: value
      integer(c_int) :: total
    end function
    function mpi_state() bind(c) result(state)
      import :: c_int
      integer(c_int) :: state
    end function
  end interface
  integer, parameter :: l7_int = 5, l7_integer4 = 12, l7_real8 = 15
  external :: l7_init, l7_setup, l7_update, l7_free, l7_terminate, l7_push_setup, l7_push_update, l7_push_free
  external :: l7_sum, l7_max, l7_min, l7_array_sum, l7_maxvalloc, l7_broadcast, l7_any
  integer, parameter :: owned = 20
  integer :: me, pes, ierr, id, push, first, i, p, round, ids, total, place
  integer :: need(6), partner(2), counts(2), lists(5), sums(2)
  integer, allocatable :: out(:)
  real(real64), allocatable :: heights(:)
  integer(int32), allocatable :: levels(:)
  real(real64) :: largest
  logical :: wrong = .false.

  pes = 0
  call l7_init(me, pes, ierr)
  call expect(ierr == 0, 'l7_init')
  call expect(mpi_state() == 1 .and. mpi_sum(1) == pes, 'MPI beside L7')
  ids = owned * pes
  first = owned * me + 1
  id = 0
  do round = 1, 3
    do i = 1, 6                                   ! ids from 1 on, falling, some of them own ones
      need(i) = modulo(first + owned + 5 * round - 4 * i, ids) + 1
    end do
    call l7_setup(first, owned, need, 6, id)
    call expect(pes == 1 .or. id > 0, 'the id of a plan')
    allocate(heights(owned + 6), levels(owned + 6))
    heights = -1
    levels = -1
    do i = 1, owned
      heights(i) = 1.5d0 * (first + i - 1)
      levels(i) = 7 * (first + i - 1)
    end do
    call l7_update(heights, l7_real8, id)
    call expect(mpi_sum(me) == pes * (pes - 1) / 2, 'MPI between updates')
    call l7_update(levels, l7_integer4, id)
    do i = 1, 6
      if (pes == 1) exit
      call expect(heights(owned + i) == 1.5d0 * need(i) .and. levels(owned + i) == 7 * need(i), 'a ghost')
    end do
    deallocate(heights, levels)
  end do
  call l7_free(id, ierr)
  call expect(ierr == 0, 'l7_free')

  if (pes > 2) then                               ! to the right 3 elements, to the left 2
    partner = [modulo(me + 1, pes), modulo(me - 1, pes)]
    counts = [3, 2]
    lists = [0, 2, 4, 1, 3]
    push = 0
    call l7_push_setup(2, partner, counts, lists, total, push, ierr)
    call expect(ierr == 0 .and. total == 5, 'l7_push_setup')
    allocate(out(total))
    call l7_push_update([(100 * me + i, i = 0, 4)], out, push, ierr)
    call expect(ierr == 0, 'l7_push_update')
    p = partner(1)
    call expect(all(out(1:2) == [100 * p + 1, 100 * p + 3]), 'elements of the right neighbour')
    p = partner(2)
    call expect(all(out(3:5) == [100 * p, 100 * p + 2, 100 * p + 4]), 'elements of the left neighbour')
    call l7_push_free(push, ierr)
    call expect(ierr == 0, 'l7_push_free')
  end if

  call l7_sum([me, 1], 2, l7_int, total, ierr)
  call expect(total == pes * (pes - 1) / 2 + pes, 'l7_sum')
  call l7_max([0.5d0 * me], 1, l7_real8, largest, ierr)
  call expect(largest == 0.5d0 * (pes - 1), 'l7_max')
  call l7_array_sum([me, 2], 2, l7_int, sums, ierr)
  call expect(all(sums == [pes * (pes - 1) / 2, 2 * pes]), 'l7_array_sum')
  call l7_maxvalloc([0.5d0 * me, -1d0], 2, l7_real8, largest, place, ierr)
  call expect(largest == 0.5d0 * (pes - 1) .and. place == 2 * (pes - 1), 'l7_maxvalloc')
  total = me
  call l7_broadcast(total, 1, l7_int, pes - 1, ierr)
  call expect(total == pes - 1, 'l7_broadcast')
  call expect(mpi_sum(1) == pes, 'MPI after L7')
  call l7_terminate(ierr)
  call expect(ierr == 0 .and. mpi_state() == 2, 'l7_terminate')
  if (wrong) stop 1

contains

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print '(a, i0, 2a)', 'PE ', me, ': wrong: ', what
    wrong = .true.
  end subroutine
end program
