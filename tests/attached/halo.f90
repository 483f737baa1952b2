! SPDX-License-Identifier: BSD-3-Clause
! A Fortran program over the module headway_halo. Ends with 0 if all values are right.
module halo_fortran_parts
  use, intrinsic :: iso_c_binding
  implicit none
contains
  !> `context` is the number of elements in a part.
  function part_of(index, context) bind(c) result(part)
    integer(c_int64_t), value :: index
    type(c_ptr), value :: context
    integer(c_size_t) :: part
    integer(c_int64_t), pointer :: length
    call c_f_pointer(context, length)
    part = int(index / length, c_size_t)
  end function
end module

program halo_fortran
  use, intrinsic :: iso_c_binding
  use headway_halo
  use halo_fortran_parts
  implicit none
  integer(c_int64_t), parameter :: owned = 8
  integer(c_int64_t) :: ids, first, need(3), extent, received
  real(c_double), target, asynchronous :: heights(owned + 3), winds(2, owned + 3), sums(owned + 3)
  integer(c_int32_t), target, asynchronous :: levels(owned + 3)
  type(headway_plan) :: plan, reversed
  type(headway_exchange) :: exchange, back
  integer :: me, i, left
  integer(c_int) :: done
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
  do i = 1, 1000000000
    call expect(headway_exchange_done(exchange, done), 'done')
    if (done == 1) exit
  end do
  call check(done == 1, 'all elements arrive without the end')
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
  call check_rebuilt()
  call check_parts()
  call expect(headway_exchange_free(exchange), 'free')
  call expect(headway_plan_free(reversed), 'free')
  call expect(headway_detach(), 'detach')
  if (wrong) stop 1

contains

  !> The plan and the exchange for other elements: two of the left neighbour, by each kind of plan.
  subroutine check_rebuilt()
    integer(c_int64_t), parameter :: theirs(2) = [5, 3], ghosts(2) = [owned, owned + 1]
    integer(c_int) :: from(2), to(1)
    integer(c_size_t), parameter :: two(1) = 2
    integer :: kind
    from = left
    to = modulo(me + 1, headway_size())
    do kind = 1, 4
      select case (kind)
      case (1)
        call expect(headway_plan_rebuild_needed(plan, first, owned, 2_c_size_t, owned * left + theirs), 'needed')
      case (2)
        call expect(headway_plan_rebuild_receiving(plan, owned, 2_c_size_t, from, theirs), 'receiving')
      case (3)
        call expect(headway_plan_rebuild_sending(plan, owned, 1_c_size_t, to, two, theirs), 'sending')
      case default
        call expect(headway_plan_rebuild_both(plan, 1_c_size_t, to, two, theirs, 1_c_size_t, from(1:1), two, ghosts), &
                    'both')
      end select
      call expect(headway_plan_sizes(plan, extent, received), 'sizes')
      call check(extent == owned + 2 .and. received == 2, 'sizes of a plan that is rebuilt')
      call expect(headway_exchange_rebuild(exchange, plan, 3_c_size_t, &
                  [headway_field_of(heights), headway_field_of(winds), headway_field_of(levels)]), 'rebuild')
      heights(owned + 1:) = -1
      winds(:, owned + 1:) = -1
      levels(owned + 1:) = -1
      call expect(headway_exchange_run(exchange), 'run')
      do i = 1, 2
        call check(heights(owned + i) == 1.5d0 * (owned * left + theirs(i)) .and. &
                   winds(2, owned + i) == heights(owned + i) + 2 .and. levels(owned + i) == owned * left + theirs(i), &
                   'a ghost of an exchange that is rebuilt')
      end do
      call check(heights(owned + 3) == -1 .and. levels(owned + 3) == -1, 'an element behind the ghosts')
    end do
    call check(headway_plan_rebuild_needed(plan, first, owned, 1_c_size_t, [ids]) == headway_bad_call, 'rebuild')
    call check(index(headway_error(), 'has no owner') > 0, 'the text of an error')
  end subroutine

  !> Four parts of two elements, of which the first and the last hold none that travels.
  subroutine check_parts()
    integer(c_int64_t), target :: length
    integer(c_size_t) :: part
    integer(c_int) :: arrived
    integer :: step
    length = 2
    call check(headway_exchange_begin_parts(exchange) == headway_bad_call, 'begin_parts before divide')
    call check(index(headway_error(), 'without parts') > 0, 'the text of an error')
    call check(headway_exchange_divide(exchange, 1_c_size_t, part_of, c_loc(length)) == headway_bad_call, 'divide')
    call check(index(headway_error(), 'given to part') > 0, 'the text of an error')
    call expect(headway_exchange_divide(exchange, 4_c_size_t, part_of, c_loc(length)), 'divide')
    do step = 1, 5
      call expect(headway_exchange_begin_parts(exchange), 'begin_parts')
      do part = 3, 0, -1
        heights(2 * part + 1:2 * part + 2) = 100 * step + me + [0.25d0, 0.5d0]
        call expect(headway_exchange_ready(exchange, part), 'ready')
      end do
      call check(headway_exchange_ready(exchange, 1_c_size_t) == headway_bad_call, 'ready twice')
      call check(index(headway_error(), 'marked twice') > 0, 'the text of an error')
      call check(headway_exchange_arrived(exchange, headway_size(), arrived) == headway_bad_call, 'no PE')
      call expect(headway_exchange_arrived(exchange, left, arrived), 'arrived')
      call check(arrived == 0 .or. arrived == 1, 'a flag')
      call expect(headway_exchange_end(exchange), 'end')
      call check(heights(owned + 1) == 100 * step + left + 0.5d0 .and. heights(owned + 2) == heights(owned + 1), &
                 'ghosts by parts')
    end do
  end subroutine

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
