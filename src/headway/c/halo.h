/* SPDX-License-Identifier: BSD-3-Clause
 * Halo exchanges for C: <headway/halo.h>. C99 and later.
 *
 * Each call returns HEADWAY_OK or an error; headway_error_text() explains the last error of the thread. Calls that are
 * marked collective are made by all PEs, in the same order. An error of a collective call may concern one PE alone,
 * while the others wait for it: end the program then. All calls come from the thread that has called headway_attach(),
 * but for two: any thread may call headway_exchange_ready() and headway_exchange_arrived().
 */
#ifndef HEADWAY_HALO_H
#define HEADWAY_HALO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  HEADWAY_OK = 0,
  HEADWAY_BAD_SETTING = 1, /* a HEADWAY_ variable, or how the program was started */
  HEADWAY_BAD_CALL = 2,    /* an argument out of range, or a call that is not allowed now */
  HEADWAY_SYSTEM = 3,      /* the system refused memory, or another resource */
  HEADWAY_FAILED = 4       /* anything else */
};

/* The text of the last error of this thread, valid until its next error; "" if there was none. */
const char* headway_error_text(void);

/* Collective. Makes this process a PE of the run that mpirun, srun or `headway run` has started; else of a run of one
 * PE. The rank is the rank in MPI_COMM_WORLD. The program may initialise MPI before, and finalizes it afterwards. */
int headway_attach(void);
/* Collective. Frees all plans and exchanges. exit() before it ends the run with an error. */
int headway_detach(void);
/* -1 before headway_attach(). */
int headway_rank(void);
int headway_size(void);

/* --- plans: which elements travel between which PEs. Indices and ranks count from 0.
 * An array has `owned` elements of this PE, and its ghosts behind them. */

typedef struct headway_plan headway_plan;

/* Collective. This PE owns the global ids first to first + owned - 1, in its elements 0 to owned - 1, and needs `count`
 * ids: in any order, repeated, or its own. Id number i arrives in element owned + i. */
int headway_plan_needed(uint64_t first, uint64_t owned, size_t count, const uint64_t* ids, headway_plan** plan);
/* Collective. The same for elements that are named by owner and index: indices[i] of PE pes[i]. */
int headway_plan_receiving(uint64_t owned, size_t count, const int* pes, const uint64_t* indices, headway_plan** plan);
/* Collective. This PE sends counts[p] elements to each of `partners` PEs; `indices` holds one list after the other. A
 * receiver keeps them from element `owned` on, by rising rank of the sender. */
int headway_plan_sending(uint64_t owned, size_t partners, const int* pes, const size_t* counts, const uint64_t* indices,
                         headway_plan** plan);
/* Collective. Both sides: no communication. */
int headway_plan_both(size_t to_partners, const int* to_pes, const size_t* to_counts, const uint64_t* to_indices,
                      size_t from_partners, const int* from_pes, const size_t* from_counts,
                      const uint64_t* from_indices, headway_plan** plan);
/* Collective. The plan for other elements, in the memory of the old one; any of the four calls may have made it. Then
 * call headway_exchange_rebuild() for its exchanges. Exchanges that are not rebuilt keep the old plan, and so do
 * reversed plans. After an error the plan is the old one. */
int headway_plan_rebuild_needed(headway_plan* plan, uint64_t first, uint64_t owned, size_t count, const uint64_t* ids);
int headway_plan_rebuild_receiving(headway_plan* plan, uint64_t owned, size_t count, const int* pes,
                                   const uint64_t* indices);
int headway_plan_rebuild_sending(headway_plan* plan, uint64_t owned, size_t partners, const int* pes,
                                 const size_t* counts, const uint64_t* indices);
int headway_plan_rebuild_both(headway_plan* plan, size_t to_partners, const int* to_pes, const size_t* to_counts,
                              const uint64_t* to_indices, size_t from_partners, const int* from_pes,
                              const size_t* from_counts, const uint64_t* from_indices);
/* The plan from ghosts to owners. */
int headway_plan_reverse(const headway_plan* plan, headway_plan** reversed);
/* Exchanges that use the plan stay valid. NULL is allowed. */
int headway_plan_free(headway_plan* plan);
/* The least number of elements of an array; the number of elements that this PE receives. */
int headway_plan_sizes(const headway_plan* plan, uint64_t* extent, uint64_t* received);

/* --- exchanges: move the elements of arrays by a plan, one message for each partner */

enum { HEADWAY_BYTES = 0, HEADWAY_INT32 = 1, HEADWAY_INT64 = 2, HEADWAY_FLOAT = 3, HEADWAY_DOUBLE = 4 };
enum { HEADWAY_REPLACE = 0, HEADWAY_SUM = 1, HEADWAY_MIN = 2, HEADWAY_MAX = 3 };

/* An array. An element has `components` values of `type`. Element i begins at data + i * stride bytes. */
typedef struct headway_field {
  void* data;
  uint64_t elements; /* at least the plan's extent */
  uint64_t stride;   /* in bytes; 0: elements lie one after the other */
  uint64_t components;
  int type;    /* HEADWAY_BYTES: a component is one byte */
  int combine; /* what an arrived element does to that of the array; for HEADWAY_BYTES only replace */
} headway_field;

typedef struct headway_exchange headway_exchange;

/* Collective. Partners compare the numbers of elements and the types: a difference is an error. With `fixed_order` not
 * 0, sums are the same in every run. The arrays must stay where they are until headway_exchange_rebind(). */
int headway_exchange_make(const headway_plan* plan, size_t count, const headway_field* fields, int fixed_order,
                          headway_exchange** exchange);
/* Sends. Until the end, change neither the elements that travel nor those that arrive, and wait in no call of MPI. */
int headway_exchange_begin(headway_exchange* exchange);
/* The PE's thread, between begin and end: makes progress once, without waiting. *done is 1 if all elements have
 * arrived, so that the end waits for none, else 0. */
int headway_exchange_done(headway_exchange* exchange, int* done);
/* Waits until all elements have arrived, and all of this PE have left. */
int headway_exchange_end(headway_exchange* exchange);
/* Both. */
int headway_exchange_run(headway_exchange* exchange);
/* Later exchanges use these arrays, of the same types. Not collective. */
int headway_exchange_rebind(headway_exchange* exchange, size_t count, const headway_field* fields);
/* Collective. Later exchanges use this plan and these arrays, of the same types. Not between begin and end; all PEs
 * have done as many exchanges. Memory stays where it suffices. Parts end: divide again. */
int headway_exchange_rebuild(headway_exchange* exchange, const headway_plan* plan, size_t count,
                             const headway_field* fields);
/* After its end on all PEs. NULL is allowed. */
int headway_exchange_free(headway_exchange* exchange);

/* --- parts: several threads of the program compute the elements that this PE sends, and mark them as ready
 *
 *     headway_exchange_divide(exchange, parts, rule, context);
 *     in each step:  headway_exchange_begin_parts(exchange)     the PE's thread
 *                    headway_exchange_ready(exchange, part)     any thread, once for each part
 *                    headway_exchange_end(exchange)             the PE's thread, also before all parts are ready
 */

/* The part of a local element: 0 to parts - 1. */
typedef size_t (*headway_part_rule)(uint64_t index, void* context);

/* Divides the elements that this PE sends. Calls `rule` for each of them, and never after it returns. Not between begin
 * and end. Not collective: partners may use any form of begin. */
int headway_exchange_divide(headway_exchange* exchange, size_t parts, headway_part_rule rule, void* context);
/* As headway_exchange_begin(), but the elements for a partner leave when all their parts are ready. */
int headway_exchange_begin_parts(headway_exchange* exchange);
/* Any thread, between begin_parts and end: the elements of the part have their new values. The thread that completes
 * the elements for a partner of this host copies them to it. No lock is taken, so of `exchange` only NULL is refused.
 */
int headway_exchange_ready(headway_exchange* exchange, size_t part);
/* Any thread, from begin_parts until the next begin: *arrived is 1 if the elements of PE `pe` are in the arrays, else
 * 0. Of `exchange` only NULL is refused. */
int headway_exchange_arrived(const headway_exchange* exchange, int pe, int* arrived);

#ifdef __cplusplus
}
#endif

#endif
