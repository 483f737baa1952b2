"""Figures of global memory on one host: puts of words beside UCX's, and reads of mapped memory beside local ones."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from figure_hosts import Job, in_turns, middle, ratio
from figure_table import CannotRun, Record, Row, slower_at_most

MOST = 1.5
PUTS = {"mapped": "10000000", "heap": "1000000"}


def puts(programs: Path, rounds: int, results: Path) -> Iterator[Row]:
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
            done = in_turns(jobs, rounds, results)
            what = f"{way} of 8 bytes, {'mapped' if memory == 'mapped' else 'by messages'}"
            of = f"x UCX's time, {'flush each' if way == 'write' else 'one flush'}, memory {memory}"
            yield slower_at_most(what, middle(done["ours"]), ratio_with_bounds(done), of, MOST, "")


def ratio_with_bounds(done: dict[str, list[Record]]) -> Record:
    return {"low": None, "high": None, **ratio(done["ours"], done["other"])}


def reads(programs: Path, rounds: int, results: Path) -> Iterator[Row]:
    """Blocking reads of a mapped table of which each PE has half, beside loads out of an array of the same length."""
    start = [str(programs / "headway"), "run", "-n", "2"]
    program = str(programs / "headway-indexgather")
    for dependent in (True, False):
        for log2 in ("16", "20", "24"):
            work = ["--log2", log2, "--gathers", "3000000" if dependent else "10000000"]
            work += ["--dependent"] if dependent else []
            jobs = {"ours": Job(start, [program, "--way", "read", *work]),
                    "other": Job(start, [program, "--way", "local", *work])}
            done = in_turns(jobs, rounds, results)
            what = f"read, 2^{log2} words, {'each needs the one before' if dependent else 'independent of one another'}"
            record, speeds = middle(done["ours"]), ratio_with_bounds(done)
            yield slower_at_most(what, record, speeds, "x a local read's time", MOST, "")


def of_global_memory(programs: Path, rounds: int, results: Path) -> Iterator[Row]:
    yield from puts(programs, rounds, results)
    yield from reads(programs, rounds, results)
