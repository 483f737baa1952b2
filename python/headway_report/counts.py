# SPDX-License-Identifier: BSD-3-Clause
"""The counts of a run, as HEADWAY_COUNTS writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import InputError

PARTS = ("program", "handlers", "communication", "waiting")
NEEDED = ("messages", "frames_sent", "run_ns", "waiting_ns")


@dataclass
class Phase:
    """A phase of the program at one PE. `ns` includes the phases in it."""

    name: str
    parent: int | None
    calls: int
    ns: dict[str, float]
    counters: dict[str, float | None]


@dataclass
class Counts:
    program: str
    pes: int
    pes_per_process: int
    hosts: int
    simulated: bool
    budget_bytes: float
    communication: dict[str, float | None]
    per_pe: list[dict[str, float]]
    times_ns: list[dict[str, float]] | None  # by PE; parts as PARTS
    phases: list[list[Phase]] = field(default_factory=list)  # by PE

    def sum(self, name: str) -> float:
        return sum(pe.get(name, 0) for pe in self.per_pe)

    def max(self, name: str) -> float:
        return max(pe.get(name, 0) for pe in self.per_pe)

    def mean(self, name: str) -> float:
        return self.sum(name) / self.pes


def read_counts(path: Path, value: dict[str, Any]) -> Counts:
    def whole(name: str, least: int, default: int | None = None) -> int:
        number = value.get(name, default)
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise InputError(path, f"'{name}' is {number!r}: allowed is a whole number from {least} on")
        return number

    pes = whole("pes", 1)
    rows = value["per_pe"]
    if not isinstance(rows, list) or len(rows) != pes:
        have = len(rows) if isinstance(rows, list) else "no list"
        raise InputError(path, f"counts of {have} PEs in a run of {pes}")
    times: list[dict[str, float]] = []
    phases: list[list[Phase]] = []
    for number, row in enumerate(rows):
        _check_row(path, number, row)
        if "times_ns" in row:
            times.append(_parts(path, f"times_ns of PE {number}", row["times_ns"]))
        phases.append([_phase(path, number, one) for one in row.get("phases") or []])
    communication = value.get("communication")
    return Counts(
        program=str(value.get("program", "")),
        pes=pes,
        pes_per_process=whole("pes_per_process", 1, 1),
        hosts=whole("hosts", 1, 1),
        simulated=value.get("simulated") is True,
        budget_bytes=float(whole("budget_bytes", 0, 0)),
        communication=communication if isinstance(communication, dict) else {},
        per_pe=rows,
        times_ns=times if len(times) == pes else None,
        phases=phases if any(phases) else [],
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0


def _check_row(path: Path, pe: int, row: Any) -> None:
    if not isinstance(row, dict):
        raise InputError(path, f"the counts of PE {pe} are no object")
    for name in NEEDED:
        if name not in row:
            raise InputError(path, f"the counts of PE {pe} have no '{name}'")
    for name, value in row.items():
        if name not in ("gap_delay_ns", "times_ns", "phases") and not _is_number(value):
            raise InputError(path, f"'{name}' of PE {pe} is {value!r}: allowed is a number from 0 on")


def _parts(path: Path, what: str, value: Any) -> dict[str, float]:
    if not isinstance(value, dict) or any(not _is_number(value.get(part)) for part in PARTS):
        raise InputError(path, f"{what} need the numbers {', '.join(PARTS)}")
    return {part: float(value[part]) for part in PARTS}


def _phase(path: Path, pe: int, value: Any) -> Phase:
    what = f"a phase of PE {pe}"
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise InputError(path, f"{what} has no name")
    parent = value.get("parent")
    if parent is not None and not isinstance(parent, int):
        raise InputError(path, f"{what} has the parent {parent!r}: allowed is a number of a phase, or null")
    counters = {name: value.get(name) for name in ("cycles", "instructions", "cache_misses")}
    calls = value.get("calls", 0)
    if not _is_number(calls):
        raise InputError(path, f"{what} has {calls!r} calls")
    return Phase(value["name"], parent, int(calls), _parts(path, f"ns of {what}", value.get("ns")), counters)
