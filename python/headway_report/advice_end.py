# SPDX-License-Identifier: BSD-3-Clause
"""Advice on runs that did not come to their end."""

from __future__ import annotations

from .advice_base import Advice
from .facts import Facts
from .units import counted, duration

SILENT_MIN = 0.05  # of the run: a PE that stops shortly before the others has not stopped first


def no_end(facts: Facts) -> list[Advice]:
    """A PE that stopped before the others, or the pair of PEs with the most messages that wait."""
    analysis = facts.analysis
    if analysis is None or analysis.ended or not analysis.run_ns:
        return []
    open_ones = [pe for pe in analysis.pes if not pe.has_end]
    first = min(open_ones, key=lambda pe: pe.end)
    silent = analysis.end - first.end
    waiting = sum(one.frames for one in analysis.undelivered if one.receiver == first.pe)
    if len(analysis.pes) > 1 and silent >= SILENT_MIN * analysis.run_ns:
        frames = f" {counted(waiting, 'frame')} to it had been posted, and it had not taken them." if waiting else ""
        return [
            Advice(
                "no end",
                "waits",
                f"Find out why PE {first.pe} stopped.",
                f"The run did not come to its end. The trace of PE {first.pe} stops {duration(silent)} before the last "
                f"one, at {duration(first.end - analysis.begin)}.{frames}",
            )
        ]
    frames = ""
    if analysis.undelivered:
        most = analysis.undelivered[0]
        frames = (
            f" Most messages that did not arrive, {most.messages}, are from PE {most.sender} to PE {most.receiver}."
        )
    return [
        Advice(
            "no end",
            "waits",
            "Find out why the run did not come to its end.",
            f"{counted(len(open_ones), 'PE')} of {len(analysis.pes)} did not; their traces stop at about the same "
            f"time, {duration(analysis.run_ns)} after the begin.{frames}",
        )
    ]
