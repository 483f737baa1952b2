# SPDX-License-Identifier: BSD-3-Clause
"""What the figures are written as: rows of one figure and its bound, in markdown."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]
Group = dict[str, Record]  # the records of one comparison, by label

LIMIT, DIRECT = "limit", "direct"


class CannotRun(Exception):
    """A comparison that ended without a result."""


@dataclass(frozen=True)
class Row:
    """One figure and its bound."""

    what: str
    figure: str  # with its unit
    ratio: float
    bound: str  # empty: held to nothing
    holds: bool
    of: str = ""  # what the ratio is to
    low: float | None = None  # the ratio's 95 % bounds
    high: float | None = None
    state: str = ""  # limit's rate in the same comparison

    def cells(self) -> list[str]:
        spread = "" if self.low is None or self.high is None else f"{self.low:.2f} to {self.high:.2f}"
        verdict = "" if not self.bound else "yes" if self.holds else "**no**"
        return [self.what, self.figure, self.state, f"{self.ratio:.2f} {self.of}".rstrip(), spread, self.bound, verdict]


HEAD = ["case", "median", "limit", "ratio", "95 % of the median", "bound", "holds"]


def markdown(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, f"|{' --- |' * len(rows[0])}")
    return "\n".join(lines) + "\n"


def rate(record: Record) -> float:
    return record["messages_per_second"] / 1e6


def figure_of(record: Record) -> str:
    if "one_way_us" in record:
        one_way_us = record["one_way_us"]["median"]
        return f"{one_way_us * 1e3:.1f} ns" if one_way_us < 10 else f"{one_way_us:.1f} us"
    if "latency_us" in record:
        return f"{record['latency_us']['median'] * 1e3:.0f} ns"
    if "cpu_us" in record:
        return f"{record['cpu_us']['median']:.2f} us"
    return f"{rate(record):.4g} M/s"


def state_of(group: Group) -> str:
    return figure_of(group[LIMIT]) if LIMIT in group else ""


def at_least(what: str, record: Record, ratio: Record, of: str, bound: float, state: str = "") -> Row:
    """`ratio` has a median, and bounds where there were rounds enough."""
    return Row(what, figure_of(record), ratio["median"], f">= {bound:g}", ratio["median"] >= bound, of,
               ratio.get("low"),
               ratio.get("high"), state)


def unbounded(what: str, record: Record, ratio: Record, of: str, state: str = "") -> Row:
    """As at_least, for comparison only."""
    return Row(what, figure_of(record), ratio["median"], "", True, of, ratio.get("low"), ratio.get("high"), state)


def median_at_least(what: str, record: Record, ratio: float, of: str, bound: float, state: str = "") -> Row:
    return at_least(what, record, {"median": ratio}, of, bound, state)


def slower_at_most(what: str, record: Record, speeds: Record, of: str, bound: float, state: str) -> Row:
    """`speeds` are ratios of speeds, the bound is one of times."""
    low, high = (1 / speeds[end] if speeds[end] else None for end in ("high", "low"))
    times = 1 / speeds["median"]
    return Row(what, figure_of(record), times, f"<= {bound:g}", times <= bound, of, low, high, state)
