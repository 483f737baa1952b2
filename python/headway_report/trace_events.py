# SPDX-License-Identifier: BSD-3-Clause
"""What one PE did, from its records: parts of its time, waits, and frames."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from .trace_file import Header, Kind, Records

PROGRAM, HANDLERS, COMMUNICATION, WAITING = range(4)
REASONS = ("full", "timeout", "idle", "requested")
WAITS = ("working", "handling", "waiting", "collective", "epoch", "quiescing")
HOP_CLASSES = 8


@dataclass(slots=True)
class Frames:
    """Frames of one sender to one receiver with so many hops left, in their order."""

    first: int  # the sequence of the first one
    times: list[int] = field(default_factory=list)
    ages: list[int] = field(default_factory=list)  # posted: age of the first message, -1 if unknown
    messages: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Flushes:
    """Frames of one aggregator at one PE."""

    by_reason: list[int] = field(default_factory=lambda: [0] * len(REASONS))
    messages: int = 0
    bytes: int = 0
    bytes_max: int = 0
    bytes_of_full: int = 0
    ages: list[int] = field(default_factory=list)
    early_by_peer: Counter = field(default_factory=Counter)  # those that left by timeout or idle


@dataclass(slots=True)
class Wait:
    """A time without anything to do. A frame of `peer` ended it; -1: none did."""

    begin: int
    end: int
    peer: int
    hops: int
    sequence: int
    reason: int  # index of WAITS


@dataclass
class PeEvents:
    pe: int
    host: int
    begin: int = 0
    end: int = 0
    has_end: bool = False
    starts: list[int] = field(default_factory=list)  # of segments; each lasts until the next one
    states: list[int] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    posted: dict[tuple[int, int], Frames] = field(default_factory=dict)  # by receiver and class of hops
    taken: dict[tuple[int, int], Frames] = field(default_factory=dict)  # by sender and class of hops
    frames_to: Counter = field(default_factory=Counter)
    messages_to: Counter = field(default_factory=Counter)
    bytes_to: Counter = field(default_factory=Counter)
    control_frames: int = 0
    flushes: dict[int, Flushes] = field(default_factory=lambda: defaultdict(Flushes))
    handlers: Counter = field(default_factory=Counter)  # frames taken, by handler


def events_of(header: Header, records: Records) -> PeEvents:
    """One pass over the records. It decides for each time between two records what the PE did."""
    pe = PeEvents(header.pe, header.host)
    if not records.time:
        return pe
    pe.begin, pe.end = records.time[0], records.time[-1]
    state, in_wait, reason = PROGRAM, False, 0
    starts, states = pe.starts, pe.states
    starts.append(pe.begin)
    states.append(state)
    idle_since = 0
    flushed = None
    begin, posted, taken_, found_none, wait_begins, wait_ends, end = (
        Kind.BEGIN,
        Kind.POSTED,
        Kind.TAKEN,
        Kind.FOUND_NONE,
        Kind.WAIT_BEGINS,
        Kind.WAIT_ENDS,
        Kind.END,
    )
    columns = zip(records.kind, records.time, records.phase, records.control)
    for i, (kind, time, phase, control) in enumerate(columns):
        before = state
        if kind == posted:
            _post(pe, header, records, i, flushed)
            flushed = None
            if phase == 0 and not in_wait:
                state = PROGRAM
            elif state == WAITING:
                state = COMMUNICATION  # an idle PE posts an open buffer
        elif kind == taken_:
            _take(pe, records, i)
            state = COMMUNICATION if control else HANDLERS
        elif kind == found_none:
            state = WAITING if in_wait else PROGRAM
        elif kind == wait_begins:
            state, in_wait, reason = COMMUNICATION, True, phase
        elif kind == wait_ends:
            state, in_wait = PROGRAM, False
        elif kind == Kind.POLLED:
            if not in_wait:
                state = PROGRAM
        elif kind == Kind.FLUSHED:
            flushed = i
        elif kind == end:
            pe.has_end = True
            pe.end = time
        elif kind == begin:
            state = PROGRAM
        if state != before:
            if before == WAITING:
                # A post of an idle PE, after a timeout, has no cause elsewhere.
                _add_wait(pe, idle_since, time, records, i if kind == taken_ else -1, reason)
            elif state == WAITING:
                idle_since = time
            starts.append(time)
            states.append(state)
    if state == WAITING:
        _add_wait(pe, idle_since, pe.end, records, -1, reason)
    return pe


def _add_wait(pe: PeEvents, begin: int, end: int, records: Records, frame: int, reason: int) -> None:
    if end <= begin:
        return
    if frame < 0:
        pe.waits.append(Wait(begin, end, -1, -1, -1, reason))
        return
    hops = min(records.hops[frame], HOP_CLASSES - 1)
    pe.waits.append(Wait(begin, end, records.peer[frame], hops, records.sequence[frame], reason))


def _post(pe: PeEvents, header: Header, records: Records, i: int, flushed: int | None) -> None:
    peer, messages, size = records.peer[i], records.messages[i], records.bytes[i]
    age = -1
    if records.control[i]:
        pe.control_frames += 1
    else:
        pe.frames_to[peer] += 1
        pe.messages_to[peer] += messages
        pe.bytes_to[peer] += size
        if flushed is not None and records.peer[flushed] == peer:
            age = records.bytes[flushed]
            _flush(pe.flushes[records.handler[flushed]], records, flushed, size)
    if records.foreign[i]:
        return  # its receiver numbers it as a frame of another PE
    key = (peer, min(records.hops[i], HOP_CLASSES - 1))
    frames = pe.posted.get(key)
    if frames is None:
        frames = pe.posted[key] = Frames(records.sequence[i])
    frames.times.append(records.time[i])
    frames.ages.append(age)
    frames.messages.append(0 if records.control[i] else messages)
    frames.bytes.append(size)


def _flush(flushes: Flushes, records: Records, i: int, size: int) -> None:
    reason = records.detail[i] - 1
    if not 0 <= reason < len(REASONS):
        return  # of a later version
    flushes.by_reason[reason] += 1
    flushes.messages += records.messages[i]
    flushes.bytes += size
    flushes.bytes_max = max(flushes.bytes_max, size)
    flushes.ages.append(records.bytes[i])
    if REASONS[reason] == "full":
        flushes.bytes_of_full += size
    elif REASONS[reason] in ("timeout", "idle"):
        flushes.early_by_peer[records.peer[i]] += 1


def _take(pe: PeEvents, records: Records, i: int) -> None:
    if not records.control[i]:
        pe.handlers[records.handler[i]] += 1
    key = (records.peer[i], min(records.hops[i], HOP_CLASSES - 1))
    frames = pe.taken.get(key)
    if frames is None:
        frames = pe.taken[key] = Frames(records.sequence[i])
    frames.times.append(records.time[i])
