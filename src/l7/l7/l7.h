/* SPDX-License-Identifier: BSD-3-Clause
 * L7's calls over Headway: programs that were written for L7 compile and link without change. docs/attach.md explains
 * the library. The calls return L7_OK, or another number after a message; a failure inside a collective call ends the
 * run. All calls but the queries are collective.
 */
#ifndef HEADWAY_L7_H
#define HEADWAY_L7_H

#ifdef __cplusplus
extern "C" {
#endif

#define L7_OK 0

/* The values are those of compiled programs. */
enum L7_Datatype {
  L7_GENERIC8 = 0,
  L7_BYTE = 1,
  L7_PACKED = 2,
  L7_CHAR = 3,
  L7_SHORT = 4,
  L7_INT = 5,
  L7_LONG = 6,
  L7_LONG_LONG_INT = 7,
  L7_FLOAT = 8,
  L7_DOUBLE = 9,
  L7_CHARACTER = 10,
  L7_LOGICAL = 11,
  L7_INTEGER4 = 12,
  L7_INTEGER8 = 13,
  L7_REAL4 = 14,
  L7_REAL8 = 15,
  L7_DATATYPE_MIN = L7_GENERIC8,
  L7_DATATYPE_MAX = L7_REAL8
};

/* Starts MPI unless it runs. The last two arguments are ignored. */
int L7_Init(int* mype, int* numpes, int* argc, char** argv, int do_quo_setup, int lttrace_on);
/* Finalizes MPI if L7_Init has started it. */
int L7_Terminate(void);
int L7_Get_Rank(void);
int L7_Get_Numpes(void);
double L7_Wtime(void); /* seconds */
int L7_Get_Timeout_Signal(void);
long long L7_Address(void* var);

/* --- update: ghosts by global ids */

/* `needed` in any order, repeated or own ids too. *l7_id 0: a new plan, above 0: that plan anew. */
int L7_Setup(const int num_base, const int my_start_index, const int num_indices_owned, int* indices_needed,
             const int num_indices_needed, int* l7_id);
/* Not of L7: the same with ids of 64 bits. */
int L7_Setup_Int8(const int num_base, const long long my_start_index, const long long num_indices_owned,
                  const long long* indices_needed, const long long num_indices_needed, int* l7_id);
int L7_Update(void* data_buffer, const enum L7_Datatype l7_datatype, const int l7_id);
int L7_Free(const int* l7_id);
/* Elements that this PE sends: their number, and their indices from 0, by rising rank of the receiver. */
int L7_Get_Num_Indices(const int l7_id);
int L7_Get_Local_Indices(const int l7_id, int* local_indices);

/* --- push: lists of local elements for partners */

int L7_Push_Setup(const int num_comm_partners, const int* comm_partner, const int* send_buffer_count,
                  int** send_database, int* receive_count_total, int* l7_push_id);
int L7_Push_Update(const int* array, int* return_array, const int l7_push_id);
/* Not of L7: the same for any type. */
int L7_Push_Update_Type(const void* array, void* return_array, const enum L7_Datatype l7_datatype,
                        const int l7_push_id);
int L7_Push_Free(const int* l7_push_id);

/* --- without OpenCL: as the plain forms, or nothing */

int L7_Dev_Init(void);
int L7_Dev_Setup(const int num_base, const int my_start_index, const int num_indices_owned, int* indices_needed,
                 const int num_indices_needed, int* l7_id);
int L7_Dev_Free(void);

/* --- reductions: of all elements of all PEs to one value */

int L7_Sum(void* input, const int count, const enum L7_Datatype l7_datatype, void* output);
int L7_Max(void* input, const int count, const enum L7_Datatype l7_datatype, void* output);
int L7_Min(void* input, const int count, const enum L7_Datatype l7_datatype, void* output);
int L7_Any(void* input, const int count, const enum L7_Datatype l7_datatype, void* output);
int L7_All(void* input, const int count, const enum L7_Datatype l7_datatype, void* output);
/* Element by element. */
int L7_Array_Sum(void* input, const int count, const enum L7_Datatype l7_datatype, void* output);
int L7_Array_Max(void* input, const int count, const enum L7_Datatype l7_datatype, void* output);
int L7_Array_Min(void* input, const int count, const enum L7_Datatype l7_datatype, void* output);
/* The global index of the first extreme element: from 0, the elements of lower ranks first. */
int L7_MaxLoc(void* input, const int count, const enum L7_Datatype l7_datatype, int* output);
int L7_MinLoc(void* input, const int count, const enum L7_Datatype l7_datatype, int* output);
int L7_MaxValLoc(void* input, const int count, const enum L7_Datatype l7_datatype, void* val, int* loc);
int L7_MinValLoc(void* input, const int count, const enum L7_Datatype l7_datatype, void* val, int* loc);
/* Also the element of `loc2input` beside the largest one. The locations have 4 or 8 bytes. */
int L7_MaxValLocLoc_Int4(void* input, void* loc2input, const int count, const enum L7_Datatype l7_datatype, void* val,
                         void* loc, void* loc2);
int L7_MaxValLocLoc_Int8(void* input, void* loc2input, const int count, const enum L7_Datatype l7_datatype, void* val,
                         void* loc, void* loc2);
/* The element with this global index, on every PE. */
int L7_GetGlobal(void* array, const int count, const enum L7_Datatype l7_datatype, const int index, void* val);
int L7_Broadcast(void* data_buffer, const int count, const enum L7_Datatype l7_datatype, const int root_pe);

#ifdef __cplusplus
}
#endif

#endif
