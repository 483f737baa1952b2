# SPDX-License-Identifier: BSD-3-Clause
"""For scripts/figures: starts `headway bench` and reads its result files."""
from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from figure_state import Processors
from figure_table import LIMIT, CannotRun, Group, Record, rate


@dataclass
class Bench:
    """Starts `headway bench` and keeps its result files."""

    binary: Path
    results: Path
    rounds_given: int | None
    runs: int = 0
    missing: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.processors = Processors(self.binary.parent, 0 if self.rounds_given == 1 else 120)

    def rounds(self, usual: int) -> int:
        return self.rounds_given or usual

    def last_file(self, name: str) -> Path:
        return self.results / f"{self.runs:03d}-{name}.json"

    def run(self, name: str, *options: str, rounds: int) -> list[Group]:
        """The comparisons of one call, in its order."""
        self.runs += 1
        file = self.last_file(name)
        command = [str(self.binary), "bench", name, *options, "--repeat", str(rounds), "--time-limit", "120s"]
        command += ["--json", str(file)]
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if ended.returncode != 0:
            raise CannotRun(f"{' '.join(command)}: status {ended.returncode}: {ended.stderr.strip()}")
        return list(groups_of(json.loads(file.read_text())["records"]))

    def run_together(self, name: str, *options: str, rounds: int) -> list[Group]:
        """run(), a round at a time, with the processors together."""
        kept = self.processors.rounds_together(rounds, lambda: self.run(name, *options, rounds=1),
                                               lambda _: self.last_file(name).unlink())
        return [medians([groups[i] for groups in kept]) for i in range(len(kept[0]))]

    def state(self) -> float:
        """What the machine does now: limit's updates of 8 bytes, million a second in all."""
        shown = self.run("randomaccess", "--mode", LIMIT, "--log2", "16", "-n", "2", rounds=1)
        return rate(shown[0][LIMIT])


def medians(same: list[Any]) -> Any:
    """Of what several runs of one comparison have in the same place; what is no number is that of the first."""
    first = same[0]
    if isinstance(first, dict):
        return {key: medians([one[key] for one in same if key in one]) for key in first}
    if isinstance(first, (int, float)) and not isinstance(first, bool):
        return statistics.median(same)
    return first


def groups_of(records: list[Record]) -> Iterator[Group]:
    """A comparison ends where a label comes again."""
    group: Group = {}
    for record in records:
        if record["label"] in group:
            yield group
            group = {}
        group[record["label"]] = record
    if group:
        yield group
