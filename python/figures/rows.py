# SPDX-License-Identifier: BSD-3-Clause
"""Seconds of x[indices] and shuffle() for ROWS rows of all PEs: `headway run -n 2 rows.py [ROWS]`; with --mpi the same
by mpi4py's Alltoallv: `mpiexec -n 2 python rows.py [ROWS] --mpi`; and by dask: `python rows.py [ROWS] --dask`, with 2
worker processes of one thread each, which have the rows before the measurement and keep the result."""

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

rows_of_all = int(float(sys.argv[1])) if len(sys.argv) > 1 and sys.argv[1][:2] != "--" else 10_000_000


def best_of_5(
    make: Callable[[int], Any], call: Callable[[Any], Any], wait: Callable[[Any], object]
) -> tuple[float, Any]:
    """Seconds of call(make(round)) until wait() returns, without make(); and the last result."""
    best = 1e9
    for round_ in range(5):
        given = make(round_)
        wait(given)
        begin = time.perf_counter()
        result = call(given)
        wait(result)
        best = min(best, time.perf_counter() - begin)
    return best, result


def print_row(name: str, seconds: float) -> None:
    print(f"{name:12} {seconds:7.3f} s", flush=True)


def of_dask(workers: int = 2) -> None:
    """Each round has rows of its own, since dask keeps results of equal calls."""
    import dask.array
    import dask.dataframe
    import distributed
    import pandas

    n = rows_of_all // workers

    def index_of(seed: int) -> np.ndarray:
        return np.random.default_rng(seed).integers(0, n * workers, n)

    def rows_of(seed: int) -> pandas.DataFrame:
        rng = np.random.default_rng(seed)
        return pandas.DataFrame({"key": rng.integers(0, 1 << 40, n), "value": rng.random(n)})

    # Without a limit of memory, workers write nothing to disk.
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=None, dashboard_address=None,
                                  silence_logs=logging.ERROR) as cluster, distributed.Client(cluster) as client:
        addresses = list(client.scheduler_info()["workers"])

        def parts(make: Callable[[int], Any], round_: int = 0) -> list[distributed.Future]:
            return [client.submit(make, round_ * workers + worker, workers=[addresses[worker]])
                    for worker in range(workers)]

        def column(make: Callable[[int], np.ndarray], round_: int = 0) -> dask.array.Array:
            return dask.array.concatenate(
                [dask.array.from_delayed(part, (n,), np.int64) for part in parts(make, round_)]).persist()

        def wait(given: Any) -> None:
            distributed.wait(given)

        x = column(lambda worker: np.arange(worker * n, (worker + 1) * n))
        wait(x)
        seconds, result = best_of_5(lambda round_: column(index_of, round_), lambda index: x[index].persist(), wait)
        assert np.array_equal(result.compute(), column(index_of, 4).compute())
        print_row("x[indices]", seconds)
        del x, result
        seconds, result = best_of_5(
            lambda round_: dask.dataframe.from_delayed(parts(rows_of, round_), meta=rows_of(0)[:0]).persist(),
            lambda table: table.shuffle("key", npartitions=workers).persist(), wait)
        keys = [part["key"].compute().to_numpy() for part in result.partitions]
        assert sum(map(len, keys)) == n * workers
        assert sum(len(np.unique(part)) for part in keys) == len(np.unique(np.concatenate(keys)))
        print_row("shuffle", seconds)


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


def of_pes() -> None:
    rank, size, barrier, shuffle, gather = by_mpi() if "--mpi" in sys.argv else by_headway()
    n = rows_of_all // size
    rng = np.random.default_rng(rank)
    key, value = rng.integers(0, 1 << 40, n), rng.random(n)
    index = rng.integers(0, n * size, n)
    local = np.arange(rank * n, (rank + 1) * n)
    for name, call in (("x[indices]", lambda: gather(local, index)), ("shuffle", lambda: shuffle(key, value))):
        seconds, result = best_of_5(lambda _: None, lambda _: call(), lambda _: barrier())
        if name == "x[indices]":
            assert np.array_equal(result, index)
        if rank == 0:
            print_row(name, seconds)


if __name__ == "__main__":
    of_dask() if "--dask" in sys.argv else of_pes()
