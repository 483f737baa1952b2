# SPDX-License-Identifier: BSD-3-Clause
"""The sections of a report, in their order."""

from __future__ import annotations

from .blocks import TOPICS, Paragraph, Section, Table
from .facts import Facts
from .inputs import KINDS
from .sections_frames import frame_sections
from .sections_network import network_sections
from .sections_speedup import speedup_sections
from .sections_time import time_sections
from .units import counted, duration, number, size

def sections_of(facts: Facts, topics: set[str]) -> list[Section]:
    """Those of these topics for which the inputs have numbers."""
    every = [*time_sections(facts), *speedup_sections(facts), *frame_sections(facts), *network_sections(facts)]
    return [one for one in every if one.blocks and one.topics & topics]


def run_facts(facts: Facts) -> Section:
    run, counts = facts.run, facts.run.counts
    rows: list[list[str]] = []

    def add(name: str, value: object) -> None:
        if value not in (None, "", [], {}):
            rows.append([name, str(value)])

    add("program", facts.program)
    add("PEs", facts.pes)
    about = run.trace.about if run.trace is not None else {}
    hosts = about.get("hosts") or (counts.hosts if counts is not None else None)
    per_process = about.get("pes_per_process") or (counts.pes_per_process if counts is not None else None)
    add("hosts", len(hosts) if isinstance(hosts, list) else hosts)
    add("PEs per process", per_process)
    add("transport", facts.transport + (", simulated time" if facts.simulated else ""))
    if run.trace is not None:
        add("dials", run.trace.headers[0].dials or about.get("dials"))
        add("simulated network", about.get("network"))
        add("began", about.get("began"))
    if facts.run_ns:
        add("run time", duration(facts.run_ns))
    if counts is not None:
        add("messages", f"{number(counts.sum('messages'))} by all PEs, {size(counts.sum('payload_bytes'))}")
    machine = run.machine
    add("processor", machine.get("processor") or machine.get("cpu"))
    add("kernel", machine.get("kernel"))
    add("Headway", about.get("headway") or run.version)
    add("build", about.get("build") or machine.get("build"))
    blocks: list[Table | Paragraph] = [Table(["", ""], rows, texts=2)] if rows else []
    analysis = facts.analysis
    if analysis is not None:
        if analysis.lost:
            blocks.append(
                Paragraph(
                    f"The trace lost {counted(analysis.lost, 'record')}: PEs made more than it keeps. "
                    "Times before the first kept record are missing."
                )
            )
        if not analysis.ended:
            blocks.append(Paragraph("The run did not come to its end, or its trace was read before."))
        if analysis.unmatched:
            blocks.append(
                Paragraph(
                    "PEs of a process share buffers: waits are not followed to their causes, because such "
                    "frames have no number that both sides know."
                )
            )
        if analysis.residual_ns:
            blocks.append(
                Paragraph(
                    "The clocks of the hosts are aligned by the fastest frames; they may be off by "
                    f"{duration(analysis.residual_ns)}."
                )
            )
    return Section("run", "Run", frozenset(TOPICS), list(blocks))


def sources(facts: Facts) -> list[str]:
    return [f"{one.path.name or one.path}: {KINDS[one.kind]}" for one in facts.run.sources]
