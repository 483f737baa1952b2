# SPDX-License-Identifier: BSD-3-Clause
"""Whether the system has the two processors together or apart, which changes by seconds and triples the cost of
a line."""
from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from figure_table import CannotRun

Round = TypeVar("Round")


class Processors:
    """Knows their state by trips of 8 bytes, one way."""

    def __init__(self, programs: Path, patience_s: float = 120) -> None:
        self.programs = programs
        self.patience_s_at_first = patience_s
        self.shortest_us: float | None = None
        self.begin_section()

    def begin_section(self) -> None:
        self.patience_s = self.patience_s_at_first  # for all waiting and all rounds that are dropped
        self.rounds = self.rounds_apart = 0  # that were counted

    def trip_us(self) -> float:
        command = [str(self.programs / "headway-zerocopy"), "--messages", "3000", "--bytes", "8", "--json", "-"]
        try:
            ended = subprocess.run(command, env={**os.environ, "HEADWAY_PES": "2"}, capture_output=True, text=True,
                                   check=False,
                                   timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotRun(f"{' '.join(command)}: {error}") from error
        if ended.returncode != 0:
            raise CannotRun(f"{' '.join(command)}: status {ended.returncode}: {ended.stderr.strip()}")
        trip: float = json.loads(ended.stdout)["one_way_us"]["median"]
        return trip

    def are_together(self) -> bool:
        """Whether a trip takes at most twice as long as the shortest yet."""
        trip = self.trip_us()
        self.shortest_us = min(trip, self.shortest_us or trip)
        return trip <= 2 * self.shortest_us

    def learn(self) -> None:
        """For some seconds: what is shortest then is taken for together."""
        for _ in range(20):
            self.are_together()
            time.sleep(0.2)

    def wait(self) -> bool:
        """Until they are together, or patience ends: false."""
        while not self.are_together():
            if self.patience_s <= 0:
                return False
            time.sleep(0.5)
            self.patience_s -= 0.5
        return True

    def rounds_together(self, rounds: int, one: Callable[[], Round],
                        drop: Callable[[Round], None] = lambda _: None) -> list[Round]:
        """So many before and after which they were together: figures of neighbours are then of one state. Others are
        dropped, while patience lasts."""
        if self.shortest_us is None:
            self.learn()
        kept: list[Round] = []
        while len(kept) < rounds:
            together = self.wait()
            begin = time.monotonic()
            done = one()
            together = self.are_together() and together
            if together or self.patience_s <= 0:
                kept.append(done)
                self.rounds += 1
                self.rounds_apart += not together
            else:
                drop(done)
                self.patience_s -= time.monotonic() - begin
        return kept

    def told(self) -> str:
        """Of the rounds that were to be together, how many were not."""
        return f"; {self.rounds_apart} of {self.rounds} rounds with the processors apart" if self.rounds else ""
