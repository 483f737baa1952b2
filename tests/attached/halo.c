/* SPDX-License-Identifier: BSD-3-Clause
 * A C program over <headway/halo.h>. Checks the values of all kinds of plans, and the errors. Ends with 0 if all are
 * right. */
#include <headway/halo.h>
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
  refusals();
  expect(headway_detach() == HEADWAY_OK, "detach");
  return wrong;
}
