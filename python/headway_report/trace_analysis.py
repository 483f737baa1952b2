# SPDX-License-Identifier: BSD-3-Clause
"""A traced run as a whole: parts of time, latencies, waits charged to their causes, and the critical path."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from .trace_events import WAITING, Flushes, Frames, PeEvents, Wait, events_of
from .trace_file import NAME_OF_HANDLER, TraceFolder, read_records

STATES = ("program", "handlers", "communication", "waiting")
_UNITS_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass
class Costs:
    """Of a frame, in ns: those of the transport and the dials together."""

    overhead_ns: float
    latency_ns: float
    gap_per_byte_ns: float
    gap_ns: float = 0  # of the dials alone


@dataclass
class Charges:
    """Waiting time in ns by cause. `direct` is by the PE whose frame ended the wait."""

    computed: Counter = field(default_factory=Counter)  # by PE: others waited while it computed, all causes followed
    network: Counter = field(default_factory=Counter)  # by (sender, receiver): while a frame was under way
    not_followed: float = 0  # no frame ended the wait, or the chain of causes was too long
    direct: dict[tuple[int, int], list[float]] = field(
        default_factory=lambda: defaultdict(lambda: [0.0, 0.0, 0.0])
    )  # (waiting PE, cause): while the cause computed, waited itself, and network

    @property
    def total(self) -> float:
        return sum(self.computed.values()) + sum(self.network.values()) + self.not_followed


@dataclass
class Step:
    """A part of the critical path: work on `pe` (then `sender` is -1), or a frame from `sender` to `pe`."""

    begin: int
    end: int
    pe: int
    sender: int = -1
    bytes: int = 0


@dataclass
class Path:
    steps: list[Step]  # ascending in time
    work: Counter  # ns by PE
    parts: dict[str, float]  # ns by part: program, handlers, communication, waiting (unexplained), network
    frames: int
    bytes: int
    link: Counter  # ns of the network by (sender, receiver)

    @property
    def total(self) -> float:
        return sum(self.parts.values())


@dataclass(slots=True)
class Undelivered:
    """Frames of one PE that another one had not taken at the end of its trace."""

    sender: int
    receiver: int
    frames: int = 0
    messages: int = 0
    bytes: int = 0
    oldest_ns: int = 0  # when the first of them was posted


@dataclass
class TraceAnalysis:
    pes: list[PeEvents]
    begin: int
    end: int
    times: list[dict[str, float]]  # by PE
    flushes: dict[int, Flushes]  # by handler, of all PEs
    handler_names: dict[int, str]
    network_ns: list[int]  # of each frame that is not control, sorted
    first_message_ns: list[int]  # of the first message of each frame with a known age, sorted
    charges: Charges
    path: Path
    costs: Costs
    simulated: bool
    lost: int
    undelivered: list[Undelivered]  # the most messages first
    unmatched: bool  # PEs of a process share buffers: frames have no numbers that both sides know
    residual_ns: float  # of the alignment of the clocks of hosts
    ended: bool

    @property
    def run_ns(self) -> int:
        return self.end - self.begin


def analyse(folder: TraceFolder) -> TraceAnalysis:
    pes, foreign = [], False
    for pe in range(folder.pes):
        records = read_records(folder, pe)
        foreign = foreign or any(records.foreign)
        pes.append(events_of(folder.headers[pe], records))
    residual = _align_hosts(pes)
    seen = [pe for pe in pes if pe.starts]
    begin = min((pe.begin for pe in seen), default=0)
    end = max((pe.end for pe in seen), default=0)
    network, first, undelivered = _latencies(pes) if not foreign else ([], [], [])
    flushes: dict[int, Flushes] = {}
    for pe in pes:
        for handler, one in pe.flushes.items():
            _add(flushes.setdefault(handler, Flushes()), one)
    match = Matcher(pes, not foreign)
    head = folder.headers[0]
    names = {
        number: text for h in folder.headers for (kind, number), text in h.names.items() if kind == NAME_OF_HANDLER
    }
    lost = sum(h.lost for h in folder.headers)
    return TraceAnalysis(
        pes,
        begin,
        end,
        [times_of(pe) for pe in pes],
        flushes,
        names,
        network,
        first,
        charge(pes, match),
        critical_path(pes, match),
        _costs(head.overhead_ns, head.latency_ns, head.gap_per_byte_ns, head.dials),
        head.simulated,
        lost,
        undelivered if lost == 0 else [],
        foreign,
        residual,
        all(pe.has_end for pe in pes),
    )


def _add(to: Flushes, one: Flushes) -> None:
    to.by_reason = [a + b for a, b in zip(to.by_reason, one.by_reason)]
    to.messages += one.messages
    to.bytes += one.bytes
    to.bytes_max = max(to.bytes_max, one.bytes_max)
    to.bytes_of_full += one.bytes_of_full
    to.ages += one.ages
    to.early_by_peer.update(one.early_by_peer)


def _costs(overhead: float, latency: float, gap: float, dials: str) -> Costs:
    costs = Costs(overhead, latency, gap)
    for name, value, unit in re.findall(r"(?:^|,)(o|L|G|g)=([\d.]+)(ns|us|ms|s)?", dials):
        ns = float(value) * _UNITS_NS.get(unit, 1.0)
        if name == "o":
            costs.overhead_ns += 2 * ns  # of the sender and of the receiver, as the transport's own
        elif name == "L":
            costs.latency_ns += ns
        elif name == "G":
            costs.gap_per_byte_ns += ns
        else:
            costs.gap_ns += ns
    return costs


def times_of(pe: PeEvents) -> dict[str, float]:
    """The parts of the PE's time; their sum is its time."""
    sums = [0] * len(STATES)
    for start, end, state in zip(pe.starts, pe.starts[1:] + [pe.end], pe.states):
        sums[state] += end - start
    return dict(zip(STATES, map(float, sums)))


def _pairs(pes: list[PeEvents]):
    """Frames as their sender and their receiver saw them, from the first that both have."""
    for sender in pes:
        for (receiver, hops), posted in sender.posted.items():
            taken = pes[receiver].taken.get((sender.pe, hops))
            skip = taken.first - posted.first if taken is not None else 0
            yield sender, pes[receiver], posted, taken, max(skip, 0), max(-skip, 0)


def _latencies(pes: list[PeEvents]) -> tuple[list[int], list[int], list[Undelivered]]:
    network: list[int] = []
    first: list[int] = []
    undelivered: dict[tuple[int, int], Undelivered] = {}
    for sender, receiver, posted, taken, skip, skip_taken in _pairs(pes):
        arrived = 0 if taken is None else max(skip + len(taken.times) - skip_taken, 0)
        if arrived < len(posted.times):
            key = sender.pe, receiver.pe
            one = undelivered.setdefault(key, Undelivered(*key, oldest_ns=posted.times[arrived]))
            one.frames += len(posted.times) - arrived
            one.messages += sum(posted.messages[arrived:])
            one.bytes += sum(posted.bytes[arrived:])
            one.oldest_ns = min(one.oldest_ns, posted.times[arrived])
        if taken is None:
            continue
        for at, age, messages, then in zip(
            posted.times[skip:], posted.ages[skip:], posted.messages[skip:], taken.times[skip_taken:]
        ):
            if messages == 0:
                continue
            under_way = max(then - at, 0)
            network.append(under_way)
            if age >= 0:
                first.append(age + under_way)
    network.sort()
    first.sort()
    return network, first, sorted(undelivered.values(), key=lambda one: (-one.messages, -one.frames))


def _align_hosts(pes: list[PeEvents]) -> float:
    """Shifts the times of all hosts to the clock of host 0, by the fastest frames each way. Returns the residual."""
    hosts = sorted({pe.host for pe in pes})
    if len(hosts) < 2:
        return 0.0
    fastest: dict[tuple[int, int], int] = {}
    for sender, receiver, posted, taken, skip, skip_taken in _pairs(pes):
        if taken is None or sender.host == receiver.host:
            continue
        least = min((then - at for at, then in zip(posted.times[skip:], taken.times[skip_taken:])), default=None)
        if least is not None:
            key = (sender.host, receiver.host)
            fastest[key] = min(fastest.get(key, least), least)
    offsets, residual, waiting = {hosts[0]: 0}, 0.0, [hosts[0]]
    while waiting:
        known = waiting.pop()
        for host in hosts:
            there, back = fastest.get((known, host)), fastest.get((host, known))
            if host in offsets or there is None or back is None:
                continue
            offsets[host] = offsets[known] + (there - back) // 2
            residual = max(residual, (there + back) / 2)
            waiting.append(host)
    for pe in pes:
        offset = offsets.get(pe.host, 0)
        if offset:
            _shift(pe, offset)
    return residual


def _shift(pe: PeEvents, offset: int) -> None:
    pe.begin -= offset
    pe.end -= offset
    pe.starts = [time - offset for time in pe.starts]
    for wait in pe.waits:
        wait.begin -= offset
        wait.end -= offset
    for frames in [*pe.posted.values(), *pe.taken.values()]:
        frames.times = [time - offset for time in frames.times]


class Matcher:
    """The post of the frame that ended a wait."""

    def __init__(self, pes: list[PeEvents], usable: bool) -> None:
        self._pes = pes
        self._usable = usable

    def post_of(self, pe: int, wait: Wait) -> tuple[int, int] | None:
        """Time and bytes, or None."""
        if wait.peer < 0 or not self._usable:
            return None
        frames: Frames | None = self._pes[wait.peer].posted.get((pe, wait.hops))
        if frames is None:
            return None
        place = wait.sequence - frames.first
        if not 0 <= place < len(frames.times):
            return None
        return frames.times[place], frames.bytes[place]


def charge(pes: list[PeEvents], match: Matcher) -> Charges:
    """Charges each wait to the PE whose frame ended it. Where that PE waited itself, the cause of its wait is charged,
    and so on."""
    result = Charges()
    ends = [[wait.end for wait in pe.waits] for pe in pes]
    visits_left = 200_000 + 4 * sum(len(pe.waits) for pe in pes)
    for pe in pes:
        for first in pe.waits:
            open_parts = [(pe.pe, first, first.begin, first.end, True)]
            while open_parts:
                waiter, wait, begin, end, is_first = open_parts.pop()
                post = match.post_of(waiter, wait)
                visits_left -= 1
                if post is None or visits_left < 0:
                    result.not_followed += end - begin
                    continue
                cause, posted = wait.peer, min(max(post[0], begin), end)
                result.network[cause, waiter] += end - posted
                waited = 0
                others = pes[cause].waits
                for place in range(bisect_right(ends[cause], begin), len(others)):
                    other = others[place]
                    if other.begin >= posted:
                        break
                    low, high = max(other.begin, begin), min(other.end, posted)
                    if high > low:
                        waited += high - low
                        open_parts.append((cause, other, low, high, False))
                computed = posted - begin - waited
                result.computed[cause] += computed
                if is_first:
                    direct = result.direct[waiter, cause]
                    direct[0] += computed
                    direct[1] += waited
                    direct[2] += end - posted
    return result


def critical_path(pes: list[PeEvents], match: Matcher) -> Path:
    """Walks back from the last event: through the work of a PE to its last wait, then through the frame that ended the
    wait to its sender."""
    steps: list[Step] = []
    work: Counter = Counter()
    link: Counter = Counter()
    parts = dict.fromkeys((*STATES, "network"), 0.0)
    frames = total_bytes = 0
    seen = [pe for pe in pes if pe.starts]
    if not seen:
        return Path(steps, work, parts, 0, 0, link)
    now = max(seen, key=lambda pe: pe.end)
    at = now.end
    ends = [[wait.end for wait in pe.waits] for pe in pes]
    for _ in range(1 + 2 * sum(len(pe.waits) for pe in pes)):
        place = bisect_right(ends[now.pe], at) - 1
        # a wait without a known cause belongs to the path as such
        cause = None
        while place >= 0 and (cause := match.post_of(now.pe, now.waits[place])) is None:
            place -= 1
        start = now.waits[place].end if place >= 0 else now.begin
        if at > start:
            steps.append(Step(start, at, now.pe))
            work[now.pe] += at - start
            _add_parts(parts, now, start, at)
        if place < 0 or cause is None:
            break
        wait = now.waits[place]
        posted = min(cause[0], start)
        steps.append(Step(posted, start, now.pe, wait.peer, cause[1]))
        parts["network"] += start - posted
        link[wait.peer, now.pe] += start - posted
        frames += 1
        total_bytes += cause[1]
        now, at = pes[wait.peer], posted
    steps.reverse()
    return Path(steps, work, parts, frames, total_bytes, link)


def _add_parts(parts: dict[str, float], pe: PeEvents, begin: int, end: int) -> None:
    for i in range(max(bisect_right(pe.starts, begin) - 1, 0), len(pe.starts)):
        low = max(pe.starts[i], begin)
        if low >= end:
            break
        high = min(pe.starts[i + 1] if i + 1 < len(pe.starts) else pe.end, end)
        if high > low:
            parts[STATES[pe.states[i]]] += high - low


def shares(pe: PeEvents, begin: int, end: int, bins: int) -> list[list[float]]:
    """For each of `bins` equal times between begin and end: the share of each state."""
    width = max(end - begin, 1) / bins
    result = [[0.0] * len(STATES) for _ in range(bins)]
    for start, stop, state in zip(pe.starts, pe.starts[1:] + [pe.end], pe.states):
        low, high = (start - begin) / width, (stop - begin) / width
        first, last = int(low), min(int(high), bins - 1)
        if first == last:
            result[first][state] += high - low
            continue
        for place in range(first, last + 1):
            result[place][state] += min(high, place + 1) - max(low, place)
    return result


def longest_silence(pe: PeEvents) -> tuple[int, int]:
    """Begin and length of the longest work of the PE without a post."""
    posts = sorted(time for frames in pe.posted.values() for time in frames.times)
    best = (pe.begin, 0)
    for start, stop, state in zip(pe.starts, pe.starts[1:] + [pe.end], pe.states):
        if state == WAITING or stop - start <= best[1]:
            continue
        inside = [start, *posts[bisect_left(posts, start) : bisect_right(posts, stop)], stop]
        for low, high in zip(inside, inside[1:]):
            if high - low > best[1]:
                best = (low, high - low)
    return best
