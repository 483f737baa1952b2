# SPDX-License-Identifier: BSD-3-Clause
"""Drawings as inline SVG. Their text is HTML beside them, so that it stays readable on narrow screens."""

from __future__ import annotations

from collections import Counter
from html import escape
from math import ceil, floor, log2

from .png import data_uri
from .trace_analysis import STATES, TraceAnalysis, shares
from .units import counted, duration, number, percent

WIDTH = 1000  # of each drawing, in its own units
PES_MAX_OF_COLUMNS = 256
ROWS_MAX = 32
BINS = 160
PES_MAX_OF_CELLS = 20
PES_MAX_OF_MATRIX = 256
LEVELS = 15
MATRIX_COLOUR = (44, 123, 229)
CLASS_OF_PART = {"program": "p", "handlers": "h", "communication": "c", "waiting": "w", "working": "p", "network": "n"}


def legend(entries: list[tuple[str, str]]) -> str:
    """Class and text of each entry."""
    items = "".join(f'<li><i class="k {kind}"></i>{escape(text)}</li>' for kind, text in entries)
    return f'<ul class="legend">{items}</ul>'


def _figure(
    title: str,
    svg: str,
    left: list[str],
    below: list[str],
    key: str = "",
    note: str = "",
    rows: bool = False,
    narrow: bool = False,
) -> str:
    """`left`: labels from top to bottom; with `rows` one for each row of the drawing. `below`: from left to right."""
    kind = "rows" if rows else "ends"
    labels = "".join(f"<span>{escape(text)}</span>" for text in left)
    under = "".join(f"<span>{escape(text)}</span>" for text in below)
    return (
        f'<figure><figcaption>{escape(title)}</figcaption>{key}<div '
        f'class="plot{" narrow" if narrow else ""}"><div class="left {kind}">{labels}'
        f'</div><div class="area">{svg}</div><div class="below">{under}</div></div>'
        f'{f"<p class=note>{escape(note)}</p>" if note else ""}</figure>'
    )


def _svg(height: int, content: str, title: str, style: str = "") -> str:
    """Stretched to the width of its box; `height` is in pixels."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none" role="img" '
        f'style="height:{height}px{style}"><title>{escape(title)}</title>{content}</svg>'
    )


def _short(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def columns_of_times(times: list[dict[str, float]], slowest: int) -> str:
    """A column for each PE: the parts of its time, waits at the top."""
    parts = [part for part in ("program", "working", "handlers", "communication", "waiting") if part in times[0]]
    per_column = ceil(len(times) / PES_MAX_OF_COLUMNS)
    groups = [times[i : i + per_column] for i in range(0, len(times), per_column)]
    longest = max(sum(row.values()) for row in times) or 1
    height, step = 180, WIDTH / len(groups)
    gap = step * 0.12 if len(groups) <= 64 else 0
    paths: dict[str, list[str]] = {part: [] for part in parts}
    titles = []
    for place, group in enumerate(groups):
        low = float(height)
        x = _short(place * step + gap / 2)
        words = []
        for part in parts:
            mean = sum(row[part] for row in group) / len(group)
            tall = mean / longest * height
            if tall >= 0.05:
                paths[part].append(f"M{x} {_short(low)}v{_short(-tall)}h{_short(step - gap)}v{_short(tall)}z")
            low -= tall
            words.append(f"{part} {duration(mean)}")
        first = place * per_column
        name = f"PE {first}" if len(group) == 1 else f"mean of PEs {first} to {first + len(group) - 1}"
        mark = " (most work)" if first <= slowest < first + len(group) else ""
        titles.append(
            f'<rect x="{_short(place * step)}" width="{_short(step)}" height="{height}" class="hit">'
            f"<title>{name}{mark}: {', '.join(words)}</title></rect>"
        )
    content = "".join(f'<path class="{CLASS_OF_PART[part]}" d="{"".join(paths[part])}"/>' for part in parts)
    x = (slowest // per_column + 0.5) * step
    arrow = f'<path class="mark" d="M{_short(x)} 0V{height}"/>'
    key = legend([(CLASS_OF_PART[part], part) for part in parts] + [("mark", f"most work: PE {slowest}")])
    return _figure(
        "Time of each PE",
        _svg(height, content + arrow + "".join(titles), "Time of each PE by part"),
        [duration(longest), duration(longest / 2), "0"],
        _pe_labels(len(times)),
        key,
    )


def _pe_labels(pes: int) -> list[str]:
    if pes == 1:
        return ["PE 0"]
    return ["PE 0", f"PE {pes - 1}"] if pes < 5 else ["PE 0", f"PE {(pes - 1) // 2}", f"PE {pes - 1}"]


def timeline(analysis: TraceAnalysis, slowest: int) -> str:
    """A row for each PE or group of PEs: from below the shares of program, handlers and communication over time; the
    rest is waiting. A line shows the critical path. Among groups, PE `slowest` has a row of its own, the first one."""
    pes = len(analysis.pes)
    per_row = ceil(pes / ROWS_MAX)
    rows = [list(range(first, min(first + per_row, pes))) for first in range(0, pes, per_row)]
    if per_row > 1:
        rows.insert(0, [slowest])
    row_of = {pe: place for place, row in enumerate(rows) for pe in row}
    row_of[slowest] = min(place for place, row in enumerate(rows) if slowest in row)
    row_height = 26 if len(rows) <= 8 else 20 if len(rows) <= 16 else 16
    height, width = row_height * len(rows), WIDTH / BINS
    layers: dict[str, list[str]] = {kind: [] for kind in "phc"}
    for place, row in enumerate(rows):
        low = [0.0] * BINS
        sums = _mean_shares(analysis, row)
        for state, kind in enumerate("phc"):
            high = [a + values[state] for a, values in zip(low, sums)]
            layers[kind].append(_band(low, high, row_height * (place + 1) - 1, row_height - 2, width))
            low = high
    labels = [f"PE {row[0]}" if len(row) == 1 else f"PE {row[0]}-{row[-1]}" for row in rows]
    content = "".join(f'<path class="{kind}" d="{"".join(paths)}"/>' for kind, paths in layers.items())
    content += "".join(f'<path class="line" d="M0 {row_height * i}H{WIDTH}"/>' for i in range(1, len(rows)))
    content += _path_line(analysis, row_of, row_height)
    content += "".join(
        f'<rect class="hit" y="{row_height * place}" width="{WIDTH}" height="{row_height}"><title>'
        f"{label}</title></rect>"
        for place, label in enumerate(labels)
    )
    key = legend(
        [("p", "program"), ("h", "handlers"), ("c", "communication"), ("w", "waiting"), ("path", "critical path")]
    )
    total = analysis.run_ns
    note = f"A column is {duration(total / BINS)}; its height is the share of each part."
    if per_row > 1:
        note += f" The first row is PE {slowest}, which works most."
    return _figure(
        "What each PE did",
        _svg(height, content, "Timeline of all PEs"),
        labels,
        ["0", duration(total / 2), duration(total)],
        key,
        note,
        rows=True,
    )


def _mean_shares(analysis: TraceAnalysis, row: list[int]) -> list[list[float]]:
    """Of program, handlers and communication, for each bin."""
    sums = [[0.0] * 3 for _ in range(BINS)]
    for pe in row:
        if not analysis.pes[pe].starts:
            continue
        for bin_, values in zip(sums, shares(analysis.pes[pe], analysis.begin, analysis.end, BINS)):
            for state in range(3):
                bin_[state] += values[state] / len(row)
    return sums


def _band(low: list[float], high: list[float], base: float, scale: float, width: float) -> str:
    """Steps between two bounds, equal neighbours joined; only where the band has a height."""
    result = []
    place = 0
    quantized = [(round(a * 12), round(min(b, 1.0) * 12)) for a, b in zip(low, high)]
    while place < len(quantized):
        bounds = quantized[place]
        last = place + 1
        while last < len(quantized) and quantized[last] == bounds:
            last += 1
        if bounds[1] > bounds[0]:
            bottom, tall = base - bounds[0] / 12 * scale, (bounds[1] - bounds[0]) / 12 * scale
            long = (last - place) * width
            result.append(f"M{_short(place * width)} {_short(bottom)}v{_short(-tall)}h{_short(long)}v{_short(tall)}z")
        place = last
    return "".join(result)


def _path_line(analysis: TraceAnalysis, row_of: dict[int, int], row_height: int) -> str:
    """At most three points in each of the columns: more would only blacken it."""
    if analysis.run_ns <= 0:
        return ""

    def at(time: int, pe: int) -> tuple[int, float]:
        return round((time - analysis.begin) / analysis.run_ns * WIDTH), (row_of[pe] + 0.5) * row_height

    columns: Counter = Counter()
    text: list[str] = []
    last = None
    for step in analysis.path.steps:
        points = [at(step.begin, step.sender)] if step.sender >= 0 else []
        for point in [*points, at(step.end, step.pe)]:
            if point == last or columns[point[0]] >= 3:
                continue
            columns[point[0]] += 1
            text.append(f"{'L' if text else 'M'}{point[0]} {_short(point[1])}")
            last = point
    return f'<path class="path" d="{"".join(text)}"/>' if len(text) > 1 else ""


def matrix(cells: list[dict[int, int]], what: str) -> str:
    """Row: sender; column: receiver. Levels are logarithmic."""
    pes = len(cells)
    per_cell = ceil(pes / PES_MAX_OF_MATRIX)
    size = ceil(pes / per_cell)
    rows = [[0] * size for _ in range(size)]
    for sender, row in enumerate(cells):
        for receiver, count in row.items():
            rows[sender // per_cell][receiver // per_cell] += count
    most = max(max(row) for row in rows)
    if most == 0:
        return ""
    level = [[0 if one == 0 else max(1, round(LEVELS * log2(1 + one) / log2(1 + most))) for one in row] for row in rows]
    if size <= PES_MAX_OF_CELLS:
        step = WIDTH / size
        drawn = "".join(
            f'<rect x="{_short(column * step)}" y="{_short(line * step)}" width="{_short(step)}" '
            f'height="{_short(step)}" class="m" fill-opacity="{level[line][column] / LEVELS:.2g}"><title>PE {line} to '
            f"PE {column}: {number(rows[line][column])} {what}</title></rect>"
            for line in range(size)
            for column in range(size)
        )
    else:
        drawn = (
            f'<image width="{WIDTH}" height="{WIDTH}" preserveAspectRatio="none" '
            f'href="{data_uri(level, LEVELS, MATRIX_COLOUR)}"/>'
        )
    width = min(34, 8 + 4 * size)
    svg = (
        f'<svg class="square" style="max-width:{width - 4}rem" viewBox="0 0 {WIDTH} {WIDTH}" '
        f'role="img"><title>{escape(what)} from each PE to each '
        f"other PE</title>{drawn}</svg>"
    )
    note = f"Full colour: {number(most)} {what}" + (
        f"; a cell has {per_cell} by {per_cell} PEs." if per_cell > 1 else "."
    )
    return _figure(
        f"{what.capitalize()} from each PE (row) to each PE (column)",
        svg,
        _pe_labels(pes),
        _pe_labels(pes),
        note=note,
        narrow=True,
    )


def histogram(kinds: list[tuple[str, str, list[int]]]) -> str:
    """Distributions of times over octaves or parts of them. `kinds`: class, text and sorted times."""
    kinds = [one for one in kinds if one[2]]
    shortest, longest = min(max(values[0], 1) for _, _, values in kinds), max(
        max(values[-1], 1) for _, _, values in kinds
    )
    octaves = log2(longest / shortest)
    parts = 4 if octaves <= 4 else 2 if octaves <= 10 else 1  # of an octave

    def bin_of(value: int) -> int:
        return floor(log2(max(value, 1)) * parts)

    low, high = bin_of(shortest), bin_of(longest) + 1
    if high - low < 6:
        low, high = low - 2, high + 2
    height, step = 140, WIDTH / (high - low)
    counts = []
    for _, _, values in kinds:
        bins = Counter(map(bin_of, values))
        counts.append({place: count / len(values) for place, count in bins.items()})
    most = max(max(bins.values()) for bins in counts)
    content = ""
    wide = step * 0.8 / len(kinds)
    for place, ((kind, text, values), bins) in enumerate(zip(kinds, counts)):
        for power, share in sorted(bins.items()):
            tall = share / most * height
            x = (power - low) * step + step * 0.1 + place * wide
            content += (
                f'<rect class="{kind}" x="{_short(x)}" y="{_short(height - tall)}" width="{_short(wide)}" '
                f'height="{_short(tall)}"><title>{escape(text)}, {duration(2 ** (power / parts))} to '
                f"{duration(2 ** ((power + 1) / parts))}: {percent(share)} of {counted(len(values), 'frame')}"
                "</title></rect>"
            )
    ends = [duration(2 ** (place / parts)) for place in (low, (low + high) / 2, high)]
    return _figure(
        "Latency",
        _svg(height, content, "Distribution of latencies"),
        [percent(most), "0"],
        ends,
        legend([(kind, text) for kind, text, _ in kinds]),
    )


def curves(
    title: str,
    x_name: str,
    lines: list[tuple[str, str, list[tuple[float, float]]]],
    ranges: list[tuple[float, float, float]],
) -> str:
    """Slowdown over the value of a dial. `lines`: class, text and points; `ranges`: x, least, most."""
    x_max = max(x for _, _, points in lines for x, _ in points) or 1
    y_max = max([y for _, _, points in lines for _, y in points] + [most for _, _, most in ranges] + [1.1])
    height = 180

    def at(x: float, y: float) -> str:
        return f"{_short(x / x_max * WIDTH)} {_short(height - y / y_max * height)}"

    content = f'<path class="line" d="M{at(0, 1)}H{WIDTH}"/>'
    for x, least, most in ranges:
        content += f'<path class="range" d="M{at(x, least)}L{at(x, most)}"/>'
    for place, (kind, text, points) in enumerate(lines):
        content += f'<path class="curve {kind}" d="M{"L".join(at(x, y) for x, y in points)}"><title>{escape(text)}'
        content += "</title></path>"
        if place == 0:
            for x, y in points:
                content += (
                    f'<path class="dot {kind}" d="M{at(x, y)}h0"><title>{escape(x_name)} {x:.4g}: slowdown '
                    f"{y:.3g}</title></path>"
                )
    return _figure(
        title,
        _svg(height, content, title),
        [f"{y_max:.3g}", f"{y_max / 2:.3g}", "0"],
        ["0", f"{x_max / 2:.3g}", f"{x_max:.4g} {x_name}"],
        legend([(kind, text) for kind, text, _ in lines]),
    )


assert tuple(STATES[:3]) == ("program", "handlers", "communication")
