# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of a run, from whichever of its files has them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .inputs import Run
from .trace_analysis import TraceAnalysis, analyse
from .trace_events import REASONS

WORK_PARTS = ("program", "handlers", "communication", "working")


@dataclass
class AggregatorFacts:
    name: str
    by_reason: dict[str, float]  # frames
    messages: float
    bytes: float
    capacity: float | None  # bytes of a buffer
    capacity_source: str
    ages_ns: list[int] = field(default_factory=list)  # of the first message, sorted
    early_by_peer: Counter = field(default_factory=Counter)  # frames that left by timeout or idle
    fill_measured: float | None = None

    @property
    def frames(self) -> float:
        return sum(self.by_reason.values())

    @property
    def fill(self) -> float | None:
        """Mean bytes of a frame over those of a buffer."""
        if self.fill_measured is not None:
            return self.fill_measured
        if not self.capacity or not self.frames:
            return None
        return min(self.bytes / self.frames / self.capacity, 1.0)

    def share(self, *reasons: str) -> float:
        return sum(self.by_reason.get(reason, 0) for reason in reasons) / self.frames if self.frames else 0.0


@dataclass
class Facts:
    run: Run
    analysis: TraceAnalysis | None
    pes: int | None
    run_ns: float | None
    simulated: bool
    transport: str
    times: list[dict[str, float]]  # by PE
    times_source: str
    aggregators: list[AggregatorFacts]

    @property
    def work(self) -> list[float]:
        """Of each PE: its time without waits, in ns."""
        return [sum(row.get(part, 0) for part in WORK_PARTS) for row in self.times]

    @property
    def waiting(self) -> list[float]:
        return [row.get("waiting", 0) for row in self.times]

    @property
    def waiting_share(self) -> float:
        total = sum(self.work) + sum(self.waiting)
        return sum(self.waiting) / total if total else 0.0

    @property
    def program(self) -> str:
        run = self.run
        if run.trace is not None and run.trace.about.get("program"):
            arguments = run.trace.about.get("arguments")
            words = [run.trace.about["program"], *(arguments if isinstance(arguments, list) else [])]
            return " ".join(str(word) for word in words)
        if run.counts is not None and run.counts.program:
            return run.counts.program
        command = run.command or (run.slopes or {}).get("command")
        return " ".join(map(str, command)) if isinstance(command, list) else ""


def facts_of(run: Run) -> Facts:
    analysis = analyse(run.trace) if run.trace is not None else None
    pes = run_ns = None
    simulated, transport = False, ""
    if run.results:
        first = run.results[0]
        pes, transport = first.get("pes"), str(first.get("transport", ""))
        simulated = first.get("simulated_time") is True or transport in ("sim", "smpi")
    if run.slopes is not None:
        pes, simulated = run.slopes.get("pes", pes), run.slopes.get("simulated") is True
        transport = str(run.slopes.get("transport") or transport)
        run_ns = 1e9 * (run.slopes.get("traced_seconds") or 0) or None
    if analysis is not None and run.trace is not None:
        pes, run_ns, simulated = run.trace.pes, float(analysis.run_ns), analysis.simulated
        transport = run.trace.headers[0].transport or transport
    if run.counts is not None:
        pes, simulated = run.counts.pes, run.counts.simulated
        run_ns = run_ns or run.counts.max("run_ns")
    times, source = _times(run, analysis)
    return Facts(run, analysis, pes, run_ns, simulated, transport, times, source, _aggregators(run, analysis))


def _times(run: Run, analysis: TraceAnalysis | None) -> tuple[list[dict[str, float]], str]:
    if run.counts is not None and run.counts.times_ns is not None:
        return run.counts.times_ns, "counts"
    if analysis is not None:
        return analysis.times, "trace"
    if run.counts is not None:
        rows = [
            {"working": max(pe["run_ns"] - pe["waiting_ns"], 0.0), "waiting": float(pe["waiting_ns"])}
            for pe in run.counts.per_pe
        ]
        return rows, "waits of the counts"
    return [], ""


def _aggregators(run: Run, analysis: TraceAnalysis | None) -> list[AggregatorFacts]:
    buffer_bytes = run.counts.max("buffer_bytes") if run.counts is not None else 0
    if analysis is not None and analysis.flushes:
        result = []
        for handler, one in sorted(analysis.flushes.items()):
            full = one.by_reason[REASONS.index("full")]
            if full > 0:
                capacity, capacity_source = one.bytes_of_full / full, "the mean full frame"
            elif buffer_bytes and len(analysis.flushes) == 1:
                capacity, capacity_source = buffer_bytes, "buffer_bytes"
            else:
                capacity, capacity_source = float(one.bytes_max), "the largest frame"
            name = analysis.handler_names.get(handler) or f"aggregator {handler}"
            result.append(
                AggregatorFacts(
                    name,
                    dict(zip(REASONS, map(float, one.by_reason))),
                    one.messages,
                    one.bytes,
                    capacity,
                    capacity_source,
                    sorted(one.ages),
                    one.early_by_peer,
                )
            )
        return result
    if run.counts is not None and all("full" in pe for pe in run.counts.per_pe):
        counts = run.counts
        frames = {reason: counts.sum(reason) for reason in REASONS}
        sent = max(counts.sum("frames_sent") - counts.sum("control_frames"), 0)
        mean_bytes = counts.sum("bytes_sent") / counts.sum("frames_sent") if counts.sum("frames_sent") else 0
        total = sum(frames.values())
        if total:
            name = "all aggregators"
            messages = counts.sum("messages_in_frames") * total / sent if sent else counts.sum("messages")
            return [
                AggregatorFacts(
                    name,
                    frames,
                    messages,
                    mean_bytes * total,
                    buffer_bytes or None,
                    "buffer_bytes",
                    fill_measured=_fill_of_results(run),
                )
            ]
    return _aggregators_of_results(run)


def _aggregators_of_results(run: Run) -> list[AggregatorFacts]:
    result = []
    for record in run.results:
        flush = record.get("flush")
        if isinstance(flush, dict) and record.get("frames"):
            frames = {
                reason: float(flush.get("explicit" if reason == "requested" else reason) or 0) for reason in REASONS
            }
            capacity = (record.get("options") or {}).get("buffer_bytes")
            name = f"{record.get('bench', 'program')}, {record.get('mode', '')}".strip(", ")
            result.append(
                AggregatorFacts(
                    name,
                    frames,
                    record.get("messages") or 0,
                    record.get("wire_bytes") or 0,
                    capacity,
                    "buffer_bytes",
                    fill_measured=record.get("fill_mean"),
                )
            )
    return result


def _fill_of_results(run: Run) -> float | None:
    fills = [record["fill_mean"] for record in run.results if isinstance(record.get("fill_mean"), (int, float))]
    return fills[0] if len(fills) == 1 else None
