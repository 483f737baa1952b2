# SPDX-License-Identifier: BSD-3-Clause
"""Reads the files of a traced run: pe-N.trace and trace.json. src/headway/model/trace/record.hpp has the layout."""

from __future__ import annotations

import json
import mmap
import re
import struct
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from .errors import InputError


class Kind(IntEnum):
    BEGIN = 1
    POSTED = 2
    TAKEN = 3
    FOUND_NONE = 4
    WAIT_BEGINS = 5
    WAIT_ENDS = 6
    END = 7
    PHASE_BEGINS = 8
    PHASE_ENDS = 9
    FLUSHED = 10
    MARK = 11
    POLLED = 12


NAME_OF_PHASE, NAME_OF_HANDLER, NAME_OF_MARK = 1, 2, 3
MAGIC = b"HWTRACE\0"
RECORD_BYTES = 32
NAME_BYTES = 64
PES_MAX = 65536
HEADER_BYTES_MAX = 1 << 20

# magic, version, pe, pes, header_bytes, record_bytes, clock, written, records_max, o, L, G, began_ns, began_at_ns,
# host, process, dials, transport, names_begin, names
_HEADER = struct.Struct("<8s6IQQ3dQqII64s16sII")
VERSION = 2
_NAME = struct.Struct("<HH60s")
# offset and type of each field of a record
_FIELDS = {
    "time": (0, "q"),
    "sequence": (8, "I"),
    "bytes": (12, "I"),
    "messages": (16, "I"),
    "handler": (20, "I"),
    "peer": (24, "H"),
    "kind": (26, "B"),
    "phase": (27, "B"),
    "hops": (28, "B"),
    "control": (29, "B"),
    "foreign": (30, "B"),
    "detail": (31, "B"),
}


@dataclass
class Header:
    pe: int
    pes: int
    simulated: bool
    overhead_ns: float
    latency_ns: float
    gap_per_byte_ns: float
    dials: str
    transport: str
    records: int  # in the file
    lost: int  # the oldest of the ring
    host: int
    names: dict[tuple[int, int], str] = field(default_factory=dict)


@dataclass
class Records:
    """The records of one PE, a list for each field."""

    time: list[int]
    sequence: list[int]
    bytes: list[int]
    messages: list[int]
    handler: list[int]
    peer: list[int]
    kind: list[int]
    phase: list[int]
    hops: list[int]
    control: list[int]
    foreign: list[int]
    detail: list[int]


@dataclass
class TraceFolder:
    """A folder with the files of all PEs. The records are read later, one PE after the other."""

    path: Path
    headers: list[Header]
    about: dict[str, Any]

    @property
    def pes(self) -> int:
        return len(self.headers)

    def file(self, pe: int) -> Path:
        return self.path / f"pe-{pe}.trace"


def open_folder(path: Path) -> TraceFolder:
    numbers = sorted(
        int(match[1]) for entry in path.iterdir() if (match := re.fullmatch(r"pe-(\d+)\.trace", entry.name))
    )
    if not numbers:
        raise InputError(path, "the folder has no file pe-N.trace of a traced run")
    if numbers[-1] != len(numbers) - 1:
        missing = min(set(range(numbers[-1])) - set(numbers))
        raise InputError(path, f"pe-{missing}.trace is missing: the trace has {numbers[-1]} as its last PE")
    headers = [read_header(path / f"pe-{pe}.trace", pe) for pe in numbers]
    if headers[0].pes != len(headers):
        raise InputError(path, f"it has the traces of {len(headers)} PEs, and the run had {headers[0].pes}")
    about: dict[str, Any] = {}
    if (described := path / "trace.json").exists():
        try:
            about = json.loads(described.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(described, f"it is no JSON: {error}") from error
        if not isinstance(about, dict):
            raise InputError(described, "its JSON is no object")
    return TraceFolder(path, headers, about)


@dataclass
class _Layout:
    """Places in the file, in bytes, and records of the ring."""

    header_bytes: int
    record_bytes: int
    names_begin: int
    names: int
    first: int  # place of the oldest record


def read_header(path: Path, pe: int) -> Header:
    try:
        with path.open("rb") as file:
            header, layout = _parsed(path, file.read(_HEADER.size))
            if header.pe != pe:
                raise InputError(path, f"its header names PE {header.pe}")
            length = file.seek(0, 2)
            if length < layout.header_bytes + header.records * layout.record_bytes:
                raise InputError(path, f"it is cut off: its header names {header.records} records")
            file.seek(layout.names_begin)
            header.names = _names(path, file.read(layout.names * NAME_BYTES), layout.names)
    except OSError as error:
        raise InputError(path, f"it cannot be read: {error.strerror}") from error
    return header


def _parsed(path: Path, data: bytes) -> tuple[Header, _Layout]:
    if data[: len(MAGIC)] != MAGIC:
        raise InputError(path, "it does not begin as a trace")
    if len(data) < _HEADER.size:
        raise InputError(path, "it is cut off in its header")
    (
        _,
        version,
        pe,
        pes,
        header_bytes,
        record_bytes,
        clock,
        written,
        records_max,
        overhead,
        latency,
        gap,
        _,
        _,
        host,
        _,
        dials,
        transport,
        names_begin,
        names,
    ) = _HEADER.unpack_from(data)
    if version != VERSION:
        raise InputError(path, f"its version is {version}: this command reads {VERSION}")
    if not 1 <= pes <= PES_MAX or pe >= pes:
        raise InputError(path, f"its header names PE {pe} of {pes}: allowed are 1 to {PES_MAX} PEs")
    if not RECORD_BYTES <= record_bytes <= 4096 or record_bytes % 8 != 0:
        raise InputError(path, f"its records have {record_bytes} bytes: allowed are multiples of 8 from {RECORD_BYTES}")
    if not 0 < header_bytes <= HEADER_BYTES_MAX or header_bytes % 8 != 0:
        raise InputError(path, f"its header has {header_bytes} bytes: allowed are multiples of 8 to {HEADER_BYTES_MAX}")
    if not all(0 <= cost <= 1e12 for cost in (overhead, latency, gap)):
        raise InputError(path, "a cost of the transport is out of range: allowed are 0 to 1000 s")
    if clock > 1:
        raise InputError(path, f"its clock is {clock}: allowed are 0 and 1")
    if names_begin + names * NAME_BYTES > header_bytes:
        raise InputError(path, f"its {names} names do not fit into its header of {header_bytes} bytes")
    if records_max == 0 and written > 0:
        raise InputError(path, f"it has {written} records, and room for none")
    lost = max(written - records_max, 0)
    header = Header(
        pe, pes, clock == 1, overhead, latency, gap, _text(dials), _text(transport), written - lost, lost, host
    )
    layout = _Layout(header_bytes, record_bytes, names_begin, names, written % records_max if lost else 0)
    return header, layout


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "replace")


def _names(path: Path, data: bytes, names: int) -> dict[tuple[int, int], str]:
    if len(data) < names * NAME_BYTES:
        raise InputError(path, "it is cut off in its names")
    return {(kind, number): _text(text) for kind, number, text in _NAME.iter_unpack(data)}


def read_records(folder: TraceFolder, pe: int) -> Records:
    """Oldest first. Each list is cut out of the mapped file, which is as fast as numpy would be."""
    path = folder.file(pe)
    with path.open("rb") as file:
        header, layout = _parsed(path, file.read(_HEADER.size))
        count, width = header.records, layout.record_bytes
        if count == 0:
            return Records(*([] for _ in _FIELDS))
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            with memoryview(mapped) as whole, whole[layout.header_bytes : layout.header_bytes + count * width] as ring:
                columns = [_column(ring, offset, code, width) for offset, code in _FIELDS.values()]
    if header.lost:
        # A PE that was killed may have been about to replace the oldest one.
        columns = [(column[layout.first :] + column[: layout.first])[1:] for column in columns]
    records = Records(*columns)
    _check(path, records, folder.pes)
    return records


def _column(ring: memoryview, offset: int, code: str, record_bytes: int) -> list[int]:
    width = struct.calcsize(code)
    with ring.cast(code) as cells, cells[offset // width :: record_bytes // width] as cut:
        return cut.tolist()


def _check(path: Path, records: Records, pes: int) -> None:
    last = None
    for number, time in enumerate(records.time):
        if last is not None and time < last:
            raise InputError(path, f"record {number}: its time of {time} ns precedes that of the record before")
        last = time
    if records.peer and max(records.peer) >= pes:
        for number, (kind, peer) in enumerate(zip(records.kind, records.peer)):
            if kind in (Kind.POSTED, Kind.TAKEN, Kind.FLUSHED, Kind.MARK) and peer >= pes:
                raise InputError(path, f"record {number}: its peer is PE {peer} of {pes}")
