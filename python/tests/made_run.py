# SPDX-License-Identifier: BSD-3-Clause
"""Runs made by hand: traces as the library writes them, and counts."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from headway_report.facts import Facts, facts_of  # noqa: E402
from headway_report.inputs import join, read_input  # noqa: E402
from headway_report.trace_file import Kind  # noqa: E402

HEADER_BYTES = 256 + 512 * 64


class MadePe:
    """The records of one PE. Times are those that the test names."""

    def __init__(self, pe: int, begin: int = 0, host: int = 0) -> None:
        self.pe, self.host = pe, host
        self.records: list[bytes] = []
        self.names: list[tuple[int, int, str]] = []
        self._sent: dict[int, int] = {}
        self._received: dict[int, int] = {}
        self.add(begin, Kind.BEGIN)

    def add(
        self,
        at: int,
        kind: int,
        peer: int = 0,
        phase: int = 0,
        sequence: int = 0,
        size: int = 0,
        messages: int = 0,
        handler: int = 0,
        control: int = 0,
        foreign: int = 0,
        detail: int = 0,
    ) -> None:
        self.records.append(
            struct.pack(
                "<qIIIIHBBBBBB", at, sequence, size, messages, handler, peer, kind, phase, 0, control, foreign, detail
            )
        )

    def post(
        self,
        at: int,
        to: int,
        size: int = 100,
        messages: int = 3,
        phase: int = 0,
        reason: int | None = None,
        age: int = 0,
        handler: int = 1,
        foreign: int = 0,
    ) -> None:
        if reason is not None:
            self.add(at, Kind.FLUSHED, to, phase, 0, age, messages, handler, detail=1 + reason)
        self.add(at, Kind.POSTED, to, phase, self._sent.get(to, 0), size, messages, handler, foreign=foreign)
        self._sent[to] = self._sent.get(to, 0) + 1

    def take(self, at: int, sender: int, phase: int = 2, size: int = 100) -> None:
        self.add(at, Kind.TAKEN, sender, phase, self._received.get(sender, 0), size, 3, 1)
        self._received[sender] = self._received.get(sender, 0) + 1

    def wait(self, begin: int, end: int, sender: int, handles: int = 0) -> None:
        """Idle from begin to end, when a frame of `sender` arrives, whose handler takes `handles`."""
        self.add(begin, Kind.WAIT_BEGINS, phase=2)
        self.add(begin, Kind.FOUND_NONE, phase=2)
        self.take(end, sender)
        self.add(end + handles, Kind.WAIT_ENDS)

    def end(self, at: int) -> None:
        self.add(at, Kind.END)


def header(
    pe: MadePe,
    pes: int,
    written: int,
    records_max: int,
    dials: str = "",
    version: int = 2,
    costs: tuple[float, float, float] = (400.0, 2000.0, 0.1),
) -> bytes:
    data = struct.pack(
        "<8s6IQQ3dQqII64s16sII",
        b"HWTRACE\0",
        version,
        pe.pe,
        pes,
        HEADER_BYTES,
        32,
        1,
        written,
        records_max,
        *costs,
        0,
        0,
        pe.host,
        1,
        dials.encode(),
        b"sim",
        256,
        len(pe.names),
    )
    data = data.ljust(256, b"\0")
    for kind, number, text in pe.names:
        data += struct.pack("<HH60s", kind, number, text.encode())
    return data.ljust(HEADER_BYTES, b"\0")


def write_trace(
    folder: Path,
    pes: list[MadePe],
    dials: str = "",
    room: int = 1 << 20,
    costs: tuple[float, float, float] = (400.0, 2000.0, 0.1),
) -> Path:
    """With less room than records the oldest ones are lost, as in the ring of the library."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("pe-*.trace"):
        old.unlink()
    for pe in pes:
        places: list[bytes] = []
        for number, record in enumerate(pe.records):
            if number < room:
                places.append(record)
            else:
                places[number % room] = record
        data = header(pe, len(pes), len(pe.records), room, dials, costs=costs) + b"".join(places)
        (folder / f"pe-{pe.pe}.trace").write_bytes(data)
    return folder


def rounds(
    work: list[int], steps: int = 20, latency: int = 2000, late: tuple[int, int, int] | None = None, size: int = 100
) -> list[MadePe]:
    """In each step every PE works, sends a frame to every other PE, and waits for theirs. `late`: a PE, a step, and the
    further time that it takes there."""
    pes = [MadePe(pe) for pe in range(len(work))]
    now = [0] * len(work)
    for step in range(steps):
        posted = []
        for pe, made in enumerate(pes):
            now[pe] += work[pe] + (late[2] if late is not None and late[:2] == (pe, step) else 0)
            posted.append(now[pe])
            for other in range(len(work)):
                if other != pe:
                    made.post(now[pe], other, size)
        for pe, made in enumerate(pes):
            made.add(now[pe], Kind.WAIT_BEGINS, phase=3)
            made.add(now[pe], Kind.FOUND_NONE, phase=3)
            for at, sender in sorted((posted[other] + latency, other) for other in range(len(work)) if other != pe):
                now[pe] = max(now[pe], at)
                made.take(now[pe], sender, 3, size)
                made.add(now[pe], Kind.FOUND_NONE, phase=3)
            made.add(now[pe], Kind.WAIT_ENDS)
    for pe, made in enumerate(pes):
        made.end(now[pe])
    return pes


COUNTS_OF_PE = {
    "frames_sent": 1000,
    "bytes_sent": 4_000_000,
    "frames_received": 1000,
    "bytes_received": 4_000_000,
    "control_frames": 50,
    "messages_in_frames": 100_000,
    "receivers": 3,
    "retries": 0,
    "bursts": 20,
    "burst_frames_max": 60,
    "burst_ns": 1_000_000,
    "turns": 20,
    "reads": 0,
    "turns_of_all": 10,
    "turns_of_handlers": 0,
    "waits": 20,
    "waits_of_all": 10,
    "waiting_ns": 5_000_000,
    "barriers": 10,
    "bulk": 0,
    "run_ns": 100_000_000,
    "cpu_ns": 90_000_000,
    "messages": 100_000,
    "payload_bytes": 800_000,
    "forwarded": 0,
    "alone": 0,
    "full": 950,
    "timeout": 0,
    "idle": 0,
    "requested": 30,
    "peak_buffer_bytes": 65536,
    "buffer_bytes": 4096,
    "spilled_frames": 0,
    "spilled_bytes_peak": 0,
    "gap_delay_ns": [0] * 14,
}


def counts(pes: int = 4, simulated: bool = False, **changes: float) -> dict:
    """Of a healthy run, with `changes` at every PE."""
    return {
        "program": "./made",
        "pes": pes,
        "pes_per_process": 1,
        "hosts": 1,
        "simulated": simulated,
        "budget_bytes": 16777216,
        "communication": {
            "us_per_message": 1.0,
            "ms_per_barrier": 10.0,
            "messages_mean": 1e5,
            "messages_max": 100000,
            "reads": 0,
            "bulk": 0,
            "retries": 0,
        },
        "per_pe": [{**COUNTS_OF_PE, **changes} for _ in range(pes)],
    }


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def facts(*paths: Path) -> Facts:
    return facts_of(join([read_input(path) for path in paths]))
