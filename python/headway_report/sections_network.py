# SPDX-License-Identifier: BSD-3-Clause
"""Costs of the network, slopes, sensitivity, predictions."""

from __future__ import annotations

from .blocks import Block, Chart, Paragraph, Section, Table
from .charts import curves
from .facts import Facts
from .units import duration, number, percent

_VALUES = (
    ("o, sender", "o_send_ns"),
    ("o, receiver", "o_recv_ns"),
    ("L", "latency_ns"),
    ("g", "g_ns"),
    ("G, a byte", "gap_per_byte_ns"),
)
_UNITS = {
    "o": "posts and handled frames",
    "item_o": "messages",
    "g": "frames behind others",
    "L": "arrivals waited for",
    "G": "bytes",
}


def network_sections(facts: Facts) -> list[Section]:
    topic = frozenset({"network"})
    return [
        Section("network", "Costs of the network (LogGP)", topic, _loggp(facts)),
        Section("slopes", "Slopes: what o, g, L and G cost", topic, _slopes(facts)),
        Section("sensitivity", "Sensitivity to the network", topic, _sensitivity(facts)),
        Section("predictions", "Predictions", topic, _predictions(facts)),
    ]


def _interval(value: object) -> str:
    if not isinstance(value, dict) or not isinstance(value.get("value"), (int, float)):
        return "-"
    if value.get("below_zero"):
        return "0, in others"
    text = duration(value["value"]) if value["value"] >= 1 else f"{value['value']:.3g} ns"
    low, high = value.get("low"), value.get("high")
    return (
        f"{text} ({low:.3g} to {high:.3g})"
        if isinstance(low, (int, float)) and isinstance(high, (int, float))
        else text
    )


def _loggp(facts: Facts) -> list[Block]:
    blocks: list[Block] = []
    analysis = facts.analysis
    if analysis is not None:
        costs = analysis.costs
        gap = "0 s" if costs.gap_per_byte_ns == 0 else f"{costs.gap_per_byte_ns:.3g} ns"
        blocks.append(
            Table(
                ["source", "o", "L", "G, a byte"],
                [["transport's own costs and dials", duration(costs.overhead_ns), duration(costs.latency_ns), gap]],
                caption="Costs that this run had",
            )
        )
    rows = []
    for record in facts.run.probe:
        if not any(key in record for _, key in _VALUES):
            continue
        residual = record.get("residual")
        rows.append(
            [
                str(record.get("transport", "-")),
                str(record.get("pair", "-")),
                *(_interval(record.get(key)) for _, key in _VALUES),
                percent(residual) if isinstance(residual, (int, float)) else "-",
            ]
        )
    if rows:
        blocks.append(
            Table(
                ["transport", "pair", *(name for name, _ in _VALUES), "distance from the lines"],
                rows,
                texts=2,
                caption="Measured by headway probe; ns, with 95 % intervals",
            )
        )
    return blocks


def _value(parameter: str, value: object) -> str:
    if not isinstance(value, (int, float)):
        return "-"
    return f"{value:.3g} ns a byte" if parameter == "G" else duration(value)


def _slopes(facts: Facts) -> list[Block]:
    slopes = facts.run.slopes
    if slopes is None:
        return []
    rows = []
    for one in slopes["slopes"]:
        name = str(one["parameter"])
        rows.append(
            [
                name,
                number(one["slope"]),
                _UNITS.get(name, ""),
                *(_value(name, one.get(key)) for key in ("critical", "one_percent", "five_percent")),
            ]
        )
    blocks: list[Block] = [
        Paragraph(
            "The run takes so many times as much longer as a parameter grows, until another path is the longest."
        ),
        Table(["parameter", "slope", "counts", "another path from", "1 % longer from", "5 % longer from"], rows),
    ]
    dialled = [one for one in slopes.get("dialled") or [] if isinstance(one, dict)]
    rows = []
    for one in dialled:
        predicted, measured = one.get("predicted_seconds"), one.get("measured_seconds")
        rows.append(
            [
                str(one.get("dials", "")),
                duration(1e9 * predicted) if predicted is not None else "-",
                duration(1e9 * measured) if measured is not None else "-",
                f"{100 * one['error']:+.1f} %" if one.get("error") is not None else "-",
            ]
        )
    if rows:
        blocks.append(Table(["dials", "predicted", "measured", "error"], rows))
    return blocks


def _sensitivity(facts: Facts) -> list[Block]:
    blocks: list[Block] = []
    points = [r for r in facts.run.sensitivity if isinstance(r.get("slowdown"), dict) and r.get("dial")]
    for record in facts.run.sensitivity:
        for text in record.get("conclusions") or []:
            blocks.append(Paragraph(str(text)))
    rows = []
    for pes, dial in dict.fromkeys((r.get("pes"), str(r["dial"])) for r in points):
        chosen = [r for r in points if r.get("pes") == pes and str(r["dial"]) == dial]
        per_byte = "ns_per_byte" in chosen[0]
        unit = "ns a byte" if per_byte else "us"

        def x_of(record: dict) -> float:
            return float(record.get("ns_per_byte" if per_byte else "us") or record.get("dialled_us") or 0)

        chosen.sort(key=x_of)
        lines = [("p", "measured", [(0.0, 1.0)] + [(x_of(r), r["slowdown"]["median"]) for r in chosen])]
        methods: list[str] = []
        for record in chosen:
            predicted = record.get("predicted_slowdown") or record.get("predicted") or {}
            methods += [name for name in predicted if name not in methods and name in ("formula", "trace", "sim")]
        for kind, method in zip("hcn", methods):
            values = [(x_of(r), (r.get("predicted_slowdown") or r.get("predicted") or {}).get(method)) for r in chosen]
            lines.append((kind, method, [(0.0, 1.0)] + [(x, y) for x, y in values if isinstance(y, (int, float))]))
        ranges = [
            (
                x_of(r),
                r["slowdown"].get("min", r["slowdown"]["median"]),
                r["slowdown"].get("max", r["slowdown"]["median"]),
            )
            for r in chosen
        ]
        blocks.append(Chart(curves(f"Slowdown with {dial}, {number(pes)} PEs", unit, lines, ranges)))
        last = chosen[-1]
        rows.append(
            [
                dial,
                number(pes),
                f"{x_of(last):.4g} {unit}",
                f"{last['slowdown']['median']:.3g}",
                *(f"{line[2][-1][1]:.3g}" for line in lines[1:]),
            ][:4]
        )
    if rows:
        blocks.append(Table(["dial", "PEs", "largest value", "slowdown there"], rows))
    return blocks


def _predictions(facts: Facts) -> list[Block]:
    rows = []
    for record in facts.run.predictions:
        if record.get("kind") in ("growth", "necessary", "measured", "route"):
            continue
        predicted = record.get("predicted_seconds", record.get("seconds"))
        what = str(record.get("dial") or record.get("machine") or record.get("kind", ""))
        mode = str(record.get("mode", "") or "")
        if isinstance(predicted, dict):
            rows += _by_method(record, what, predicted)
        elif isinstance(predicted, (int, float)):
            error = record.get("error")
            rows.append(
                [
                    what,
                    mode,
                    number(record.get("pes")),
                    duration(1e9 * predicted),
                    "-",
                    f"{100 * error:+.0f} %" if isinstance(error, (int, float)) else "-",
                ]
            )
    if not rows:
        return []
    return [Table(["case", "method", "PEs", "predicted", "measured", "error"], rows, texts=2)]


def _by_method(record: dict, what: str, predicted: dict) -> list[list]:
    seconds = record.get("seconds")
    measured = seconds.get("median") if isinstance(seconds, dict) else None
    errors = record.get("error") if isinstance(record.get("error"), dict) else {}
    rows = []
    for method, value in predicted.items():
        if isinstance(value, (int, float)):
            error = errors.get(method)
            rows.append(
                [
                    what,
                    str(method),
                    number(record.get("pes")),
                    duration(1e9 * value),
                    duration(1e9 * measured) if isinstance(measured, (int, float)) else "-",
                    f"{100 * error:+.0f} %" if isinstance(error, (int, float)) else "-",
                ]
            )
    return rows
