/* SPDX-License-Identifier: BSD-3-Clause
 * A C program over <headway/halo.h>. Checks the values of all kinds of plans, and the errors. Ends with 0 if all are
 * right. */
#include <headway/halo.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { owned = 6 };
static int me, all, wrong;

static void expect(int good, const char* what) {
  if (good) return;
  printf("PE %d: wrong: %s; the last error is: %s\n", me, what, headway_error_text());
  wrong = 1;
}

static void expect_error(int result, int code, const char* text) {
  if (result == code && strstr(headway_error_text(), text) != NULL) return;
  printf("PE %d: expected error %d with '%s', got %d: %s\n", me, code, text, result, headway_error_text());
  wrong = 1;
}

typedef struct cell {
  double height;
  float wind[2];
  int32_t level;
} cell;

/* Every PE needs the last id of its left and the first of its right neighbour, twice, and one of its own. */
static void needed(void) {
  const uint64_t ids = (uint64_t)(owned * all), first = (uint64_t)(owned * me);
  const uint64_t need[5] = {(first + owned) % ids, (first + ids - 1) % ids, (first + owned) % ids, first + 2,
                            (first + ids - 1) % ids};
  headway_plan *plan, *reversed;
  headway_exchange *exchange, *back;
  cell cells[owned + 5];
  int64_t numbers[2][owned + 5];
  uint64_t extent, received;
  expect(headway_plan_needed(first, owned, 5, need, &plan) == HEADWAY_OK, "needed");
  expect(headway_plan_sizes(plan, &extent, &received) == HEADWAY_OK && extent == owned + 5 && received == 5, "sizes");
  for (int i = 0; i != owned + 5; ++i) {
    const double id = i < owned ? (double)(first + (uint64_t)i) : -1;
    cells[i] = (cell){id, {(float)id + 1, (float)id + 2}, (int32_t)id};
    numbers[0][i] = numbers[1][i] = (int64_t)id * 3000000000;
  }
  headway_field fields[3] = {
      {&cells[0].height, owned + 5, sizeof(cell), 1, HEADWAY_DOUBLE, HEADWAY_REPLACE},
      {&cells[0].wind, owned + 5, sizeof(cell), 2 * sizeof(float), HEADWAY_BYTES, HEADWAY_REPLACE},
      {numbers[0], owned + 5, 0, 1, HEADWAY_INT64, HEADWAY_REPLACE},
  };
  expect(headway_exchange_make(plan, 3, fields, 0, &exchange) == HEADWAY_OK, "make");
  expect(headway_exchange_begin(exchange) == HEADWAY_OK, "begin");
  expect_error(headway_exchange_begin(exchange), HEADWAY_BAD_CALL, "begin");
  int done = 0;
  for (long long looks = 0; done == 0 && looks != 1000000000; ++looks)
    expect(headway_exchange_done(exchange, &done) == HEADWAY_OK, "done");
  expect(done == 1, "all elements arrive without end()");
  expect_error(headway_exchange_done(exchange, NULL), HEADWAY_BAD_CALL, "done is NULL");
  expect(headway_exchange_end(exchange) == HEADWAY_OK, "end");
  for (int i = 0; i != 5; ++i) {
    const cell* ghost = &cells[owned + i];
    expect(ghost->height == (double)need[i] && ghost->wind[0] == (float)need[i] + 1 &&
               ghost->wind[1] == (float)need[i] + 2 && ghost->level == -1 &&
               numbers[0][owned + i] == (int64_t)need[i] * 3000000000,
           "the values of a ghost");
    expect(numbers[1][owned + i] == -3000000000, "another array");
  }
  fields[2].data = numbers[1];
  expect(headway_exchange_rebind(exchange, 3, fields) == HEADWAY_OK, "rebind");
  expect(headway_exchange_run(exchange) == HEADWAY_OK, "run");
  for (int i = 0; i != 5; ++i) expect(numbers[1][owned + i] == (int64_t)need[i] * 3000000000, "after rebind");
  fields[2].type = HEADWAY_DOUBLE;
  expect_error(headway_exchange_rebind(exchange, 3, fields), HEADWAY_BAD_CALL, "rebind");

  /* Back to the owners: each first and last element gets two contributions, element 2 one. */
  double sum[owned + 5];
  int32_t least[owned + 5], most[owned + 5];
  float pair[owned + 5][2];
  for (int i = 0; i != owned + 5; ++i) {
    sum[i] = i < owned ? 100 : 1 + me;
    least[i] = i < owned ? 50 : me - 7;
    most[i] = i < owned ? -50 : me;
    pair[i][0] = i < owned ? 0.5f : 1;
    pair[i][1] = i < owned ? 0 : 2;
  }
  const headway_field contributions[4] = {
      {sum, owned + 5, 0, 1, HEADWAY_DOUBLE, HEADWAY_SUM},
      {least, owned + 5, 0, 1, HEADWAY_INT32, HEADWAY_MIN},
      {most, owned + 5, 0, 1, HEADWAY_INT32, HEADWAY_MAX},
      {pair, owned + 5, 0, 2, HEADWAY_FLOAT, HEADWAY_SUM},
  };
  expect(headway_plan_reverse(plan, &reversed) == HEADWAY_OK, "reverse");
  expect(headway_exchange_make(reversed, 4, contributions, 1, &back) == HEADWAY_OK, "make of the reverse");
  expect(headway_plan_free(plan) == HEADWAY_OK && headway_plan_free(reversed) == HEADWAY_OK, "free of plans");
  expect(headway_exchange_run(back) == HEADWAY_OK, "run of the reverse");
  const int left = (me + all - 1) % all, right = (me + 1) % all;
  expect(sum[0] == 100 + 2 * (1 + left) && sum[owned - 1] == 100 + 2 * (1 + right), "sums");
  expect(sum[1] == 100 && sum[2] == 101 + me && least[1] == 50, "elements with none or one");
  expect(least[0] == left - 7 && least[owned - 1] == right - 7, "minima");
  expect(most[0] == left && most[owned - 1] == right, "maxima");
  expect(pair[0][0] == 2.5f && pair[0][1] == 4, "sums of two components");
  expect(headway_exchange_free(exchange) == HEADWAY_OK && headway_exchange_free(back) == HEADWAY_OK, "free");
  expect_error(headway_exchange_run(back), HEADWAY_BAD_CALL, "was freed");
}

/* The same exchange by each of the other kinds of plans: element i of every PE goes to PE i, for i < all. */
static void others(void) {
  int* pes = malloc((size_t)all * sizeof *pes);
  size_t* ones = malloc((size_t)all * sizeof *ones);
  uint64_t *mine = malloc((size_t)all * sizeof *mine), *own = malloc((size_t)all * sizeof *own);
  uint64_t* ghosts = malloc((size_t)all * sizeof *ghosts);
  int32_t* data = malloc(2 * (size_t)all * sizeof *data);
  for (int i = 0; i != all; ++i) {
    pes[i] = i;
    ones[i] = 1;
    mine[i] = (uint64_t)me;
    own[i] = (uint64_t)i;
    ghosts[i] = (uint64_t)(all + i);
  }
  const uint64_t here = (uint64_t)all;
  const size_t partners = (size_t)all;
  headway_plan* plans[3];
  expect(headway_plan_receiving(here, partners, pes, mine, &plans[0]) == HEADWAY_OK, "receiving");
  expect(headway_plan_sending(here, partners, pes, ones, own, &plans[1]) == HEADWAY_OK, "sending");
  expect(headway_plan_both(partners, pes, ones, own, partners, pes, ones, ghosts, &plans[2]) == HEADWAY_OK, "both");
  for (int p = 0; p != 3; ++p) {
    for (int i = 0; i != 2 * all; ++i) data[i] = i < all ? 1000 * me + i : -1;
    const headway_field field = {data, 2 * here, 0, 1, HEADWAY_INT32, HEADWAY_REPLACE};
    headway_exchange* exchange;
    expect(headway_exchange_make(plans[p], 1, &field, 0, &exchange) == HEADWAY_OK, "make");
    expect(headway_exchange_run(exchange) == HEADWAY_OK, "run");
    for (int i = 0; i != all; ++i) expect(data[all + i] == 1000 * i + me, "an element of each PE");
  }
  int nowhere = all;
  expect_error(headway_plan_sending(here, 1, &nowhere, ones, own, &plans[0]), HEADWAY_BAD_CALL,
               "this run has PEs 0 to");
  free(pes), free(ones), free(mine), free(own), free(ghosts), free(data);
}

/* PE p owns 5 + (p + round) % 3 ids; returns the first of PE `pe`, or with pe == all their number. */
static uint64_t first_id(int pe, int round) {
  uint64_t first = 0;
  for (int p = 0; p < pe; ++p) first += (uint64_t)(5 + (p + round) % 3);
  return first;
}

enum { room = 7 + 40 };

/* The elements of `data` after an exchange: own ones, then ghosts of which ghost i is an element with id ghosts[i]. */
static void check_rebuilt(headway_exchange* exchange, double* data, int32_t* marks, uint64_t first, uint64_t here,
                          size_t ghosts, const uint64_t* ids, const char* what) {
  for (uint64_t i = 0; i != room; ++i) {
    data[i] = i < here ? 0.5 * (double)(first + i) : -1;
    marks[i] = i < here ? (int32_t)(first + i) : -1;
  }
  expect(headway_exchange_run(exchange) == HEADWAY_OK, what);
  for (uint64_t i = 0; i != room; ++i) {
    const uint64_t id = i < here ? first + i : i < here + ghosts ? ids[i - here] : UINT64_MAX;
    expect(data[i] == (id == UINT64_MAX ? -1 : 0.5 * (double)id), what);
    expect(marks[i] == (id == UINT64_MAX ? -1 : (int32_t)id), what);
  }
}

/* One plan and one exchange, rebuilt by each kind of plan; the numbers of elements and the partners change. */
static void rebuilt(void) {
  headway_plan *plan, *of_before;
  headway_exchange* exchange;
  double data[2][room];
  int32_t marks[room];
  const uint64_t start = (uint64_t)me, id = (uint64_t)((me + 1) % all);
  headway_field fields[2] = {{data[0], room, 0, 1, HEADWAY_DOUBLE, HEADWAY_REPLACE},
                             {marks, room, 0, 1, HEADWAY_INT32, HEADWAY_REPLACE}};
  expect(headway_plan_needed(start, 1, 1, &id, &plan) == HEADWAY_OK, "needed");
  expect(headway_plan_reverse(plan, &of_before) == HEADWAY_OK, "reverse");
  expect(headway_exchange_make(plan, 2, fields, 0, &exchange) == HEADWAY_OK, "make");
  check_rebuilt(exchange, data[0], marks, start, 1, 1, &id, "before it is rebuilt");
  uint64_t extent, received;
  for (int round = 0; round != 12; ++round) {
    /* The partner gets the last ids of this PE, 1 to 4 of them. */
    const int shift = 1 + round % 3, to = (me + shift) % all, from = (me + all - shift % all) % all;
    const uint64_t first = first_id(me, round), here = first_id(me + 1, round) - first;
    const uint64_t from_first = first_id(from, round), from_owned = first_id(from + 1, round) - from_first;
    size_t count = (size_t)(1 + round % 4);
    uint64_t ids[4], theirs[4], mine[4], ghosts[4];
    int pes[4];
    for (size_t i = 0; i != count; ++i) {
      theirs[i] = from_owned - count + i;
      ids[i] = from_first + theirs[i];
      mine[i] = here - count + i;
      ghosts[i] = here + i;
      pes[i] = from;
    }
    int code = HEADWAY_FAILED;
    switch (round % 4) {
      case 0: code = headway_plan_rebuild_needed(plan, first, here, count, ids); break;
      case 1: code = headway_plan_rebuild_receiving(plan, here, count, pes, theirs); break;
      case 2: code = headway_plan_rebuild_sending(plan, here, 1, &to, &count, mine); break;
      default: code = headway_plan_rebuild_both(plan, 1, &to, &count, mine, 1, &from, &count, ghosts);
    }
    expect(code == HEADWAY_OK, "a rebuilt plan");
    expect(headway_plan_sizes(plan, &extent, &received) == HEADWAY_OK && extent == here + count && received == count,
           "the sizes of a rebuilt plan");
    fields[0].data = data[round % 2];
    expect(headway_exchange_rebuild(exchange, plan, 2, fields) == HEADWAY_OK, "a rebuilt exchange");
    check_rebuilt(exchange, data[round % 2], marks, first, here, count, ids, "an exchange that is rebuilt");
    check_rebuilt(exchange, data[round % 2], marks, first, here, count, ids, "its second run");
  }
  expect(headway_plan_sizes(of_before, &extent, &received) == HEADWAY_OK && extent == 2 && received == 1,
         "the reversed plan of the one before");

  const uint64_t beyond = 1000000, before = extent;
  int nowhere = -1;
  size_t one = 1;
  expect(headway_plan_sizes(plan, &extent, &received) == HEADWAY_OK, "sizes");
  expect_error(headway_plan_rebuild_needed(plan, start, 1, 1, &beyond), HEADWAY_BAD_CALL, "id 1000000 has no owner");
  expect_error(headway_plan_rebuild_receiving(plan, 1, 1, &nowhere, &id), HEADWAY_BAD_CALL, "PE -1 is not there");
  expect_error(headway_plan_rebuild_sending(plan, 1, 1, &me, &one, &beyond), HEADWAY_BAD_CALL, "owns 1 element");
  expect_error(headway_plan_rebuild_both(plan, 1, NULL, &one, &id, 0, NULL, NULL, NULL), HEADWAY_BAD_CALL, "is NULL");
  expect_error(headway_plan_rebuild_needed(NULL, start, 1, 1, &id), HEADWAY_BAD_CALL, "no plan of this program");
  uint64_t after = 0;
  expect(headway_plan_sizes(plan, &after, NULL) == HEADWAY_OK && after == extent && after != before,
         "the plan after an error");
  fields[0].type = HEADWAY_INT64;
  expect_error(headway_exchange_rebuild(exchange, plan, 2, fields), HEADWAY_BAD_CALL, "rebuild()");
  fields[0].type = HEADWAY_DOUBLE;
  expect_error(headway_exchange_rebuild(exchange, NULL, 2, fields), HEADWAY_BAD_CALL, "no plan of this program");
  expect(headway_exchange_begin(exchange) == HEADWAY_OK, "begin");
  expect_error(headway_exchange_rebuild(exchange, plan, 2, fields), HEADWAY_BAD_CALL, "between begin() and end()");
  expect(headway_exchange_end(exchange) == HEADWAY_OK, "end");
  expect(headway_exchange_free(exchange) == HEADWAY_OK && headway_plan_free(plan) == HEADWAY_OK, "free");
}

/* Parts: threads compute the elements, mark their part, and look at ghosts as soon as these have arrived. */
enum { parts = 3, in_part = 4, in_parts = parts * in_part, steps = 25 };

static struct shared {
  headway_exchange* exchange;
  int left, step;
  double data[in_parts + in_parts];
  char text[parts][200]; /* of the first error of each thread */
} shared;

static double value_of(int pe, int step, int index) { return 10000.0 * step + 100.0 * pe + index; }

static size_t part_of(uint64_t index, void* context) { return (size_t)index / *(const size_t*)context; }

static void* compute(void* argument) {
  const int part = *(const int*)argument;
  char* text = shared.text[part];
  for (int i = part * in_part; i != (part + 1) * in_part; ++i) shared.data[i] = value_of(me, shared.step, i);
  if (headway_exchange_ready(shared.exchange, (size_t)part) != HEADWAY_OK)
    snprintf(text, sizeof shared.text[0], "%s", headway_error_text());
  int arrived = 0;
  while (headway_exchange_arrived(shared.exchange, shared.left, &arrived) == HEADWAY_OK && !arrived) sched_yield();
  if (!arrived) snprintf(text, sizeof shared.text[0], "arrived: '%s'", headway_error_text());
  for (int i = part * in_part; i != (part + 1) * in_part; ++i) {
    if (shared.data[in_parts + i] != value_of(shared.left, shared.step, i))
      snprintf(text, sizeof shared.text[0], "ghost %d in step %d is %f", i, shared.step, shared.data[in_parts + i]);
  }
  return NULL;
}

static void divided(void) {
  headway_plan* plan;
  int pes[in_parts], arrived = 7;
  uint64_t indices[in_parts];
  size_t length = in_part;
  shared.left = (me + all - 1) % all;
  for (int i = 0; i != in_parts; ++i) {
    pes[i] = shared.left;
    indices[i] = (uint64_t)i;
  }
  headway_field field = {shared.data, 2 * in_parts, 0, 1, HEADWAY_DOUBLE, HEADWAY_REPLACE};
  expect(headway_plan_receiving(in_parts, in_parts, pes, indices, &plan) == HEADWAY_OK, "receiving");
  expect(headway_exchange_make(plan, 1, &field, 0, &shared.exchange) == HEADWAY_OK, "make");

  headway_exchange* const exchange = shared.exchange;
  expect_error(headway_exchange_begin_parts(exchange), HEADWAY_BAD_CALL, "without parts");
  expect_error(headway_exchange_divide(exchange, 0, part_of, &length), HEADWAY_BAD_CALL, "0 parts");
  expect_error(headway_exchange_divide(exchange, parts, NULL, &length), HEADWAY_BAD_CALL, "rule is NULL");
  expect_error(headway_exchange_divide(exchange, 2, part_of, &length), HEADWAY_BAD_CALL, "given to part 2");
  expect_error(headway_exchange_divide(NULL, parts, part_of, &length), HEADWAY_BAD_CALL, "no exchange");
  expect(headway_exchange_divide(exchange, parts, part_of, &length) == HEADWAY_OK, "divide");
  expect_error(headway_exchange_ready(exchange, 0), HEADWAY_BAD_CALL, "before begin_parts()");
  expect_error(headway_exchange_ready(NULL, 0), HEADWAY_BAD_CALL, "exchange is NULL");

  expect(headway_exchange_begin_parts(exchange) == HEADWAY_OK, "begin_parts");
  expect_error(headway_exchange_ready(exchange, parts), HEADWAY_BAD_CALL, "parts 0 to 2");
  expect_error(headway_exchange_arrived(exchange, all, &arrived), HEADWAY_BAD_CALL, "this run has PEs 0 to");
  expect_error(headway_exchange_arrived(exchange, shared.left, NULL), HEADWAY_BAD_CALL, "arrived is NULL");
  if (all > 2) {
    expect_error(headway_exchange_arrived(exchange, (me + 1) % all, &arrived), HEADWAY_BAD_CALL,
                 "receives nothing from PE");
  }
  expect_error(headway_exchange_divide(exchange, parts, part_of, &length), HEADWAY_BAD_CALL, "between begin");
  expect(arrived == 7, "arrived after an error");
  for (int i = 0; i != in_parts; ++i) shared.data[i] = value_of(me, 0, i);
  expect(headway_exchange_ready(exchange, 1) == HEADWAY_OK, "ready");
  expect_error(headway_exchange_ready(exchange, 1), HEADWAY_BAD_CALL, "marked twice");
  expect(headway_exchange_ready(exchange, 2) == HEADWAY_OK, "ready");
  expect(headway_exchange_ready(exchange, 0) == HEADWAY_OK, "ready");
  expect(headway_exchange_end(exchange) == HEADWAY_OK, "end of parts");
  for (int i = 0; i != in_parts; ++i) {
    expect(shared.data[in_parts + i] == value_of(shared.left, 0, i), "a ghost by parts");
  }

  for (shared.step = 1; shared.step <= steps; ++shared.step) {
    pthread_t threads[parts];
    int numbers[parts];
    expect(headway_exchange_begin_parts(exchange) == HEADWAY_OK, "begin_parts");
    for (int part = 0; part != parts; ++part) {
      numbers[part] = part;
      if (pthread_create(&threads[part], NULL, compute, &numbers[part]) != 0) exit(3);
    }
    expect(headway_exchange_end(exchange) == HEADWAY_OK, "end of parts");
    for (int part = 0; part != parts; ++part) pthread_join(threads[part], NULL);
  }
  for (int part = 0; part != parts; ++part) {
    if (shared.text[part][0] == 0) continue;
    printf("PE %d: wrong: thread %d: %s\n", me, part, shared.text[part]);
    wrong = 1;
  }

  /* Rebuilding ends the parts. */
  expect(headway_exchange_rebuild(exchange, plan, 1, &field) == HEADWAY_OK, "rebuild");
  expect_error(headway_exchange_begin_parts(exchange), HEADWAY_BAD_CALL, "without parts");
  expect(headway_exchange_free(exchange) == HEADWAY_OK && headway_plan_free(plan) == HEADWAY_OK, "free");
}

static void refusals(void) {
  headway_plan* plan;
  headway_exchange* exchange;
  double data[2] = {0, 0};
  const uint64_t id = (uint64_t)me, beyond = 1000000;
  expect_error(headway_plan_needed((uint64_t)me, 1, 1, &beyond, &plan), HEADWAY_BAD_CALL, "id 1000000 has no owner");
  if (all > 1) expect_error(headway_plan_needed(0, 2, 0, NULL, &plan), HEADWAY_BAD_CALL, "without common");
  expect_error(headway_plan_needed((uint64_t)me, 1, 1, NULL, &plan), HEADWAY_BAD_CALL, "ids is NULL");
  expect(headway_plan_needed((uint64_t)me, 1, 1, &id, &plan) == HEADWAY_OK, "an own id");
  headway_field field = {data, 1, 0, 1, HEADWAY_DOUBLE, HEADWAY_REPLACE};
  expect_error(headway_exchange_make(plan, 1, &field, 0, &exchange), HEADWAY_BAD_CALL, "has 1 element");
  field.elements = 2;
  field.combine = 9;
  expect_error(headway_exchange_make(plan, 1, &field, 0, &exchange), HEADWAY_BAD_CALL, "combine is 9");
  field.combine = HEADWAY_SUM;
  field.type = HEADWAY_BYTES;
  expect_error(headway_exchange_make(plan, 1, &field, 0, &exchange), HEADWAY_BAD_CALL, "can only replace");
  field.type = HEADWAY_DOUBLE;
  field.stride = 4;
  expect_error(headway_exchange_make(plan, 1, &field, 0, &exchange), HEADWAY_BAD_CALL, "stride is 4");
  expect_error(headway_attach(), HEADWAY_BAD_CALL, "attach() twice");
}

int main(void) {
  expect_error(headway_detach(), HEADWAY_BAD_CALL, "without headway_attach()");
  expect(headway_rank() == -1, "the rank before attach");
  if (headway_attach() != HEADWAY_OK) {
    printf("%s\n", headway_error_text());
    return 2;
  }
  me = headway_rank();
  all = headway_size();
  needed();
  others();
  rebuilt();
  divided();
  refusals();
  expect(headway_detach() == HEADWAY_OK, "detach");
  return wrong;
}
