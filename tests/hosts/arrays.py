# SPDX-License-Identifier: BSD-3-Clause
"""Rows, items and array elements go from each PE to all, on other hosts too. Each PE verifies its own."""

import os

import numpy as np

import headway

pe = headway.init()
rows = 100_000


def keys(of: int) -> np.ndarray:
    return np.random.default_rng(of).integers(0, rows, rows)


everyone = np.concatenate([keys(p) for p in range(pe.size)])
mine = keys(pe.id)

key, value = headway.shuffle(pe, mine, mine * 0.5, destinations=mine % pe.size)
expected = everyone[everyone % pe.size == pe.id]
assert np.array_equal(key, expected) and np.array_equal(value, expected * 0.5), "shuffle"

counts = np.zeros(rows, np.int64)
updates = headway.Aggregator(pe, handler=headway.add(counts))
updates.send(mine % pe.size, (mine, 1))
pe.quiesce()
assert np.array_equal(counts, np.bincount(expected, minlength=rows)), "items"

array = headway.DistArray(pe, rows, np.int64)
array.add_at(mine, 1)
pe.barrier()
assert np.array_equal(array[mine], np.bincount(everyone, minlength=rows)[mine]), "elements"

hosts = headway.all_gather_object(pe, os.uname().nodename)
if pe.id == 0:
    print(f"{pe.size} PEs on {len(set(hosts))} hosts: verified")
