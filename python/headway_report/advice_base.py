# SPDX-License-Identifier: BSD-3-Clause
"""A piece of advice, and the bounds of the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .facts import Facts


@dataclass
class Advice:
    rule: str
    topic: str  # waits, balance, aggregation or network
    action: str
    evidence: str
    gain: float | None = None  # of the run time, at most; None: not known


Rule = Callable[[Facts], list[Advice]]

IMBALANCE_MIN = 1.25  # work of the slowest PE over the mean
GAIN_MIN = 0.05  # of the run time: less is not worth a change
WAITING_MIN = 0.10  # of all PEs' time
LATE_SHARE_MIN = 0.5  # of the waiting time, by one PE
NETWORK_SHARE_MIN = 0.5  # of the critical path
EARLY_MIN = 0.5  # of an aggregator's frames: not full
FILL_MAX = 0.25
PARTIAL_PER_RECEIVER_MIN = 4  # frames for each receiver and barrier: fewer are the last ones of each
FRAMES_MIN = 500  # of all PEs: fewer cost nothing
HOT_SHARE = 0.9
SMALL_BYTES = 256
OUTLIER_MIN = 20  # time of a frame over the median of all
READS_MIN = 0.05  # of the frames
CPU_MAX = 0.75  # of the time in which a PE has work
SLOPE_MIN = 0.3  # of the run time, by one parameter


def median(values: list[int]) -> int:
    return values[len(values) // 2]
