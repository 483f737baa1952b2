# SPDX-License-Identifier: BSD-3-Clause
"""For scripts/figures: large messages beside MPI, UCX and hand-written loops."""
from __future__ import annotations

import subprocess
from collections.abc import Iterator

from figure_bench import Bench
from figure_table import DIRECT, LIMIT, CannotRun, Group, Record, Row, at_least, figure_of, unbounded

ZEROCOPY_SIZES = (8, 64, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 64 << 20)
ON_MPI = ("mpi:openmpi", "mpi:openmpi-nocma", "mpi:mpich")
REGULAR, KEPT = "regular heap", "kept heap"


def one_way_us(record: Record) -> float:
    """Infinite where the machine does not do this."""
    return record["one_way_us"]["median"] if "one_way_us" in record else float("inf")


def zerocopy_ways(bench: Bench) -> list[str]:
    """Those that the program knows."""
    program = bench.binary.parent / "headway-zerocopy"
    try:
        told = subprocess.run([str(program), "--list-ways"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotRun(f"{program} --list-ways: {error}") from error
    return told.stdout.split()


def zerocopy(bench: Bench) -> Iterator[Row]:
    """A message there and back out of memory of its sender, in each way, beside MPI, UCX and hand-written loops."""
    ways = zerocopy_ways(bench)
    if "regular" not in ways:
        raise CannotRun(f"headway-zerocopy has no way 'regular': {' '.join(ways)}")
    ways = ["regular", *(way for way in ways if way != "regular")]  # the first is what the others are compared with
    for size in ZEROCOPY_SIZES:
        trips = min(3000, max(10, (128 << 20) // size))
        line = ["-n", "2", "--bytes", str(size), "--messages", str(trips), "--buffers", "reused,fresh"]
        line += ["--way", ",".join(ways), "--memory", "heap,pool", "--mode", f"{DIRECT},{LIMIT}"]
        line += ["--peer", ",".join((*ON_MPI, "ucx"))]
        for group in bench.run_together("zerocopy", *line, rounds=bench.rounds(7)):
            yield from zerocopy_rows(ways, group)


def zerocopy_rows(ways: list[str], group: Group) -> Iterator[Row]:
    size, buffers = group[REGULAR]["message_bytes"], group[REGULAR]["buffers"]
    mpi = min(ON_MPI, key=lambda peer: one_way_us(group[peer]))
    by_hand = min(("limit-cma", "limit-pieces"), key=lambda limit: one_way_us(group[limit]))
    for way in ways:
        for memory in ("heap", "pool"):
            record = group[f"{way} {memory}"]
            what, direct_pool = f"{size} bytes, {buffers}, {way} {memory}", (way, memory) == ("direct", "pool")
            if way == "kept":
                yield unbounded(what, record, record["in_pairs"], f"x {REGULAR}")
            elif record is not group[REGULAR]:
                yield at_least(what, record, record["in_pairs"], f"x {REGULAR}", 0.95)
            if way in ("post", "direct"):  # which leave the content where the receiver keeps it
                of_kept = {"median": one_way_us(group[KEPT]) / one_way_us(record)}
                yield at_least(what, record, of_kept, f"x {KEPT}", 0.95)
            of_mpi, of, state = record["of_peers"][mpi], f"x {mpi}", figure_of(group[mpi])
            if way == "regular":
                yield at_least(what, record, of_mpi, of, 0.95, state)
            elif direct_pool and 64 << 10 <= size <= 4 << 20:
                yield at_least(what, record, of_mpi, of, 1.3, state)
            else:
                yield unbounded(what, record, of_mpi, of, state)
            mapped = record["of_limit-mapped"], "of limit-mapped", figure_of(group["limit-mapped"])
            if direct_pool and buffers == "fresh" and size >= 4 << 10:
                yield at_least(what, record, mapped[0], mapped[1], 0.85, mapped[2])
            else:
                yield unbounded(what, record, *mapped)
            of_hand, of, state = record[f"of_{by_hand}"], f"of {by_hand}", figure_of(group[by_hand])
            if (way, memory) == ("direct", "heap"):
                yield at_least(what, record, of_hand, of, 0.9, state)
            else:
                yield unbounded(what, record, of_hand, of, state)
    # no way that copies to its reader can be ahead of the last two
    for other in (*ON_MPI, "ucx", "limit-mapped", by_hand):
        ratio = group[other]["in_pairs"]
        yield unbounded(f"{size} bytes, {buffers}, {other}", group[other], ratio, f"x {REGULAR}")


def zerocopy_read(bench: Bench) -> Iterator[Row]:
    """The same where every receiver, also of MPI, reads all of each message: who leaves content with its reader has
    moved it by then."""
    ways = [way for way in zerocopy_ways(bench) if way != "regular"]
    for size in ZEROCOPY_SIZES:
        trips = min(3000, max(10, (64 << 20) // size))
        line = ["-n", "2", "--touch", "--bytes", str(size), "--messages", str(trips), "--buffers", "reused,fresh"]
        line += ["--way", ",".join(("regular", *ways)), "--memory", "heap,pool", "--peer", ",".join((*ON_MPI, "ucx"))]
        for group in bench.run("zerocopy", *line, rounds=bench.rounds(15)):
            buffers = group[REGULAR]["buffers"]
            mpi = min(ON_MPI, key=lambda peer: one_way_us(group[peer]))
            for way in ("regular", *ways):
                for memory in ("heap", "pool"):
                    record = group[f"{way} {memory}"]
                    what = f"{size} bytes read, {buffers}, {way} {memory}"
                    if way in ("send", "post", "direct"):
                        yield at_least(what, record, record["in_pairs"], f"x {REGULAR}", 0.95)
                    bound, of = (0.95 if way == "regular" else None), f"x {mpi}"
                    if bound is None:
                        yield unbounded(what, record, record["of_peers"][mpi], of, figure_of(group[mpi]))
                    else:
                        yield at_least(what, record, record["of_peers"][mpi], of, bound, figure_of(group[mpi]))
