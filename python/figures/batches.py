# SPDX-License-Identifier: BSD-3-Clause
"""Nanoseconds per item of Aggregator, in pairs with batches.cpp: `headway run -n 2 batches.py [ITEMS [WORDS]]`."""

import sys
import time

import headway
import numpy as np

pe = headway.init()
items = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
words = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 15
rng = np.random.default_rng(pe.id)
to = rng.integers(0, pe.size, items, dtype=np.uint32)
index = rng.integers(0, words, items)
value = np.ones(items, np.int64)
table = np.zeros(words, np.int64)
dtype = np.dtype([("index", np.int64), ("value", np.int64)])
rows = np.empty(items, dtype)
rows["index"], rows["value"] = index, value


def add(batch: np.ndarray) -> None:
    np.add.at(table, batch["index"], batch["value"])


def count(batch: np.ndarray) -> None:
    global seen
    seen += len(batch)


seen = 0
built_in = headway.Aggregator(pe, handler=headway.add(table))
function = headway.Aggregator(pe, dtype, add)
counting = headway.Aggregator(pe, dtype, count)
for name, send in (
    ("add(), two arrays", lambda: built_in.send(to, (index, value))),
    ("add(), structures", lambda: built_in.send(to, rows)),
    ("a function with np.add.at", lambda: function.send(to, rows)),
    ("a function that counts", lambda: counting.send(to, rows)),
):
    best = 1e9
    for _ in range(5):
        pe.barrier()
        begin = time.perf_counter()
        send()
        pe.quiesce()
        best = min(best, time.perf_counter() - begin)
    if pe.id == 0:
        print(f"{name:28} {best * 1e9 / items:6.2f} ns per item", flush=True)
assert headway.allreduce(pe, [table.sum()])[0] == 15 * items * pe.size
