# SPDX-License-Identifier: BSD-3-Clause
"""Figures between hosts, which are namespaces of this machine, joined by TCP (tests/hosts/hosts)."""
from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from figure_state import Processors
from figure_table import CannotRun, Record, Row, at_least, rate

TOP = Path(__file__).resolve().parent.parent
HOSTS = TOP / "tests/hosts/hosts"
BUCKETS_BYTES = ("64K", "256K", "1M")


@dataclass(frozen=True)
class Job:
    """A program and how its processes are started."""

    start: list[str]
    program: list[str]

    def run(self, file: Path) -> Record:
        command = [*self.start, *self.program, "--json", str(file)]
        file.unlink(missing_ok=True)
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if ended.returncode != 0:
            raise CannotRun(f"{' '.join(command)}: status {ended.returncode}: {ended.stderr.strip()}")
        record: Record = json.loads(file.read_text())
        return record["records"][0] if "records" in record else record


def speed(record: Record) -> float:
    return 1 / record["one_way_us"]["median"] if "one_way_us" in record else rate(record)


def in_turns(jobs: dict[str, Job], rounds: int, results: Path,
             processors: Processors | None = None) -> dict[str, list[Record]]:
    """All in one round, then all in the next; with `processors` those in which they were together."""
    def one() -> dict[str, Record]:
        return {name: job.run(results / "hosts.json") for name, job in jobs.items()}
    all_rounds = processors.rounds_together(rounds, one) if processors else [one() for _ in range(rounds)]
    return {name: [of_round[name] for of_round in all_rounds] for name in jobs}


def ratio(of: list[Record], to: list[Record]) -> Record:
    """Of speeds of neighbours; with bounds for 9 pairs, by the sign test."""
    pairs = sorted(speed(a) / speed(b) for a, b in zip(of, to))
    bounds = {"low": pairs[1], "high": pairs[-2]} if len(pairs) == 9 else {}
    return {"median": statistics.median(pairs), **bounds}


def middle(records: list[Record]) -> Record:
    return sorted(records, key=speed)[len(records) // 2]


def compared(what: str, ours: Job, other: Job, of: str, bound: float, rounds: int, results: Path,
             processors: Processors | None = None) -> Row:
    done = in_turns({"ours": ours, "other": other}, rounds, results, processors)
    return at_least(what, middle(done["ours"]), ratio(done["ours"], done["other"]), of, bound)


def environment_of_mpich(build: Path) -> None:
    """MPICH 4.0 of Debian may hang in MPI_Finalize over TCP: see src/headway/transport/mpi/mpich_finalize.cpp."""
    preload = build / "tests/hosts_mpich_finalize.so"
    if preload.exists():
        os.environ.setdefault("HOSTS_MPICH_PRELOAD", str(preload))


def of_transport(name: str, headway: Path, hosts: int = 2, per_host: int = 1) -> list[str]:
    """Starts so many processes on each of so many hosts."""
    start = [str(HOSTS), "run", str(hosts), "--timeout", "100"]
    if name == "ucx":
        names = ",".join(f"h{i + 1}" for i in range(hosts))
        return [*start, str(headway), "run", "--transport", "ucx", "-n", str(hosts * per_host), "--hosts", names,
                "--agent",
                str(HOSTS.parent / "agent")]
    return [*start, "hosts", "mpi", name, str(per_host)]


def between_hosts(headway: Path, results: Path, rounds: int) -> Iterator[Row]:
    programs = headway.parent
    environment_of_mpich(programs.parent)
    for transport in ("openmpi", "mpich", "ucx"):
        start = of_transport(transport, headway)
        mpi = transport if transport != "ucx" else "openmpi"
        start_of_peer = of_transport(mpi, headway)

        def ours(program: str, *options: str) -> Job:
            return Job(start, [str(programs / f"headway-{program}"), *options])

        def peer(*options: str) -> Job:
            return Job(start_of_peer, [str(programs / f"headway-peer-{mpi}"), *options])

        few, many = ["--bytes", "8", "--messages", "100000"], ["--bytes", "8", "--messages", "20000000"]
        yield compared(f"{transport}: stream, 8 bytes, 1d", ours("stream", "--mode", "1d", *many),
                       ours("stream", "--mode", "direct", *few), "x direct", 50, rounds, results)
        yield compared(f"{transport}: stream, 8 bytes, direct", ours("stream", "--mode", "direct", *few),
                       peer("stream", "--mode", "mpi-direct", *few), f"x MPI_Isend, {mpi}", 0.9, rounds, results)
        yield compared(f"{transport}: pingpong, 8 bytes, direct", ours("pingpong", "--mode", "direct", "--bytes", "8"),
                       peer("pingpong", "--mode", "mpi", "--bytes", "8"), f"x {mpi}'s speed", 0.9, rounds, results)
        yield from of_randomaccess(transport, mpi, ours, peer, rounds, results)
    yield from routes_over_hosts(headway, results, rounds)
    yield from under_mpirun(headway, results, rounds)


def of_randomaccess(transport: str, mpi: str, ours: Callable[..., Job], peer: Callable[..., Job], rounds: int,
                    results: Path) -> Iterator[Row]:
    for log2, each in (("14", "2048"), ("20", "32")):
        work = ["--log2", log2, "--updates-per-word", each]
        jobs = {"ours": ours("randomaccess", "--mode", "1d", *work)}
        for size in BUCKETS_BYTES:
            jobs[size] = peer("randomaccess", "--mode", "mpi-alltoallv", "--buffer-bytes", size, *work)
        done = in_turns(jobs, rounds, results)
        best = max(BUCKETS_BYTES, key=lambda size: statistics.median(map(speed, done[size])))
        yield at_least(f"{transport}: randomaccess, 2^{log2} words, 1d", middle(done["ours"]),
                       ratio(done["ours"], done[best]), f"x mpi-alltoallv of {best}, {mpi}", 1, "")
    yield compared(f"{transport}: randomaccess, 2^14 words, 1d",
                   ours("randomaccess", "--mode", "1d", "--log2", "14", "--updates-per-word", "1024"),
                   peer("randomaccess", "--mode", "mpi-direct", "--log2", "14"), f"x mpi-direct, {mpi}", 50, rounds,
                   results)


def routes_over_hosts(headway: Path, results: Path, rounds: int) -> Iterator[Row]:
    """16 PEs on 4 hosts, at equal memory.

    1d has 16 buffers, whs 3 of four times the size and 4 as small, and hh less."""
    start = of_transport("openmpi", headway, 4, 4)
    for updates, log2 in (("2^15", "13"), ("2^22", "20")):
        jobs = {mode: Job(start, [str(headway.parent / "headway-randomaccess"), "--log2", log2, "--mode", mode,
                                  "--buffer-bytes", size])
                for mode, size in (("1d", "4K"), ("whs", "16K"), ("hh", "16K"))}
        done = in_turns(jobs, rounds, results)
        crossing = {mode: middle(records)["frames_between_hosts"] for mode, records in done.items()}
        for mode in ("whs", "hh"):
            what, fewer = f"4 hosts of 4 PEs, {updates} updates, {mode}", crossing["1d"] / crossing[mode]
            yield Row(f"{what}: frames between hosts", str(crossing[mode]), fewer, ">= 3", fewer >= 3,
                      "times fewer than 1d")
            yield at_least(what, middle(done[mode]), ratio(done[mode], done["1d"]), "x 1d's speed", 1)


OBJECTS = {"bfs": ["--scale", "13", "--roots", "2", "--every-edge"], "sssp": ["--scale", "12", "--roots", "1"],
           "phold": ["--processes-per-pe", "256", "--end-time", "20"]}


def objects_between_hosts(headway: Path, results: Path, rounds: int) -> Iterator[Row]:
    """Applications on elements, a PE on each of two hosts."""
    environment_of_mpich(headway.parent.parent)
    for transport in ("openmpi", "mpich", "ucx"):
        start = of_transport(transport, headway)
        for name, work in OBJECTS.items():
            program = headway.parent / f"headway-{name}"
            if not program.exists():
                continue
            jobs = (Job(start, [str(program), "--mode", mode, *work]) for mode in ("1d", "direct"))
            yield compared(f"{transport}: {name}, 1d", *jobs, "x direct", 10, rounds, results)


def under_mpirun(headway: Path, results: Path, rounds: int) -> Iterator[Row]:
    """Processes of one host share memory, whoever has started them."""
    starts = {"openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe", "-n", "2"],
              "mpich": ["mpirun.mpich", "-n", "2"]}
    work = {"stream": ["--mode", "1d", "--bytes", "8", "--messages", "20000000"],
            "pingpong": ["--mode", "direct", "--bytes", "8"],
            "randomaccess": ["--mode", "1d", "--log2", "16", "--updates-per-word", "256"]}
    for mpi, start in starts.items():
        for name, options in work.items():
            program = [str(headway.parent / f"headway-{name}"), *options]
            forked = Job([str(headway), "run", "-n", "2"], program)
            yield compared(f"mpirun of {mpi}, one host: {name}", Job(start, program), forked, "x forked", 0.95, rounds,
                           results)
