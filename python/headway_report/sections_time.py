# SPDX-License-Identifier: BSD-3-Clause
"""Where the time went: balance, waits, critical path, timeline, phases."""

from __future__ import annotations

from collections import Counter, defaultdict

from .blocks import Bar, Block, Chart, Paragraph, Section, Table
from .charts import columns_of_times, timeline
from .facts import Facts
from .trace_events import WAITS
from .units import duration, number, percent

ROWS_MAX = 12  # of a table that is shown at once
NAMES_OF_WAITS = {
    "working": "memory",
    "handling": "memory, in a handler",
    "waiting": "an answer or a frame",
    "collective": "other members of a collective",
    "epoch": "all messages of an epoch",
    "quiescing": "all messages of the run",
}


def time_sections(facts: Facts) -> list[Section]:
    return [
        Section("balance", "Balance", frozenset({"balance"}), _balance(facts)),
        Section("waits", "Waiting time and its causes", frozenset({"waits"}), _waits(facts)),
        Section("path", "Critical path", frozenset({"waits", "network"}), _path(facts)),
        Section("timeline", "Timeline", frozenset({"waits", "balance"}), _timeline(facts)),
        Section("phases", "Phases of the program", frozenset({"balance"}), _phases(facts)),
    ]


def _balance(facts: Facts) -> list[Block]:
    work = facts.work
    if not work or sum(work) + sum(facts.waiting) <= 0:
        return []
    slowest = work.index(max(work))
    mean = sum(work) / len(work)
    source = {"counts": "the library's own clock", "trace": "the trace"}.get(facts.times_source, facts.times_source)
    parts = [part for part in facts.times[0]]
    most = (
        f"PE {slowest} works most: {duration(work[slowest])}, {work[slowest] / mean:.3g} times the mean of "
        f"{duration(mean)}."
        if mean and work[slowest] > 1.02 * mean
        else f"Each PE works {duration(mean)}."
    )
    intro = f"{most} PEs wait {percent(facts.waiting_share)} of their time. Times are from {source}."
    order = sorted(range(len(work)), key=lambda pe: -work[pe])
    rows = []
    for pe, row in enumerate(facts.times):
        rows.append(
            [
                f"PE {pe}",
                *(duration(row[part]) for part in parts),
                Bar(percent(work[pe], max(work)), work[pe] / max(work) if max(work) else 0),
            ]
        )
    headers = ["PE", *parts, "work, of the most"]
    blocks: list[Block] = [Paragraph(intro), Chart(columns_of_times(facts.times, slowest))]
    if len(rows) > ROWS_MAX:
        top = order[: ROWS_MAX // 2] + order[-ROWS_MAX // 4 :]
        blocks.append(Table(headers, [rows[pe] for pe in top], {0}, caption="Most and least work"))
        blocks.append(Table(headers, rows, {slowest}, summary=f"All {len(rows)} PEs"))
    else:
        blocks.append(Table(headers, rows, {slowest}))
    return blocks


def _waits(facts: Facts) -> list[Block]:
    analysis = facts.analysis
    if analysis is None or analysis.charges.total <= 0:
        return []
    charges = analysis.charges
    total = charges.total
    computed, network = sum(charges.computed.values()), sum(charges.network.values())
    blocks: list[Block] = [
        Paragraph(
            f"PEs waited {duration(total)} in all. Each wait is charged to the PE whose frame ended "
            f"it; if that PE waited "
            f"itself, to the cause of its wait, and so on. {percent(computed, total)} of the waiting time passed while "
            f"another PE computed, {percent(network, total)} while a frame was under way."
        )
    ]
    through = Counter()
    for (sender, _), ns in charges.network.items():
        through[sender] += ns
    causes = sorted(set(charges.computed) | set(through), key=lambda pe: -charges.computed[pe] - through[pe])
    rows = [
        [
            f"PE {pe}",
            Bar(percent(charges.computed[pe], total), charges.computed[pe] / total),
            duration(charges.computed[pe]),
            duration(through[pe]),
        ]
        for pe in causes[:ROWS_MAX]
        if charges.computed[pe] + through[pe] > 0
    ]
    if rows:
        blocks.append(
            Table(
                ["cause", "of all waiting, by its work", "while it computed", "while its frames travelled"],
                rows,
                caption="PEs for which others waited",
            )
        )
    if charges.not_followed > 0.005 * total:
        blocks.append(
            Paragraph(
                f"{duration(charges.not_followed)} ended without a frame, as by a timeout, or have no known " "sender."
            )
        )
    direct = sorted(charges.direct.items(), key=lambda item: -sum(item[1]))[: ROWS_MAX - 2]
    rows = [
        [f"PE {waiter}", f"PE {cause}", duration(sum(parts)), *(duration(part) for part in parts)]
        for (waiter, cause), parts in direct
    ]
    blocks.append(
        Table(
            ["waits", "for", "time", "that PE computed", "it waited itself", "network"],
            rows,
            texts=2,
            caption="Longest waits of a PE for the frames of another",
        )
    )
    reasons: Counter = Counter()
    for pe in analysis.pes:
        for wait in pe.waits:
            reasons[wait.reason] += wait.end - wait.begin
    rows = [
        [NAMES_OF_WAITS[WAITS[reason]], duration(ns), Bar(percent(ns, total), ns / total)]
        for reason, ns in reasons.most_common()
        if reason < len(WAITS)
    ]
    blocks.append(Table(["wait for", "time", "of all waiting"], rows))
    return blocks


def _path(facts: Facts) -> list[Block]:
    analysis = facts.analysis
    if analysis is None or analysis.path.total <= 0:
        return []
    path = analysis.path
    total = path.total
    names = {
        "program": "program",
        "handlers": "handlers",
        "communication": "calls of the library",
        "waiting": "waits without a known sender",
        "network": "frames under way",
    }
    rows = [
        [names[part], duration(ns), Bar(percent(ns, total), ns / total)]
        for part, ns in sorted(path.parts.items(), key=lambda item: -item[1])
        if ns > 0
    ]
    blocks: list[Block] = [
        Paragraph(
            f"The longest chain of work and frames takes {duration(total)}, with {number(path.frames)} frames. Only "
            "changes on it shorten the run, until another chain is the longest."
        ),
        Table(["part", "time", "of the path"], rows),
    ]
    work = [
        [f"PE {pe}", duration(ns), Bar(percent(ns, total), ns / total)]
        for pe, ns in path.work.most_common(ROWS_MAX // 2)
        if ns > 0.001 * total
    ]
    if len(analysis.pes) > 1:
        blocks.append(Table(["work of", "time", "of the path"], work))
    steps = sorted(path.steps, key=lambda step: step.begin - step.end)[:6]
    rows = []
    for step in sorted(steps, key=lambda step: step.begin):
        what = f"work of PE {step.pe}" if step.sender < 0 else f"frame from PE {step.sender} to PE {step.pe}"
        rows.append([what, duration(step.begin - analysis.begin), duration(step.end - step.begin)])
    blocks.append(Table(["longest steps", "from", "time"], rows))
    return blocks


def _timeline(facts: Facts) -> list[Block]:
    analysis = facts.analysis
    if analysis is None or analysis.run_ns <= 0:
        return []
    work = facts.work
    return [Chart(timeline(analysis, work.index(max(work)) if len(work) == len(analysis.pes) else 0))]


def _phases(facts: Facts) -> list[Block]:
    counts = facts.run.counts
    if counts is None or not counts.phases:
        return []
    sums: dict[tuple[str, ...], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    most: dict[tuple[str, ...], float] = defaultdict(float)
    slowest: dict[tuple[str, ...], int] = {}
    order: list[tuple[str, ...]] = []
    for pe, phases in enumerate(counts.phases):
        names: list[tuple[str, ...]] = []
        for phase in phases:
            above = names[phase.parent] if phase.parent is not None and 0 <= phase.parent < len(names) else ()
            key = (*above, phase.name)
            names.append(key)
            if key not in sums:
                order.append(key)
            sums[key]["calls"] += phase.calls
            own = sum(phase.ns.values())
            for part, ns in phase.ns.items():
                sums[key][part] += ns
            for name, value in phase.counters.items():
                if value is not None:
                    sums[key][name] += value
            if own >= most[key]:
                most[key], slowest[key] = own, pe
    rows = []
    for key in order:
        row, pes = sums[key], counts.pes
        own = sum(row[part] for part in ("program", "handlers", "communication", "waiting")) / pes
        cycles, instructions = row.get("cycles"), row.get("instructions")
        rows.append(
            [
                ("\u00a0\u00a0" * (len(key) - 1)) + key[-1],
                number(row["calls"] / pes),
                duration(own),
                *(duration(row[part] / pes) for part in ("program", "handlers", "communication", "waiting")),
                f"{duration(most[key])} (PE {slowest[key]})",
                f"{instructions / cycles:.2f}" if cycles and instructions else "-",
                number(row["cache_misses"] / pes) if "cache_misses" in row else "-",
            ]
        )
    return [
        Paragraph("Means over PEs; times include those of inner phases."),
        Table(
            [
                "phase",
                "calls",
                "time",
                "program",
                "handlers",
                "communication",
                "waiting",
                "most",
                "instructions per cycle",
                "cache misses",
            ],
            rows,
        ),
    ]
