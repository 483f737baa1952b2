# SPDX-License-Identifier: BSD-3-Clause
"""Figures of global memory: puts of words beside UCX's, reads of mapped memory beside local ones, gets by messages."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from figure_hosts import Job, compared, environment_of_mpich, in_turns, middle, of_transport, ratio
from figure_state import Processors
from figure_table import CannotRun, Record, Row, slower_at_most

MOST = 1.5
PUTS = {"mapped": "10000000", "heap": "1000000"}


def puts(programs: Path, processors: Processors, rounds: int, results: Path) -> Iterator[Row]:
    """What PE 0 puts to PE 1 beside UCX between two processes: mapped where UCX's memory is, else by messages."""
    peer = programs / "headway-peer-ucx-put"
    if not peer.exists():
        raise CannotRun(f"{peer} is not there: UCX's headers were not found when this was built")
    start = [str(programs / "headway"), "run", "-n", "2"]
    for memory, by in {"mapped": [], "heap": ["--messages-only"]}.items():
        for way in ("write", "put", "store"):
            if (way, memory) == ("store", "mapped"):
                continue  # goes by messages always
            many = ["--puts", "300000" if (way, memory) == ("write", "heap") else PUTS[memory]]
            of_peer = ["--way", "write" if way == "write" else "put", "--memory", memory, "--puts", "1000000"]
            jobs = {"ours": Job(start, [str(programs / "headway-put"), "--way", way, *by, *many]),
                    "other": Job([], [str(peer), *of_peer])}
            done = in_turns(jobs, rounds, results, processors)
            what = f"{way} of 8 bytes, {'mapped' if memory == 'mapped' else 'by messages'}"
            of = f"x UCX's time, {'flush each' if way == 'write' else 'one flush'}, memory {memory}"
            yield slower_at_most(what, middle(done["ours"]), ratio_with_bounds(done), of, MOST, "")


def ratio_with_bounds(done: dict[str, list[Record]]) -> Record:
    return {"low": None, "high": None, **ratio(done["ours"], done["other"])}


def reads(programs: Path, processors: Processors, rounds: int, results: Path) -> Iterator[Row]:
    """Blocking reads of a mapped table of which each PE has half, beside loads out of an array of the same length."""
    start = [str(programs / "headway"), "run", "-n", "2"]
    program = str(programs / "headway-indexgather")
    for dependent in (True, False):
        for log2 in ("16", "20", "24"):
            work = ["--log2", log2, "--gathers", "3000000" if dependent else "10000000"]
            work += ["--dependent"] if dependent else []
            jobs = {"ours": Job(start, [program, "--way", "read", *work]),
                    "other": Job(start, [program, "--way", "local", *work])}
            done = in_turns(jobs, rounds, results, processors)
            what = f"read, 2^{log2} words, {'each needs the one before' if dependent else 'independent of one another'}"
            record, speeds = middle(done["ours"]), ratio_with_bounds(done)
            yield slower_at_most(what, record, speeds, "x a local read's time", MOST, "")


def gets_by_messages(programs: Path, processors: Processors, rounds: int, results: Path) -> Iterator[Row]:
    """Gets where nothing is mapped, each a request and a reply, beside the limit's updates, which nobody answers."""
    ours = Job([str(programs / "headway"), "run", "-n", "2"],
               [str(programs / "headway-indexgather"), "--messages-only", "--log2", "16", "--gathers", "10000000"])
    limit = Job([], [str(programs / "headway-limit"), "--bench", "ring", "--pattern", "both-ways", "--table-log2", "16",
                     "--messages", "10000000"])
    yield compared("get of 8 bytes, by messages, 2^16 words", ours, limit, "of limit's updates", 0.3, rounds, results,
                   processors)


def gets_between_hosts(headway: Path, rounds: int, results: Path) -> Iterator[Row]:
    """A PE on each of two hosts, joined by TCP."""
    environment_of_mpich(headway.parent.parent)
    program = str(headway.parent / "headway-indexgather")
    for transport in ("openmpi", "mpich", "ucx"):
        start = of_transport(transport, headway)
        gets = Job(start, [program, "--log2", "20", "--gathers", "3000000"])
        reads_each = Job(start, [program, "--log2", "20", "--way", "read", "--gathers", "10000"])
        yield compared(f"{transport}: get of 8 bytes, 2^20 words, two hosts", gets, reads_each, "x blocking reads", 20,
                       rounds, results)


def of_global_memory(headway: Path, processors: Processors, rounds: int, results: Path) -> Iterator[Row]:
    programs = headway.parent
    yield from puts(programs, processors, rounds, results)
    yield from reads(programs, processors, rounds, results)
    yield from gets_by_messages(programs, processors, rounds, results)
    yield from gets_between_hosts(headway, rounds, results)
