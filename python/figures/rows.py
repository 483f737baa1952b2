# SPDX-License-Identifier: BSD-3-Clause
"""Seconds of x[indices] and shuffle() for ROWS rows of all PEs: `headway run -n 2 rows.py [ROWS]`; with --mpi the same
by mpi4py's Alltoallv: `mpiexec -n 2 python rows.py [ROWS] --mpi`."""

import sys
import time
from collections.abc import Callable

import numpy as np

rows_of_all = int(float(sys.argv[1])) if len(sys.argv) > 1 and sys.argv[1] != "--mpi" else 10_000_000


def by_mpi() -> tuple[int, int, Callable[[], None], Callable, Callable]:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    size, rank = comm.size, comm.rank

    def exchange(columns: list[np.ndarray], owners: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        order = np.argsort(owners.astype(np.uint8 if size < 256 else np.uint16), kind="stable")  # a radix sort
        counts = np.bincount(owners, minlength=size)
        arriving = np.empty(size, counts.dtype)
        comm.Alltoall(counts, arriving)
        result = []
        for column in columns:
            got = np.empty(arriving.sum(), column.dtype)
            comm.Alltoallv([column[order], counts], [got, arriving])
            result.append(got)
        return result, order

    def shuffle(key: np.ndarray, value: np.ndarray) -> list[np.ndarray]:
        mixed = key.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return exchange([key, value], ((mixed >> np.uint64(32)) % np.uint64(size)).astype(np.int64))[0]

    def gather(local: np.ndarray, index: np.ndarray) -> np.ndarray:
        block = len(local)
        owners = index // block
        (asked,), order = exchange([index - owners * block], owners)
        counts = np.bincount(owners, minlength=size)
        arriving = np.empty(size, counts.dtype)
        comm.Alltoall(counts, arriving)
        sorted_values = np.empty(len(index), local.dtype)
        comm.Alltoallv([local[asked], arriving], [sorted_values, counts])
        values = np.empty_like(sorted_values)
        values[order] = sorted_values
        return values

    return rank, size, comm.Barrier, shuffle, gather


def by_headway() -> tuple[int, int, Callable[[], None], Callable, Callable]:
    import headway

    pe = headway.init()
    arrays: dict[int, headway.DistArray] = {}

    def gather(local: np.ndarray, index: np.ndarray) -> np.ndarray:
        if len(local) not in arrays:
            arrays[len(local)] = headway.DistArray(pe, len(local) * pe.size, local.dtype)
            arrays[len(local)].local[:] = local
            pe.barrier()
        return arrays[len(local)][index]

    return pe.id, pe.size, pe.barrier, lambda *columns: headway.shuffle(pe, *columns), gather


rank, size, barrier, shuffle, gather = by_mpi() if "--mpi" in sys.argv else by_headway()
n = rows_of_all // size
rng = np.random.default_rng(rank)
key, value = rng.integers(0, 1 << 40, n), rng.random(n)
index = rng.integers(0, n * size, n)
local = np.arange(rank * n, (rank + 1) * n)
for name, call in (("x[indices]", lambda: gather(local, index)), ("shuffle", lambda: shuffle(key, value))):
    best = 1e9
    for _ in range(5):
        barrier()
        begin = time.perf_counter()
        result = call()
        barrier()
        best = min(best, time.perf_counter() - begin)
    if name == "x[indices]":
        assert np.array_equal(result, index)
    if rank == 0:
        print(f"{name:12} {best:7.3f} s", flush=True)
