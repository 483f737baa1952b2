! SPDX-License-Identifier: BSD-3-Clause
! The module headway_halo: the calls of <headway/halo.h> for Fortran 2008. Indices, ids and ranks count from 0, as in C.
! Each function returns headway_ok or an error, which headway_error() explains. Arrays of fields have the attributes
! target and asynchronous: an exchange keeps their addresses, and changes elements in calls that do not name the array.
module headway_halo
  use, intrinsic :: iso_c_binding
  implicit none
  private

  public :: headway_attach, headway_detach, headway_rank, headway_size, headway_error
  public :: headway_plan_needed, headway_plan_receiving, headway_plan_sending, headway_plan_both
  public :: headway_plan_rebuild_needed, headway_plan_rebuild_receiving, headway_plan_rebuild_sending
  public :: headway_plan_rebuild_both, headway_plan_reverse, headway_plan_free, headway_plan_sizes
  public :: headway_exchange_make, headway_exchange_begin, headway_exchange_done, &
            headway_exchange_end, headway_exchange_run
  public :: headway_exchange_rebind, headway_exchange_rebuild, headway_exchange_free, headway_field_of
  public :: headway_exchange_divide, headway_exchange_begin_parts, headway_exchange_ready, headway_exchange_arrived
  public :: headway_part_rule

  integer(c_int), parameter, public :: headway_ok = 0, headway_bad_setting = 1, headway_bad_call = 2, &
                                       headway_system = 3, headway_failed = 4
  integer(c_int), parameter, public :: headway_bytes = 0, headway_int32 = 1, headway_int64 = 2, headway_float = 3, &
                                       headway_double = 4
  integer(c_int), parameter, public :: headway_replace = 0, headway_sum = 1, headway_min = 2, headway_max = 3

  type, bind(c), public :: headway_plan
    type(c_ptr) :: address = c_null_ptr
  end type
  type, bind(c), public :: headway_exchange
    type(c_ptr) :: address = c_null_ptr
  end type
  type, bind(c), public :: headway_field
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: elements = 0
    integer(c_int64_t) :: stride = 0        ! in bytes; 0: elements lie one after the other
    integer(c_int64_t) :: components = 1
    integer(c_int) :: type = headway_bytes
    integer(c_int) :: combine = headway_replace
  end type

  !> The field of a whole array: of rank 1 with an element each, of rank 2 with a column each.
  interface headway_field_of
    module procedure field_of_int32, field_of_int64, field_of_float, field_of_double
    module procedure fields_of_float, fields_of_double
  end interface

  !> The part of a local element, from 0 to parts - 1. The element's index counts from 0.
  abstract interface
    function headway_part_rule(index, context) bind(c) result(part)
      import :: c_int64_t, c_ptr, c_size_t
      integer(c_int64_t), value :: index
      type(c_ptr), value :: context
      integer(c_size_t) :: part
    end function
  end interface

  interface
    function headway_attach() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function
    function headway_detach() bind(c) result(code)
      import :: c_int
      integer(c_int) :: code
    end function
    function headway_rank() bind(c) result(rank)
      import :: c_int
      integer(c_int) :: rank
    end function
    function headway_size() bind(c) result(size)
      import :: c_int
      integer(c_int) :: size
    end function
    function headway_error_text() bind(c) result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function headway_plan_needed(first, owned, count, ids, plan) bind(c) result(code)
      import :: c_int, c_int64_t, c_size_t, headway_plan
      integer(c_int64_t), value :: first, owned
      integer(c_size_t), value :: count
      integer(c_int64_t), intent(in) :: ids(*)
      type(headway_plan), intent(out) :: plan
      integer(c_int) :: code
    end function
    function headway_plan_receiving(owned, count, pes, indices, plan) bind(c) result(code)
      import :: c_int, c_int64_t, c_size_t, headway_plan
      integer(c_int64_t), value :: owned
      integer(c_size_t), value :: count
      integer(c_int), intent(in) :: pes(*)
      integer(c_int64_t), intent(in) :: indices(*)
      type(headway_plan), intent(out) :: plan
      integer(c_int) :: code
    end function
    function headway_plan_sending(owned, partners, pes, counts, indices, plan) bind(c) result(code)
      import :: c_int, c_int64_t, c_size_t, headway_plan
      integer(c_int64_t), value :: owned
      integer(c_size_t), value :: partners
      integer(c_int), intent(in) :: pes(*)
      integer(c_size_t), intent(in) :: counts(*)
      integer(c_int64_t), intent(in) :: indices(*)
      type(headway_plan), intent(out) :: plan
      integer(c_int) :: code
    end function
    function headway_plan_both(to_partners, to_pes, to_counts, to_indices, from_partners, from_pes, from_counts, &
                               from_indices, plan) bind(c) result(code)
      import :: c_int, c_int64_t, c_size_t, headway_plan
      integer(c_size_t), value :: to_partners, from_partners
      integer(c_int), intent(in) :: to_pes(*), from_pes(*)
      integer(c_size_t), intent(in) :: to_counts(*), from_counts(*)
      integer(c_int64_t), intent(in) :: to_indices(*), from_indices(*)
      type(headway_plan), intent(out) :: plan
      integer(c_int) :: code
    end function
    function headway_plan_rebuild_needed(plan, first, owned, count, ids) bind(c) result(code)
      import :: c_int, c_int64_t, c_size_t, headway_plan
      type(headway_plan), value :: plan
      integer(c_int64_t), value :: first, owned
      integer(c_size_t), value :: count
      integer(c_int64_t), intent(in) :: ids(*)
      integer(c_int) :: code
    end function
    function headway_plan_rebuild_receiving(plan, owned, count, pes, indices) bind(c) result(code)
      import :: c_int, c_int64_t, c_size_t, headway_plan
      type(headway_plan), value :: plan
      integer(c_int64_t), value :: owned
      integer(c_size_t), value :: count
      integer(c_int), intent(in) :: pes(*)
      integer(c_int64_t), intent(in) :: indices(*)
      integer(c_int) :: code
    end function
    function headway_plan_rebuild_sending(plan, owned, partners, pes, counts, indices) bind(c) result(code)
      import :: c_int, c_int64_t, c_size_t, headway_plan
      type(headway_plan), value :: plan
      integer(c_int64_t), value :: owned
      integer(c_size_t), value :: partners
      integer(c_int), intent(in) :: pes(*)
      integer(c_size_t), intent(in) :: counts(*)
      integer(c_int64_t), intent(in) :: indices(*)
      integer(c_int) :: code
    end function
    function headway_plan_rebuild_both(plan, to_partners, to_pes, to_counts, to_indices, from_partners, from_pes, &
                                       from_counts, from_indices) bind(c) result(code)
      import :: c_int, c_int64_t, c_size_t, headway_plan
      type(headway_plan), value :: plan
      integer(c_size_t), value :: to_partners, from_partners
      integer(c_int), intent(in) :: to_pes(*), from_pes(*)
      integer(c_size_t), intent(in) :: to_counts(*), from_counts(*)
      integer(c_int64_t), intent(in) :: to_indices(*), from_indices(*)
      integer(c_int) :: code
    end function
    function headway_plan_reverse(plan, reversed) bind(c) result(code)
      import :: c_int, headway_plan
      type(headway_plan), value :: plan
      type(headway_plan), intent(out) :: reversed
      integer(c_int) :: code
    end function
    function headway_plan_free(plan) bind(c) result(code)
      import :: c_int, headway_plan
      type(headway_plan), value :: plan
      integer(c_int) :: code
    end function
    function headway_plan_sizes(plan, extent, received) bind(c) result(code)
      import :: c_int, c_int64_t, headway_plan
      type(headway_plan), value :: plan
      integer(c_int64_t), intent(out) :: extent, received
      integer(c_int) :: code
    end function
    function headway_exchange_make(plan, count, fields, fixed_order, exchange) bind(c) result(code)
      import :: c_int, c_size_t, headway_plan, headway_field, headway_exchange
      type(headway_plan), value :: plan
      integer(c_size_t), value :: count
      type(headway_field), intent(in) :: fields(*)
      integer(c_int), value :: fixed_order
      type(headway_exchange), intent(out) :: exchange
      integer(c_int) :: code
    end function
    function headway_exchange_begin(exchange) bind(c) result(code)
      import :: c_int, headway_exchange
      type(headway_exchange), value :: exchange
      integer(c_int) :: code
    end function
    function headway_exchange_done(exchange, done) bind(c) result(code)
      import :: c_int, headway_exchange
      type(headway_exchange), value :: exchange
      integer(c_int), intent(out) :: done
      integer(c_int) :: code
    end function
    function headway_exchange_end(exchange) bind(c) result(code)
      import :: c_int, headway_exchange
      type(headway_exchange), value :: exchange
      integer(c_int) :: code
    end function
    function headway_exchange_run(exchange) bind(c) result(code)
      import :: c_int, headway_exchange
      type(headway_exchange), value :: exchange
      integer(c_int) :: code
    end function
    function headway_exchange_rebind(exchange, count, fields) bind(c) result(code)
      import :: c_int, c_size_t, headway_field, headway_exchange
      type(headway_exchange), value :: exchange
      integer(c_size_t), value :: count
      type(headway_field), intent(in) :: fields(*)
      integer(c_int) :: code
    end function
    function headway_exchange_rebuild(exchange, plan, count, fields) bind(c) result(code)
      import :: c_int, c_size_t, headway_plan, headway_field, headway_exchange
      type(headway_exchange), value :: exchange
      type(headway_plan), value :: plan
      integer(c_size_t), value :: count
      type(headway_field), intent(in) :: fields(*)
      integer(c_int) :: code
    end function
    function headway_exchange_divide(exchange, parts, rule, context) bind(c) result(code)
      import :: c_int, c_ptr, c_size_t, headway_exchange, headway_part_rule
      type(headway_exchange), value :: exchange
      integer(c_size_t), value :: parts
      procedure(headway_part_rule) :: rule
      type(c_ptr), value :: context
      integer(c_int) :: code
    end function
    function headway_exchange_begin_parts(exchange) bind(c) result(code)
      import :: c_int, headway_exchange
      type(headway_exchange), value :: exchange
      integer(c_int) :: code
    end function
    function headway_exchange_ready(exchange, part) bind(c) result(code)
      import :: c_int, c_size_t, headway_exchange
      type(headway_exchange), value :: exchange
      integer(c_size_t), value :: part
      integer(c_int) :: code
    end function
    function headway_exchange_arrived(exchange, pe, arrived) bind(c) result(code)
      import :: c_int, headway_exchange
      type(headway_exchange), value :: exchange
      integer(c_int), value :: pe
      integer(c_int), intent(out) :: arrived
      integer(c_int) :: code
    end function
    function headway_exchange_free(exchange) bind(c) result(code)
      import :: c_int, headway_exchange
      type(headway_exchange), value :: exchange
      integer(c_int) :: code
    end function
  end interface

contains

  !> The text of the last error.
  function headway_error() result(text)
    character(:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    type(c_ptr) :: address
    integer, parameter :: length_max = 65536
    integer :: i
    address = headway_error_text()
    call c_f_pointer(address, bytes, [length_max])
    text = ''
    do i = 1, length_max
      if (bytes(i) == c_null_char) exit
      text = text // bytes(i)
    end do
  end function

  function field_of_int32(values, combine) result(field)
    integer(c_int32_t), target, contiguous, intent(in) :: values(:)
    integer(c_int), optional, intent(in) :: combine
    type(headway_field) :: field
    field = make(c_loc(values), size(values, kind=c_int64_t), 1_c_int64_t, headway_int32, combine)
  end function

  function field_of_int64(values, combine) result(field)
    integer(c_int64_t), target, contiguous, intent(in) :: values(:)
    integer(c_int), optional, intent(in) :: combine
    type(headway_field) :: field
    field = make(c_loc(values), size(values, kind=c_int64_t), 1_c_int64_t, headway_int64, combine)
  end function

  function field_of_float(values, combine) result(field)
    real(c_float), target, contiguous, intent(in) :: values(:)
    integer(c_int), optional, intent(in) :: combine
    type(headway_field) :: field
    field = make(c_loc(values), size(values, kind=c_int64_t), 1_c_int64_t, headway_float, combine)
  end function

  function field_of_double(values, combine) result(field)
    real(c_double), target, contiguous, intent(in) :: values(:)
    integer(c_int), optional, intent(in) :: combine
    type(headway_field) :: field
    field = make(c_loc(values), size(values, kind=c_int64_t), 1_c_int64_t, headway_double, combine)
  end function

  function fields_of_float(values, combine) result(field)
    real(c_float), target, contiguous, intent(in) :: values(:, :)
    integer(c_int), optional, intent(in) :: combine
    type(headway_field) :: field
    field = make(c_loc(values), size(values, 2, c_int64_t), size(values, 1, c_int64_t), headway_float, combine)
  end function

  function fields_of_double(values, combine) result(field)
    real(c_double), target, contiguous, intent(in) :: values(:, :)
    integer(c_int), optional, intent(in) :: combine
    type(headway_field) :: field
    field = make(c_loc(values), size(values, 2, c_int64_t), size(values, 1, c_int64_t), headway_double, combine)
  end function

  function make(address, elements, components, type, combine) result(field)
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in) :: elements, components
    integer(c_int), intent(in) :: type
    integer(c_int), optional, intent(in) :: combine
    type(headway_field) :: field
    field = headway_field(address, elements, 0_c_int64_t, components, type, headway_replace)
    if (present(combine)) field%combine = combine
  end function
end module
