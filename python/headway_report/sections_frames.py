# SPDX-License-Identifier: BSD-3-Clause
"""What was sent: communication table, matrix, aggregation, latency."""

from __future__ import annotations

from .blocks import TOPICS, Bar, Block, Cell, Chart, Paragraph, Section, Table
from .charts import histogram, matrix
from .facts import Facts
from .sections_time import ROWS_MAX
from .trace_events import REASONS
from .units import counted, duration, number, percent, size


def frame_sections(facts: Facts) -> list[Section]:
    return [
        Section("undelivered", "Undelivered frames", frozenset(TOPICS), _undelivered(facts)),
        Section("communication", "Communication", frozenset({"aggregation"}), _communication(facts)),
        Section("matrix", "Messages between PEs", frozenset({"aggregation"}), _matrix(facts)),
        Section("aggregation", "Fill and flush of buffers", frozenset({"aggregation"}), _aggregation(facts)),
        Section("latency", "Latency of messages", frozenset({"aggregation", "network"}), _latency(facts)),
    ]


def _undelivered(facts: Facts) -> list[Block]:
    analysis = facts.analysis
    if analysis is None or not analysis.undelivered:
        return []
    frames = sum(one.frames for one in analysis.undelivered)
    rows: list[list[Cell]] = [
        [
            f"PE {one.sender}",
            f"PE {one.receiver}",
            number(one.messages),
            number(one.frames),
            size(one.bytes),
            f"{duration(one.oldest_ns - analysis.begin)} after the begin",
        ]
        for one in analysis.undelivered[:ROWS_MAX]
    ]
    return [
        Paragraph(
            f"{counted(frames, 'frame')} had been posted, and the receiver had not taken them at the end of its trace."
        ),
        Table(["from", "to", "messages", "frames", "bytes", "oldest posted"], rows, texts=2),
    ]


def _communication(facts: Facts) -> list[Block]:
    counts = facts.run.counts
    if counts is None:
        return _results(facts)
    total = counts.communication

    def shown(name: str) -> str:
        value = total.get(name)
        return number(value) if isinstance(value, (int, float)) else "-"

    blocks: list[Block] = [
        Table(
            [
                "us per message",
                "ms per barrier",
                "messages, mean",
                "messages, most",
                "reads",
                "bulk transfers",
                "retries",
            ],
            [
                [
                    shown(name)
                    for name in (
                        "us_per_message",
                        "ms_per_barrier",
                        "messages_mean",
                        "messages_max",
                        "reads",
                        "bulk",
                        "retries",
                    )
                ]
            ],
            texts=0,
        )
    ]
    headers = [
        "PE",
        "messages",
        "frames",
        "bytes",
        "receivers",
        "turns",
        "reads",
        "waits",
        "barriers",
        "retries",
        "spilled",
        "run time",
    ]
    rows = []
    for pe, row in enumerate(counts.per_pe):
        rows.append(
            [
                f"PE {pe}",
                *(number(row.get(name)) for name in ("messages", "frames_sent")),
                size(row.get("bytes_sent")),
                *(number(row.get(name)) for name in ("receivers", "turns", "reads", "waits", "barriers", "retries")),
                size(row.get("spilled_bytes_peak")),
                duration(row.get("run_ns")),
            ]
        )
    most = max(range(counts.pes), key=lambda pe: counts.per_pe[pe].get("messages", 0))
    if len(rows) > ROWS_MAX:
        order = sorted(range(counts.pes), key=lambda pe: -counts.per_pe[pe].get("messages", 0))
        blocks.append(Table(headers, [rows[pe] for pe in order[:ROWS_MAX]], {0}, caption="PEs with most messages"))
        blocks.append(Table(headers, rows, {most}, summary=f"All {counts.pes} PEs"))
    else:
        blocks.append(Table(headers, rows, {most} if counts.pes > 1 else set()))
    return blocks + _results(facts)


def _results(facts: Facts) -> list[Block]:
    rows: list[list[Cell]] = []
    best = max((record.get("messages_per_second") or 0 for record in facts.run.results), default=0)
    for record in facts.run.results:
        seconds = record.get("seconds")
        spread, time = "-", duration(1e9 * seconds) if isinstance(seconds, (int, float)) else "-"
        if isinstance(seconds, dict):
            time = duration(1e9 * seconds["median"])
            spread = f"{duration(1e9 * seconds['min'])} to {duration(1e9 * seconds['max'])}"
        rate, verified = record.get("messages_per_second"), record.get("verified")
        rows.append(
            [
                str(record.get("bench", "-")),
                str(record.get("mode", "-")),
                str(record.get("transport", "-")),
                number(record.get("pes")),
                time,
                spread,
                Bar(number(rate), rate / best) if rate else "-",
                "-" if verified is None else "yes" if verified else "no",
            ]
        )
    if not rows:
        return []
    return [
        Table(
            ["benchmark", "mode", "transport", "PEs", "time, median", "min to max", "messages per second", "verified"],
            rows,
            texts=3,
            caption="Results",
        )
    ]


def _matrix(facts: Facts) -> list[Block]:
    analysis = facts.analysis
    if analysis is None or len(analysis.pes) < 2:
        return []
    cells = [dict(pe.messages_to) for pe in analysis.pes]
    drawn = matrix(cells, "messages")
    if not drawn:
        return []
    pairs = sorted(
        ((count, sender, receiver) for sender, row in enumerate(cells) for receiver, count in row.items()), reverse=True
    )
    total = sum(count for count, _, _ in pairs)
    rows = [
        [
            f"PE {sender}",
            f"PE {receiver}",
            number(count),
            Bar(percent(count, total), count / total),
            number(analysis.pes[sender].frames_to[receiver]),
            size(analysis.pes[sender].bytes_to[receiver]),
        ]
        for count, sender, receiver in pairs[:6]
    ]
    return [
        Paragraph(
            f"{number(total)} messages in {counted(len(pairs), 'pair')} of PEs; a forwarded message counts at each "
            "hop."
        ),
        Chart(drawn),
        Table(["from", "to", "messages", "of all", "frames", "bytes"], rows, texts=2, caption="Busiest pairs"),
    ]


def _aggregation(facts: Facts) -> list[Block]:
    rows = []
    for one in facts.aggregators:
        fill = one.fill
        ages = one.ages_ns
        rows.append(
            [
                one.name,
                number(one.frames),
                *(Bar(percent(one.share(reason)), one.share(reason)) for reason in REASONS),
                Bar(percent(fill), fill) if fill is not None else "-",
                number(one.messages / one.frames) if one.frames else "-",
                size(one.bytes / one.frames) if one.frames else "-",
                duration(ages[len(ages) // 2]) if ages else "-",
                duration(ages[len(ages) * 99 // 100]) if ages else "-",
            ]
        )
    if not rows:
        return []
    capacities = sorted({f"{size(one.capacity)} ({one.capacity_source})" for one in facts.aggregators if one.capacity})
    why = "Why frames left, and how full they were. Fill is relative to " + "; ".join(capacities) + "."
    return [
        Paragraph(why),
        Table(
            ["aggregator", "frames", *REASONS, "fill", "messages in a frame", "bytes", "age, median", "age, 99 %"], rows
        ),
    ]


def _latency(facts: Facts) -> list[Block]:
    analysis = facts.analysis
    if analysis is None or not analysis.network_ns:
        return []
    kinds = [
        ("n", "network: from post to handler", analysis.network_ns),
        ("h", "first message of a frame: buffer and network", analysis.first_message_ns),
    ]
    rows = []
    for _, text, values in kinds:
        if values:
            rows.append(
                [
                    text,
                    number(len(values)),
                    *(
                        duration(values[min(len(values) * part // 1000, len(values) - 1)])
                        for part in (0, 500, 900, 990, 1000)
                    ),
                ]
            )
    between = Paragraph(
        "The first message of a frame waits in the buffer, the last one does not: all others lie between."
    )
    return [
        Chart(histogram(kinds)),
        *([between] if analysis.first_message_ns else []),
        Table(["time of", "frames", "least", "median", "90 %", "99 %", "most"], rows),
    ]
