# SPDX-License-Identifier: BSD-3-Clause
"""Speedup over a run with one PE, and what it was lost to."""

from __future__ import annotations

from .blocks import Block, Paragraph, Section, Table
from .counts import PARTS, Counts
from .facts import Facts
from .units import MISSING, duration, number, percent


def speedup_sections(facts: Facts) -> list[Section]:
    return [Section("speedup", "Speedup", frozenset({"balance", "waits"}), _speedup(facts))]


def _computed(times: dict[str, float]) -> float:
    return times["program"] + times["handlers"]


def _speedup(facts: Facts) -> list[Block]:
    one, counts = facts.run.one_pe, facts.run.counts
    if one is None or one.times_ns is None or counts is None or counts.times_ns is None:
        return []
    alone, pes, run = one.max("run_ns"), counts.pes, counts.max("run_ns")
    if not alone or not run:
        return []
    means = {part: sum(times[part] for times in counts.times_ns) / pes for part in PARTS}
    work = _computed(one.times_ns[0]) / pes
    # A PE that ended early waits for the last one.
    parts = [
        ("work of one PE, shared", work),
        ("extra work", _computed(means) - work),
        ("communication", means["communication"]),
        ("waiting", run - _computed(means) - means["communication"]),
    ]
    rows = [
        [name, duration(ns), percent(ns, run), number(alone / (run - ns)) if index and ns < run else MISSING]
        for index, (name, ns) in enumerate(parts)
    ]
    rows.append(["run time", duration(run), percent(1), MISSING])
    blocks: list[Block] = [
        Paragraph(
            f"{pes} PEs take {duration(run)}, and one PE takes {duration(alone)}: the speedup is "
            f"{number(alone / run)}. One PE computes {duration(work * pes)} of its time. Extra work is what PEs "
            "compute beyond their share of this; it is negative where smaller parts fit into caches."
        ),
        Table(["part", "mean of a PE", "of the run time", "speedup without it"], rows),
    ]
    phases = _phases(one, counts)
    if phases:
        headers = ["phase", "one PE", f"{pes} PEs, slowest", "speedup"]
        blocks.append(Table(headers, phases, caption="Phases"))
    return blocks


def _times_of_phases(counts: Counts, pe: int) -> dict[tuple[str, ...], float]:
    """Of one PE, by the names of the phase and of those it lies in."""
    keys: list[tuple[str, ...]] = []
    times: dict[tuple[str, ...], float] = {}
    for phase in counts.phases[pe] if counts.phases else []:
        inside = phase.parent is not None and 0 <= phase.parent < len(keys)
        keys.append((*(keys[phase.parent] if inside else ()), phase.name))
        times[keys[-1]] = sum(phase.ns.values())
    return times


def _phases(one: Counts, counts: Counts) -> list[list[str]]:
    """Those of both runs."""
    every = [_times_of_phases(counts, pe) for pe in range(counts.pes)]
    rows = []
    for key, alone in _times_of_phases(one, 0).items():
        most = max(times.get(key, 0.0) for times in every)
        if most > 0:
            name = ("\u00a0\u00a0" * (len(key) - 1)) + key[-1]
            rows.append([name, duration(alone), duration(most), number(alone / most)])
    return rows
