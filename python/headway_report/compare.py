# SPDX-License-Identifier: BSD-3-Clause
"""Two runs side by side, with intervals."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from .blocks import Block, Paragraph, Section, Table
from .facts import Facts
from .trace_events import REASONS
from .units import duration, number, percent, size

RESAMPLES = 400
SEED = 1
LOW, HIGH = 0.025, 0.975


@dataclass
class Ratio:
    """Of the second run to the first. `low` to `high` holds 95 %; both are None where nothing was repeated."""

    value: float
    low: float | None = None
    high: float | None = None
    less: int = 0  # PEs with less, of `pes` that both runs have
    pes: int = 0

    @property
    def text(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.3g}"
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"

    @property
    def verdict(self) -> str:
        if self.low is None or self.high is None:
            return "one value each"
        if self.low > 1:
            return f"{percent(self.low - 1)} to {percent(self.high - 1)} more"
        if self.high < 1:
            return f"{percent(1 - self.high)} to {percent(1 - self.low)} less"
        if self.pes and 0 < self.less < self.pes:
            return f"PEs differ: less at {self.less} of {self.pes}"
        return "not told apart"


def ratio_of_means(first: list[float], second: list[float]) -> Ratio | None:
    """The bootstrap draws PEs; with equal numbers of PEs the same ones of both runs."""
    if not first or not second or sum(first) <= 0:
        return None
    value = (sum(second) / len(second)) / (sum(first) / len(first))
    if min(len(first), len(second)) < 3:
        return Ratio(value)
    draw = random.Random(SEED)
    ratios = []
    for _ in range(RESAMPLES):
        chosen = draw.choices(range(len(first)), k=len(first))
        others = chosen if len(first) == len(second) else draw.choices(range(len(second)), k=len(second))
        below = sum(first[i] for i in chosen) / len(first)
        if below > 0:
            ratios.append(sum(second[i] for i in others) / len(second) / below)
    if not ratios:
        return Ratio(value)
    ratios.sort()
    pairs = list(zip(first, second)) if len(first) == len(second) else []
    return Ratio(
        value,
        ratios[int(LOW * len(ratios))],
        ratios[min(int(HIGH * len(ratios)), len(ratios) - 1)],
        sum(b < a for a, b in pairs),
        len(pairs),
    )


def ratio_of_spreads(first: dict, second: dict) -> Ratio | None:
    """Of medians; the range is that of the extremes, because a result file has no single repeats."""
    if not all(
        isinstance(one.get(key), (int, float)) and one[key] > 0
        for one in (first, second)
        for key in ("median", "min", "max")
    ):
        return None
    value = second["median"] / first["median"]
    if first["min"] == first["max"] and second["min"] == second["max"]:
        return Ratio(value)
    return Ratio(value, second["min"] / first["max"], second["max"] / first["min"])


def median_bounds(values: list[int]) -> tuple[int, int, int]:
    """Median of sorted values with its 95 % interval by order statistics."""
    count = len(values)
    half = 0.98 * sqrt(count)
    low = max(int(count / 2 - half), 0)
    high = min(int(count / 2 + half), count - 1)
    return values[count // 2], values[low], values[high]


def compare(first: Facts, second: Facts, topics: set[str]) -> list[Section]:
    blocks: list[tuple[frozenset[str], str, str, list[Block]]] = [
        (frozenset({"waits", "balance", "aggregation", "network"}), "times", "Run time", _run_times(first, second)),
        (frozenset({"waits", "balance"}), "parts", "Time of a PE", _parts(first, second)),
        (frozenset({"waits"}), "causes", "Waiting time by cause", _causes(first, second)),
        (frozenset({"aggregation"}), "counts", "Communication of a PE", _counts(first, second)),
        (frozenset({"aggregation"}), "buffers", "Fill and flush of buffers", _buffers(first, second)),
        (frozenset({"aggregation", "network"}), "latencies", "Latency of messages", _latencies(first, second)),
        (frozenset({"network"}), "networks", "Costs of the network (LogGP)", _probes(first, second)),
        (frozenset({"network"}), "slopes", "Slopes", _slopes(first, second)),
    ]
    return [Section(id_, title, topic, found) for topic, id_, title, found in blocks if found and topic & topics]


def _run_times(first: Facts, second: Facts) -> list[Block]:
    rows = []
    if first.run_ns and second.run_ns:
        rows.append(
            [
                "run",
                duration(first.run_ns),
                duration(second.run_ns),
                Ratio(second.run_ns / first.run_ns).text,
                "one run each",
            ]
        )
    keys = ("bench", "mode", "pes", "transport", "message_bytes", "pattern", "case", "way", "memory")
    for record in first.run.results:
        name = tuple(record.get(key) for key in keys)
        for other in second.run.results:
            if tuple(other.get(key) for key in keys) != name:
                continue
            for field in ("seconds", "one_way_us", "latency_us"):
                a, b = record.get(field), other.get(field)
                ratio = ratio_of_spreads(a, b) if isinstance(a, dict) and isinstance(b, dict) else None
                if ratio is not None and isinstance(a, dict) and isinstance(b, dict):
                    scale = 1e9 if field == "seconds" else 1e3
                    label = ", ".join(str(one) for one in name[:2] if one)
                    rows.append(
                        [label, duration(a["median"] * scale), duration(b["median"] * scale), ratio.text, ratio.verdict]
                    )
            break
    if not rows:
        return []
    return [
        Table(["time of", "first", "second", "second over first", ""], rows),
        Paragraph(
            "Ratios of results have the range of the slowest to the fastest repeat. One run each says nothing of "
            "how much runs differ by themselves: repeat them."
        ),
    ]


def _row(name: str, first: list[float], second: list[float], shown: Callable[[float], str]) -> list[str] | None:
    ratio = ratio_of_means(first, second)
    if ratio is None:
        return None
    return [name, shown(sum(first) / len(first)), shown(sum(second) / len(second)), ratio.text, ratio.verdict]


def _table(rows: list[list[str] | None], what: str) -> list[Block]:
    found = [row for row in rows if row is not None]
    if not found:
        return []
    return [
        Table([what, "first", "second", "second over first", ""], [list(row) for row in found]),
        Paragraph("Means over PEs; the intervals hold 95 % and are from a bootstrap over PEs."),
    ]


def _parts(first: Facts, second: Facts) -> list[Block]:
    if not first.times or not second.times:
        return []
    rows = [
        _row(part, [row[part] for row in first.times], [row[part] for row in second.times], duration)
        for part in first.times[0]
        if part in second.times[0]
    ]
    rows.append(_row("work in all", first.work, second.work, duration))
    blocks = _table(rows, "time")
    spread = []
    for facts in (first, second):
        mean = sum(facts.work) / len(facts.work)
        spread.append(
            f"{max(facts.work) / mean:.3g} times the mean (PE {facts.work.index(max(facts.work))})"
            if mean > 0
            else "no work"
        )
    return [*blocks, Paragraph(f"Most work: first {spread[0]}, second {spread[1]}.")]


def _causes(first: Facts, second: Facts) -> list[Block]:
    if first.analysis is None or second.analysis is None:
        return []
    rows = []
    for facts, name in ((first, "first"), (second, "second")):
        assert facts.analysis is not None
        charges = facts.analysis.charges
        total = charges.total
        computed = sum(charges.computed.values())
        worst = charges.computed.most_common(1)
        rows.append(
            [
                name,
                duration(total),
                percent(computed, total),
                percent(sum(charges.network.values()), total),
                f"PE {worst[0][0]}, {percent(worst[0][1], total)}" if worst and computed else "-",
            ]
        )
    return [Table(["run", "waiting in all", "others computed", "network", "most by the work of"], rows)]


def _counts(first: Facts, second: Facts) -> list[Block]:
    a, b = first.run.counts, second.run.counts
    if a is None or b is None:
        return []
    fields: list[tuple[str, str, Callable[[float], str]]] = [
        ("messages", "messages", number),
        ("frames", "frames_sent", number),
        ("bytes", "bytes_sent", size),
        ("receivers", "receivers", number),
        ("reads", "reads", number),
        ("waits", "waits", number),
        ("barriers", "barriers", number),
        ("retries", "retries", number),
        ("processor time", "cpu_ns", duration),
    ]
    return _table(
        [
            _row(name, [float(pe.get(key, 0)) for pe in a.per_pe], [float(pe.get(key, 0)) for pe in b.per_pe], shown)
            for name, key, shown in fields
        ],
        "of a PE",
    )


def _buffers(first: Facts, second: Facts) -> list[Block]:
    rows = []
    for one in first.aggregators:
        for other in second.aggregators:
            if one.name == other.name:
                for name, buffers in ((f"{one.name}, first", one), (f"{one.name}, second", other)):
                    rows.append(
                        [
                            name,
                            number(buffers.frames),
                            *(percent(buffers.share(reason)) for reason in REASONS),
                            percent(buffers.fill),
                        ]
                    )
    return [Table(["aggregator", "frames", *REASONS, "fill"], list(rows))] if rows else []


def _latencies(first: Facts, second: Facts) -> list[Block]:
    if first.analysis is None or second.analysis is None:
        return []
    rows = []
    for name, key in (("network", "network_ns"), ("first message of a frame", "first_message_ns")):
        a, b = getattr(first.analysis, key), getattr(second.analysis, key)
        if not a or not b:
            continue
        cells = []
        for values in (a, b):
            median, low, high = median_bounds(values)
            cells.append(f"{duration(median)} ({duration(low)} to {duration(high)})")
        ratio = f"{median_bounds(b)[0] / max(median_bounds(a)[0], 1):.3g}"
        rows.append([name, *cells, ratio, f"{duration(a[len(a) * 99 // 100])}, {duration(b[len(b) * 99 // 100])}"])
    if not rows:
        return []
    return [
        Table(["median of", "first", "second", "second over first", "99 %, first and second"], rows),
        Paragraph("Medians with 95 % intervals by order statistics over frames."),
    ]


def _probes(first: Facts, second: Facts) -> list[Block]:
    rows = []
    for record in first.run.probe:
        for other in second.run.probe:
            if any(record.get(key) != other.get(key) for key in ("transport", "pair", "shared_cache")):
                continue
            for name, key in (
                ("o, sender", "o_send_ns"),
                ("o, receiver", "o_recv_ns"),
                ("L", "latency_ns"),
                ("g", "g_ns"),
                ("G", "gap_per_byte_ns"),
            ):
                a, b = record.get(key), other.get(key)
                if not isinstance(a, dict) or not isinstance(b, dict):
                    continue
                apart = a["high"] < b["low"] or b["high"] < a["low"]
                rows.append(
                    [
                        f"{record.get('transport')}, {record.get('pair')}",
                        name,
                        *(f"{one['value']:.3g} ns ({one['low']:.3g} to {one['high']:.3g})" for one in (a, b)),
                        "differ" if apart else "not told apart",
                    ]
                )
            break
    return [Table(["pair", "value", "first", "second", "95 % intervals"], rows, texts=2)] if rows else []


def _slopes(first: Facts, second: Facts) -> list[Block]:
    if first.run.slopes is None or second.run.slopes is None:
        return []
    other = {one["parameter"]: one["slope"] for one in second.run.slopes["slopes"]}
    rows = [
        [
            str(one["parameter"]),
            number(one["slope"]),
            number(other[one["parameter"]]),
            f"{other[one['parameter']] / one['slope']:.3g}" if one["slope"] else "-",
        ]
        for one in first.run.slopes["slopes"]
        if one["parameter"] in other
    ]
    return [Table(["parameter", "first", "second", "second over first"], rows)]
