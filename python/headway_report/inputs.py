# SPDX-License-Identifier: BSD-3-Clause
"""Files of a run, told apart by their content."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .counts import Counts, read_counts
from .errors import InputError
from .records import check_record, check_slopes
from .trace_file import TraceFolder, open_folder

KINDS = {
    "counts": "counts of a run",
    "result": "results",
    "probe": "costs of the network",
    "sensitivity": "sensitivity",
    "slopes": "slopes",
    "predict": "predictions",
    "trace": "a trace",
}


@dataclass
class Input:
    """One file. `value` is of the type that belongs to `kind`."""

    path: Path
    kind: str
    value: Any


@dataclass
class Run:
    """All that is known of one run, from one or several files."""

    sources: list[Input] = field(default_factory=list)
    counts: Counts | None = None
    trace: TraceFolder | None = None
    results: list[dict] = field(default_factory=list)
    machine: dict = field(default_factory=dict)
    version: str = ""
    command: list[str] = field(default_factory=list)
    probe: list[dict] = field(default_factory=list)
    sensitivity: list[dict] = field(default_factory=list)
    predictions: list[dict] = field(default_factory=list)
    slopes: dict | None = None
    one_pe: Counts | None = None  # of the same program with one PE


def read_input(path: Path) -> Input:
    if path.is_dir():
        return Input(path, "trace", open_folder(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(path, f"it cannot be read: {error.strerror}") from error
    if data[:7] == b"HWTRACE":
        raise InputError(path, "it is the trace of one PE: name its folder instead")
    if not data.strip():
        raise InputError(path, "it is empty: the run did not come to its end")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"it is no JSON: {error}") from error
    return _told_apart(path, value)


def _told_apart(path: Path, value: Any) -> Input:
    if not isinstance(value, dict):
        raise InputError(path, "it is no file of a run: its JSON is no object")
    if "per_pe" in value:
        return Input(path, "counts", read_counts(path, value))
    if "slopes" in value and "path" in value:
        check_slopes(path, value)
        return Input(path, "slopes", value)
    if "records" not in value and isinstance(value.get("bench"), str):
        value = {"records": [value]}  # as one program writes its own
    records = value.get("records")
    if not isinstance(records, list):
        raise InputError(path, "it has neither 'per_pe' (counts), 'records' (results) nor 'slopes'")
    if not records:
        raise InputError(path, "its 'records' are empty")
    if any(not isinstance(record, dict) for record in records):
        raise InputError(path, "its 'records' are no objects")
    for number, record in enumerate(records):
        check_record(path, number, record)
    bench = {str(record.get("bench")) for record in records}
    for kind in ("probe", "sensitivity", "predict"):
        if kind in bench:
            return Input(path, kind, value)
    if any("slowdown" in record and "dial" in record for record in records):
        return Input(path, "sensitivity", value)
    if any("o_send_ns" in record for record in records):
        return Input(path, "probe", value)
    if not any("seconds" in record or "one_way_us" in record or "latency_us" in record for record in records):
        raise InputError(path, "its 'records' have no times: they are no results")
    return Input(path, "result", value)


def read_one_pe(path: Path) -> Counts:
    one = read_input(path)
    if one.kind != "counts":
        raise InputError(path, f"--one-pe: it is a file of {KINDS[one.kind]}; allowed are counts of a run with 1 PE")
    if one.value.pes != 1:
        raise InputError(path, f"--one-pe: it has counts of {one.value.pes} PEs; allowed is 1")
    if one.value.times_ns is None:
        raise InputError(path, "--one-pe: it has no 'times_ns': an older version wrote it")
    return one.value


def join(inputs: list[Input]) -> Run:
    """One run from files of different kinds; results may come from several files."""
    run = Run(sources=list(inputs))
    for one in inputs:
        if one.kind == "counts":
            run.counts = one.value
        elif one.kind == "trace":
            run.trace = one.value
        elif one.kind == "slopes":
            run.slopes = one.value
        else:
            records = one.value["records"]
            if one.kind == "result":
                run.results += records
            elif one.kind == "probe":
                run.probe += records
            elif one.kind == "sensitivity":
                run.sensitivity += records
            else:
                run.predictions += records
            run.machine = run.machine or _object(one.value.get("machine"))
            run.version = run.version or str(one.value.get("headway", ""))
            if one.kind == "result" and isinstance(one.value.get("command"), list):
                run.command = run.command or [str(word) for word in one.value["command"]]
    return run


def _object(value: Any) -> dict:
    return value if isinstance(value, dict) else {}
