# SPDX-License-Identifier: BSD-3-Clause
"""For scripts/figures: halo exchanges beside MPI, PETSc, Tpetra and the packing loop alone, on one host and on two."""
from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from figure_bench import Bench
from figure_hosts import Job, environment_of_mpich, in_turns, middle, of_transport, ratio
from figure_table import Group, Record, Row, at_least

HEAP, FIELD, PACK = "halo heap", "halo field", "pack"
CASES = {**{f"row, {n}": ["--case", "row", "--elements", str(n)] for n in (8, 64, 256, 2048, 32768)},
         "row, 2048, 4 fields": ["--case", "row", "--fields", "4"],
         **{f"random, {n}": ["--case", "random", "--elements", str(n)] for n in (256, 4096, 32768)},
         **{case: ["--case", case] for case in ("grid27", "blocks", "particles")},
         **{f"recorded {name}": ["--case", "recorded", "--application", name]
            for name in ("clamr", "clamr-1", "cabana", "xrage")}}
OF_PACKING = {"row, 2048": 1.5, "random, 4096": 1.3, "random, 32768": 1.3}
SETUP_CASES = ("row, 32768", "random, 32768")
BEST_PEER = 1 / 1.03  # the bound of times as one of speeds
ON_HOSTS = {name: CASES[name] for name in ("row, 64", "row, 2048", "row, 32768", "random, 4096", "grid27", "blocks")}
BESIDE_ISEND = 1 / 1.05
OVERLAP = 1.3


def times(record: Record) -> str:
    return f"{record['us']['median']:.3g} us"


def halo_row(made: Row, record: Record) -> Row:
    return replace(made, figure=times(record))


def peers_of(group: Group) -> list[str]:
    return [label for label in group if label not in (HEAP, FIELD, PACK)]


def on_one_host(bench: Bench) -> Iterator[Row]:
    for name, case in CASES.items():
        line = ["-n", "2", *case, "--mode", "halo,pack", "--memory", "heap,field", "--peer", "available"]
        group, = bench.run("halo", *line, rounds=bench.rounds(15))
        best = min(peers_of(group), key=lambda label: group[label]["us"]["median"])
        for label in (HEAP, FIELD):
            record, peer = group[label], best.split(":")[0]
            speeds = record["of_peers"][best if best in record["of_peers"] else peer]
            yield halo_row(at_least(f"{name}: {label}", record, speeds, f"x {best}", BEST_PEER, times(group[best])),
                           record)
        yield of_packing(name, group)
        yield from of_setup(name, group)


def of_packing(name: str, group: Group) -> Row:
    """Times of an exchange in mapped memory beside the packing loop; both were paired with the exchange of the heap."""
    longer = group[PACK]["in_pairs"]["median"] / group[FIELD]["in_pairs"]["median"]
    bound = OF_PACKING.get(name)
    return Row(f"{name}: {FIELD}", times(group[FIELD]), longer, f"<= {bound:g}" if bound else "",
               not bound or longer <= bound, "x the packing loop", state=times(group[PACK]))


def of_setup(name: str, group: Group) -> Iterator[Row]:
    ours = group[HEAP]["setup_us"]
    for label in peers_of(group):
        library = label.split(":")[0]
        if library not in ("petsc", "tpetra"):
            continue
        longer, bound = ours / group[label]["setup_us"], name in SETUP_CASES
        yield Row(f"{name}: set-up", f"{ours:.4g} us", longer, "<= 1" if bound else "", not bound or longer <= 1,
                  f"x {library}", state=f"{group[label]['setup_us']:.4g} us")


def on_two_hosts(headway: Path, results: Path, rounds: int) -> Iterator[Row]:
    """A PE on each of two hosts, over the wire of the same MPI."""
    environment_of_mpich(headway.parent.parent)
    for mpi in ("openmpi", "mpich"):
        start = of_transport(mpi, headway)
        peer = [str(headway.parent / f"headway-peer-{mpi}"), "halo", "--mode", "isend"]
        for name, case in ON_HOSTS.items():
            jobs = {"ours": Job(start, [str(headway.parent / "headway-halo"), *case]),
                    "isend": Job(start, [*peer, *case])}
            done = in_turns(jobs, rounds, results)
            ours, isend = middle(done["ours"]), middle(done["isend"])
            yield halo_row(at_least(f"two hosts, {mpi}: {name}", ours, ratio(done["ours"], done["isend"]),
                                    "x isend's speed", BESIDE_ISEND, times(isend)), ours)


def overlapped(headway: Path, results: Path, rounds: int) -> Iterator[Row]:
    """The end of an exchange after a longer computation, with the helper thread, beside unpacking by hand."""
    start = of_transport("openmpi", headway)
    for name, case in {name: ON_HOSTS[name] for name in ("row, 32768", "random, 4096")}.items():
        work = [*case, "--compute-us", "2000", "--exchanges", "200"]
        jobs = {"ours": Job([*start, "env", "HEADWAY_PROGRESS=thread"], [str(headway.parent / "headway-halo"), *work]),
                "isend": Job(start, [str(headway.parent / "headway-peer-openmpi"), "halo", "--mode", "isend", *work])}
        done = in_turns(jobs, rounds, results)
        ends = [record["phases_us"]["end"] for record in done["ours"]]
        unpacked = [record["phases_us"]["unpack"] for record in done["isend"]]
        longer = statistics.median(end / unpack for end, unpack in zip(ends, unpacked))
        yield Row(f"two hosts, end() after 2 ms of computation: {name}", f"{statistics.median(ends):.3g} us", longer,
                  f"<= {OVERLAP:g}", longer <= OVERLAP, "x unpacking by hand",
                  state=f"{statistics.median(unpacked):.3g} us")


def halo(bench: Bench) -> Iterator[Row]:
    """Exchanges of two PEs beside the best peer, the packing loop alone, and set-up beside PETSc and Tpetra; two hosts
    beside MPI_Isend on the same wire."""
    yield from on_one_host(bench)
    yield from on_two_hosts(bench.binary, bench.results, bench.rounds(9))
    yield from overlapped(bench.binary, bench.results, bench.rounds(9))
