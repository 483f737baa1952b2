/* SPDX-License-Identifier: BSD-3-Clause
 * A C program against L7's interface, which calls MPI itself: l7 [own|memory]. With own it initialises MPI itself; with
 * memory it repeats set-ups and measures its memory. Ends with 0 if all values are right. */
#include <l7/l7.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, all, wrong;

static void expect(int good, const char* what) {
  if (good) return;
  printf("PE %d of %d: wrong: %s\n", me, all, what);
  wrong = 1;
}

/* Collectives and messages of the program's own. */
static void call_mpi(void) {
  int one = 1, sum = 0, left = -1;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % all, 5, &left, 1, MPI_INT, (me + all - 1) % all, 5, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  expect(sum == all && left == (me + all - 1) % all, "MPI beside L7");
}

static unsigned next(unsigned* seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

#define CHECK_UPDATE(T, TYPE, VALUE)                                           \
  do {                                                                         \
    T* data = malloc((size_t)(owned + count + 1) * sizeof *data);              \
    for (int i = 0; i < owned + count; ++i) {                                  \
      const int id = i < owned ? first + i : -1;                               \
      data[i] = (T)(VALUE);                                                    \
    }                                                                          \
    expect(L7_Update(data, TYPE, plan) == L7_OK, "L7_Update with " #TYPE);     \
    for (int i = 0; i < owned + count; ++i) {                                  \
      const int id = i < owned ? first + i : all == 1 ? -1 : need[i - owned];  \
      expect(data[i] == (T)(VALUE), "an element after L7_Update with " #TYPE); \
    }                                                                          \
    free(data);                                                                \
  } while (0)

/* PE p owns 40 + 7 p + round ids; the third one none. All need any ids, from 1 on, in any order. */
static void check_update(int round, int* id, unsigned* seed) {
  int first = 1, owned = 0, total = 0;
  for (int p = 0; p < all; ++p) {
    const int here = p == 2 ? 0 : 40 + 7 * p + round;
    if (p < me) first += here;
    if (p == me) owned = here;
    total += here;
  }
  const int count = me == 1 ? 0 : 25 + round;
  int* need = malloc((size_t)(count + 1) * sizeof *need);
  for (int i = 0; i < count; ++i) need[i] = 1 + (int)(next(seed) % (unsigned)total);
  expect(L7_Setup(1, first, owned, need, count, id) == L7_OK, "L7_Setup");
  const int plan = *id;
  expect(all == 1 || plan > 0, "the id of a plan");
  CHECK_UPDATE(double, L7_DOUBLE, id * 1.5);
  CHECK_UPDATE(int, L7_INT, id * 3);
  CHECK_UPDATE(double, L7_REAL8, id * 2.5);
  CHECK_UPDATE(short, L7_SHORT, id);
  CHECK_UPDATE(char, L7_CHAR, id % 100);
  call_mpi();
  CHECK_UPDATE(long, L7_LONG, (long)id * 3000000000);
  CHECK_UPDATE(float, L7_FLOAT, id + 0.25f);
  CHECK_UPDATE(long long, L7_LONG_LONG_INT, (long long)id << 40);

  const int sent = L7_Get_Num_Indices(plan);
  int* indices = malloc((size_t)(sent + 1) * sizeof *indices);
  expect(L7_Get_Local_Indices(plan, indices) == L7_OK, "L7_Get_Local_Indices");
  for (int i = 0; i < sent; ++i) expect(indices[i] >= 0 && indices[i] < owned, "an index that is sent");
  int counts[2] = {sent, count}, sums[2];
  MPI_Allreduce(counts, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(all == 1 || sums[0] == sums[1], "numbers of elements sent and needed");
  free(indices);
  free(need);
}

/* To each PE, in falling order: me + partner + 1 elements. */
static void check_push(int* id) {
  const int partners = all;
  int *partner = malloc((size_t)all * sizeof *partner), *count = malloc((size_t)all * sizeof *count);
  int** lists = malloc((size_t)all * sizeof *lists);
  for (int p = 0; p < all; ++p) {
    partner[p] = all - 1 - p;
    count[p] = me + partner[p] + 1;
    lists[p] = malloc((size_t)count[p] * sizeof(int));
    for (int i = 0; i < count[p]; ++i) lists[p][i] = 3 * i + partner[p];
  }
  int total = -1, expected = 0;
  expect(L7_Push_Setup(partners, partner, count, lists, &total, id) == L7_OK, "L7_Push_Setup");
  for (int p = 0; p < all; ++p) free(lists[p]);
  for (int p = 0; p < all; ++p) expected += count[p];
  if (all == 1) expected = 0;
  expect(total == expected, "the number of elements that a push receives");
  int in[200], *out = malloc((size_t)(expected + 1) * sizeof *out);
  double real[200], *real_out = malloc((size_t)(expected + 1) * sizeof *real_out);
  for (int i = 0; i < 200; ++i) {
    in[i] = 1000 * me + i;
    real[i] = in[i] + 0.5;
  }
  for (int repeat = 0; repeat < 4; ++repeat) {
    memset(out, 0, (size_t)expected * sizeof *out);
    expect(L7_Push_Update(in, out, *id) == L7_OK, "L7_Push_Update");
    expect(L7_Push_Update_Type(real, real_out, L7_DOUBLE, *id) == L7_OK, "L7_Push_Update_Type");
    for (int p = 0, at = 0; p < all && all > 1; ++p) {
      for (int i = 0; i < count[p]; ++i, ++at) {
        const int value = 1000 * partner[p] + 3 * i + me;
        expect(out[at] == value && real_out[at] == value + 0.5, "a pushed element");
      }
    }
    call_mpi();
  }
  free(partner), free(count), free(lists), free(out), free(real_out);
}

/* Resident memory of this process. */
static long kilobytes(void) {
  char line[256];
  long found = -1;
  FILE* file = fopen("/proc/self/status", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "VmRSS: %ld", &found) == 1) break;
  }
  if (file != NULL) fclose(file);
  return found;
}

/* A mesh that changes: each round sets the same plans up again, with other elements, partners and arrays. */
static void check_memory(void) {
  /* malloc() may take one more step of 132 KiB. 256 bytes for each set-up are less than a plan and its exchanges. */
  enum { rounds = 1000, warm = 200, elements = 300, kilobytes_max = 256 };
  unsigned seed = 3u + (unsigned)me;
  int plan = 0, push = 0;
  long before = -1;
  for (int round = 0; round < warm + rounds; ++round) {
    if (round == warm) before = kilobytes();
    const int first = 1 + me * elements, here = elements + (me == all - 1 ? round % 5 : 0);
    const int count = 20 + (round + me) % 7;
    int need[32], partner, sends = 1 + round % 9, total = 0, lists[16], *list = lists;
    for (int i = 0; i < count; ++i) need[i] = 1 + (int)(next(&seed) % (unsigned)(elements * all));
    expect(L7_Setup(0, first, here, need, count, &plan) == L7_OK && plan == 1, "a repeated L7_Setup");
    double* heights = malloc((size_t)(here + count) * sizeof *heights);
    int* levels = malloc((size_t)(here + count) * sizeof *levels);
    for (int i = 0; i < here; ++i) {
      heights[i] = 0.5 * (first + i) + round;
      levels[i] = 2 * (first + i) + round;
    }
    expect(L7_Update(heights, L7_DOUBLE, plan) == L7_OK, "L7_Update");
    if (round % 3 != 1) expect(L7_Update(levels, L7_INT, plan) == L7_OK, "L7_Update"); /* not after each set-up */
    for (int i = 0; i < count; ++i) {
      expect(heights[here + i] == 0.5 * need[i] + round, "a ghost after a repeated set-up");
      if (round % 3 != 1) expect(levels[here + i] == 2 * need[i] + round, "a ghost after a repeated set-up");
    }
    partner = (me + 1 + round % (all - 1)) % all;
    for (int i = 0; i < sends; ++i) lists[i] = 7 * i;
    expect(L7_Push_Setup(1, &partner, &sends, &list, &total, &push) == L7_OK && push == 1 && total == sends, "push");
    int out[16];
    expect(L7_Push_Update(levels, out, push) == L7_OK, "L7_Push_Update");
    const int from = (me + 2 * all - 1 - round % (all - 1)) % all;
    for (int i = 0; i < sends; ++i) expect(out[i] == 2 * (1 + from * elements + 7 * i) + round, "a pushed element");
    free(heights), free(levels);
  }
  const long grown = kilobytes() - before;
  if (before < 0 || grown > kilobytes_max) printf("PE %d: memory has grown by %ld KiB from %ld\n", me, grown, before);
  expect(before > 0 && grown <= kilobytes_max, "memory after 1000 repeated set-ups");
}

static void check_reductions(void) {
  int in[3] = {me, 10 - me, 5}, out[3], place = -1, beside[3] = {7 + me, 8 + me, 9 + me}, loc = -1, loc2 = -1;
  double real[2] = {me * 1.5, -me}, real_out = 0;
  long long wide[2] = {(long long)(me + 1) << 40, 0}, wide_out = 0;
  const int triangle = all * (all - 1) / 2;
  expect(L7_Sum(in, 3, L7_INT, out) == L7_OK && out[0] == 15 * all, "L7_Sum");
  expect(L7_Sum(wide, 2, L7_LONG_LONG_INT, &wide_out) == L7_OK && wide_out == (long long)(triangle + all) << 40,
         "64 bits");
  expect(L7_Max(real, 2, L7_DOUBLE, &real_out) == L7_OK && real_out == 1.5 * (all - 1), "L7_Max");
  expect(L7_Min(real, 2, L7_REAL8, &real_out) == L7_OK && real_out == -(all - 1), "L7_Min");
  int flags[2] = {0, me == all - 1 ? 4 : 0}, ones[2] = {1, me == 0 ? 0 : 1};
  expect(L7_Any(flags, 2, L7_INT, out) == L7_OK && out[0] == 1, "L7_Any");
  expect(L7_Any(flags, 1, L7_INT, out) == L7_OK && out[0] == 0, "L7_Any of none");
  expect(L7_All(ones, 2, L7_INT, out) == L7_OK && out[0] == 0, "L7_All");
  expect(L7_All(ones, 1, L7_LOGICAL, out) == L7_OK && out[0] == 1, "L7_All of all");
  expect(L7_Array_Sum(in, 3, L7_INT, out) == L7_OK && out[0] == triangle && out[1] == 10 * all - triangle &&
             out[2] == 5 * all,
         "L7_Array_Sum");
  expect(L7_Array_Max(in, 3, L7_INT, out) == L7_OK && out[0] == all - 1 && out[1] == 10 && out[2] == 5, "Array_Max");
  expect(L7_Array_Min(in, 3, L7_INT, out) == L7_OK && out[0] == 0 && out[1] == 11 - all && out[2] == 5, "Array_Min");
  /* PE p has p + 1 elements for the locations: the last PE the largest, the first one the smallest. */
  double part[8];
  int before = me * (me + 1) / 2, elements = all * (all + 1) / 2;
  for (int i = 0; i <= me; ++i) part[i] = before + i;
  expect(L7_MaxLoc(part, me + 1, L7_DOUBLE, &place) == L7_OK && place == elements - 1, "L7_MaxLoc");
  expect(L7_MinLoc(part, me + 1, L7_DOUBLE, &place) == L7_OK && place == 0, "L7_MinLoc");
  expect(L7_MaxValLoc(part, me + 1, L7_DOUBLE, &real_out, &place) == L7_OK && real_out == elements - 1 &&
             place == elements - 1,
         "L7_MaxValLoc");
  expect(L7_MinValLoc(part, me + 1, L7_DOUBLE, &real_out, &place) == L7_OK && real_out == 0 && place == 0, "MinValLoc");
  for (int i = 0; i < 3; ++i) real[0] = 1;
  double three[3] = {0, me == all - 1 ? 9 : 1, 2};
  expect(L7_MaxValLocLoc_Int4(three, beside, 3, L7_REAL8, &real_out, &loc, &loc2) == L7_OK && real_out == 9 &&
             loc == 3 * (all - 1) + 1 && loc2 == 8 + all - 1,
         "L7_MaxValLocLoc_Int4");
  for (int i = 0; i < elements; ++i) {
    real_out = -1;
    expect(L7_GetGlobal(part, me + 1, L7_DOUBLE, i, &real_out) == L7_OK && real_out == i, "L7_GetGlobal");
  }
  out[0] = me, out[1] = me + 1;
  expect(L7_Broadcast(out, 2, L7_INT, all - 1) == L7_OK && out[0] == all - 1 && out[1] == all, "L7_Broadcast");
  call_mpi();
}

int main(int argc, char** argv) {
  const int own = argc > 1 && strcmp(argv[1], "own") == 0, memory = argc > 1 && strcmp(argv[1], "memory") == 0;
  int flag = 0, world = -1, worlds = 0;
  if (own) MPI_Init(&argc, &argv);
  expect(L7_Update(NULL, L7_INT, 1) != L7_OK, "an update before L7_Init");
  if (L7_Init(&me, &all, &argc, argv, 0, 0) != L7_OK) return 2;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  MPI_Comm_size(MPI_COMM_WORLD, &worlds);
  expect(world == me && worlds == all && me == L7_Get_Rank() && all == L7_Get_Numpes(), "ranks");
  if (memory) {
    check_memory();
    return L7_Terminate() == L7_OK ? wrong : 2;
  }
  unsigned seed = 7u + (unsigned)me;
  int ids[60] = {0}, push = 0;
  const double start = L7_Wtime();
  for (int i = 0; i < 60; ++i) check_update(i % 3, &ids[i], &seed); /* more plans than L7 has */
  for (int i = 0; i < 5; ++i) check_update(i, &ids[7], &seed);      /* a plan anew */
  for (int i = 0; i < 3; ++i) check_push(&push);
  check_reductions();
  expect(L7_Wtime() >= start, "the clock");
  int negative = -4;
  if (all > 1) {
    expect(L7_Setup(0, 0, 0, NULL, 0, &negative) != L7_OK, "a negative id");
    expect(L7_Update(&seed, L7_INT, 77) != L7_OK, "an update by no plan");
  }
  for (int i = 0; i < 60; ++i) expect(L7_Free(&ids[i]) == L7_OK, "L7_Free");
  expect(all == 1 || L7_Free(&ids[0]) != L7_OK, "L7_Free twice");
  expect(L7_Push_Free(&push) == L7_OK, "L7_Push_Free");
  expect(L7_Terminate() == L7_OK, "L7_Terminate");
  MPI_Finalized(&flag);
  expect(flag == !own, "whether MPI is finalized");
  if (own) {
    call_mpi();
    MPI_Finalize();
  }
  return wrong;
}
