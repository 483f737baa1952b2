// SPDX-License-Identifier: BSD-3-Clause
// L7's calls as Fortran compilers name them: all arguments by address. Argument lists are those of L7's own Fortran
// interface; `ierr` is last where it has one. No interface declares them: programs call them as external procedures.
#include <cstddef>
#include <vector>

#include "l7/l7.h"

namespace {

L7_Datatype type_of(const int* type) { return static_cast<L7_Datatype>(*type); }

}  // namespace

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): Fortran compilers add the underscore
void l7_init_(int* mype, int* numpes, int* ierr) { *ierr = L7_Init(mype, numpes, nullptr, nullptr, 0, 0); }
void l7_terminate_(int* ierr) { *ierr = L7_Terminate(); }
int l7_get_rank_() { return L7_Get_Rank(); }
int l7_get_numpes_() { return L7_Get_Numpes(); }
double l7_wtime_() { return L7_Wtime(); }

void l7_setup_(const int* my_start_index, const int* num_indices_owned, int* indices_needed,
               const int* num_indices_needed, int* l7_id) {
  L7_Setup(0, *my_start_index, *num_indices_owned, indices_needed, *num_indices_needed, l7_id);
}
void l7_update_(void* data_buffer, const int* type, const int* l7_id) { L7_Update(data_buffer, type_of(type), *l7_id); }
void l7_free_(const int* l7_id, int* ierr) { *ierr = L7_Free(l7_id); }
int l7_get_num_indices_(const int* l7_id) { return L7_Get_Num_Indices(*l7_id); }
void l7_get_local_indices_(const int* l7_id, int* local_indices, int* ierr) {
  *ierr = L7_Get_Local_Indices(*l7_id, local_indices);
}

/// `send_database` holds the list of one partner after the other. Its indices count from 0.
void l7_push_setup_(const int* num_comm_partners, const int* comm_partner, const int* send_buffer_count,
                    int* send_database, int* receive_count_total, int* l7_push_id, int* ierr) {
  std::vector<int*> lists;
  for (int p = 0; p < *num_comm_partners; ++p) {
    lists.push_back(send_database);
    send_database += send_buffer_count[p];
  }
  *ierr =
      L7_Push_Setup(*num_comm_partners, comm_partner, send_buffer_count, lists.data(), receive_count_total, l7_push_id);
}
void l7_push_update_(const int* array, int* return_array, const int* l7_push_id, int* ierr) {
  *ierr = L7_Push_Update(array, return_array, *l7_push_id);
}
void l7_push_free_(const int* l7_push_id, int* ierr) { *ierr = L7_Push_Free(l7_push_id); }

void l7_sum_(void* input, const int* count, const int* type, void* output, int* ierr) {
  *ierr = L7_Sum(input, *count, type_of(type), output);
}
void l7_max_(void* input, const int* count, const int* type, void* output, int* ierr) {
  *ierr = L7_Max(input, *count, type_of(type), output);
}
void l7_min_(void* input, const int* count, const int* type, void* output, int* ierr) {
  *ierr = L7_Min(input, *count, type_of(type), output);
}
void l7_any_(void* input, const int* count, const int* type, void* output, int* ierr) {
  *ierr = L7_Any(input, *count, type_of(type), output);
}
void l7_all_(void* input, const int* count, const int* type, void* output, int* ierr) {
  *ierr = L7_All(input, *count, type_of(type), output);
}
void l7_array_sum_(void* input, const int* count, const int* type, void* output, int* ierr) {
  *ierr = L7_Array_Sum(input, *count, type_of(type), output);
}
void l7_array_max_(void* input, const int* count, const int* type, void* output, int* ierr) {
  *ierr = L7_Array_Max(input, *count, type_of(type), output);
}
void l7_array_min_(void* input, const int* count, const int* type, void* output, int* ierr) {
  *ierr = L7_Array_Min(input, *count, type_of(type), output);
}
void l7_maxloc_(void* input, const int* count, const int* type, int* output, int* ierr) {
  *ierr = L7_MaxLoc(input, *count, type_of(type), output);
}
void l7_minloc_(void* input, const int* count, const int* type, int* output, int* ierr) {
  *ierr = L7_MinLoc(input, *count, type_of(type), output);
}
void l7_maxvalloc_(void* input, const int* count, const int* type, void* val, int* loc, int* ierr) {
  *ierr = L7_MaxValLoc(input, *count, type_of(type), val, loc);
}
void l7_minvalloc_(void* input, const int* count, const int* type, void* val, int* loc, int* ierr) {
  *ierr = L7_MinValLoc(input, *count, type_of(type), val, loc);
}
void l7_maxvallocloc_int4_(void* input, void* loc2input, const int* count, const int* type, void* val, void* loc,
                           void* loc2, int* ierr) {
  *ierr = L7_MaxValLocLoc_Int4(input, loc2input, *count, type_of(type), val, loc, loc2);
}
void l7_maxvallocloc_int8_(void* input, void* loc2input, const int* count, const int* type, void* val, void* loc,
                           void* loc2, int* ierr) {
  *ierr = L7_MaxValLocLoc_Int8(input, loc2input, *count, type_of(type), val, loc, loc2);
}
void l7_getglobal_(void* array, const int* count, const int* type, const int* index, void* val, int* ierr) {
  *ierr = L7_GetGlobal(array, *count, type_of(type), *index, val);
}
void l7_broadcast_(void* data_buffer, const int* count, const int* type, const int* root_pe, int* ierr) {
  *ierr = L7_Broadcast(data_buffer, *count, type_of(type), *root_pe);
}
// NOLINTEND(readability-identifier-naming)

}  // extern "C"
