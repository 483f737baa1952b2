! SPDX-License-Identifier: BSD-3-Clause
! A Fortran program over the module headway_halo. Ends with 0 if all values are right.
program halo_fortran
  use, intrinsic :: iso_c_binding
  use headway_halo
  implicit none
  integer(c_int64_t), parameter :: owned = 8
  integer(c_int64_t) :: ids, first, need(3), extent, received
  real(c_double), target, asynchronous :: heights(owned + 3), winds(2, owned + 3), sums(owned + 3)
  integer(c_int32_t), target, asynchronous :: levels(owned + 3)
  type(headway_plan) :: plan, reversed
  type(headway_exchange) :: exchange, back
  integer :: me, i, left
  logical :: wrong = .false.

  if (headway_attach() /= headway_ok) then
    print '(a)', headway_error()
    stop 2
  end if
  me = headway_rank()
  left = modulo(me - 1, headway_size())
  ids = owned * headway_size()
  first = owned * me
  need = [modulo(first + owned, ids), modulo(first + ids - 1, ids), modulo(first + owned, ids)]
  call expect(headway_plan_needed(first, owned, 3_c_size_t, need, plan), 'needed')
  call expect(headway_plan_sizes(plan, extent, received), 'sizes')
  call check(extent == owned + 3 .and. received == 3, 'sizes')
  do i = 1, int(owned)
    heights(i) = 1.5d0 * (first + i - 1)
    winds(:, i) = [heights(i) + 1, heights(i) + 2]
    levels(i) = int(first) + i - 1
  end do
  heights(owned + 1:) = -1
  winds(:, owned + 1:) = -1
  levels(owned + 1:) = -1
  call expect(headway_exchange_make(plan, 3_c_size_t, [headway_field_of(heights), headway_field_of(winds), &
                                                       headway_field_of(levels)], 0, exchange), 'make')
  call expect(headway_exchange_begin(exchange), 'begin')
  call expect(headway_exchange_end(exchange), 'end')
  do i = 1, 3
    call check(heights(owned + i) == 1.5d0 * need(i) .and. winds(1, owned + i) == heights(owned + i) + 1 .and. &
               winds(2, owned + i) == heights(owned + i) + 2 .and. levels(owned + i) == need(i), 'a ghost')
  end do
  sums = 1
  sums(owned + 1:) = me + 1
  call expect(headway_plan_reverse(plan, reversed), 'reverse')
  call expect(headway_exchange_make(reversed, 1_c_size_t, [headway_field_of(sums, headway_sum)], 1, back), 'make')
  call expect(headway_exchange_run(back), 'run')
  call check(sums(1) == 1 + 2 * (left + 1) .and. sums(2) == 1, 'sums')
  call check(headway_plan_needed(first, owned, 1_c_size_t, [ids], plan) == headway_bad_call, 'an id without owner')
  call check(index(headway_error(), 'has no owner') > 0, 'the text of an error')
  call expect(headway_exchange_free(exchange), 'free')
  call expect(headway_plan_free(reversed), 'free')
  call expect(headway_detach(), 'detach')
  if (wrong) stop 1

contains

  subroutine expect(code, what)
    integer(c_int), intent(in) :: code
    character(*), intent(in) :: what
    call check(code == headway_ok, what)
    if (code /= headway_ok) print '(2a)', what // ': ', headway_error()
  end subroutine

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    print '(a, i0, 2a)', 'PE ', me, ': wrong: ', what
    wrong = .true.
  end subroutine
end program
