# SPDX-License-Identifier: BSD-3-Clause
"""Plots of times by some number, both logarithmic, as SVG."""
from __future__ import annotations

import math
from collections.abc import Callable

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 560, 360, 70, 90, 50, 20


def log_plot(lines: dict[str, dict[int, float]], colors: dict[str, str], x_title: str, y_title: str,
             x_label: Callable[[int], str] = str) -> str:
    """A line for each name: y by x, both above 0. Axes reach from the smallest x to the largest, and half
    decades of y."""
    all_x = sorted({x for line in lines.values() for x in line})
    all_y = [y for line in lines.values() for y in line.values()]
    first, spread = math.log2(all_x[0]), math.log2(all_x[-1] / all_x[0]) or 1
    low, high = math.floor(math.log10(min(all_y)) * 2) / 2, math.ceil(math.log10(max(all_y)) * 2) / 2
    high = max(high, low + 0.5)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x_of(x: int) -> float:
        return LEFT + (right - LEFT) * (0.12 + 0.88 * (math.log2(x) - first) / spread)

    def y_of(y: float) -> float:
        return bottom - (bottom - TOP) * (math.log10(y) - low) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for x in all_x:
        parts.append(f'<text x="{x_of(x):.0f}" y="{bottom + 18}" text-anchor="middle">{x_label(x)}</text>')
    for half in range(round(low * 2), round(high * 2) + 1):
        y = y_of(10 ** (half / 2))
        parts.append(f'<line x1="{LEFT}" y1="{y:.0f}" x2="{right}" y2="{y:.0f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{10 ** (half / 2):.3g}</text>')
    parts.append(f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{x_title}</text>')
    parts.append(f'<text x="8" y="14">{y_title}</text>')
    ends: list[float] = []
    for name, line in lines.items():
        points = sorted(line.items())
        if not points:
            continue
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in points)
        end = y_of(points[-1][1])
        while any(abs(end - other) < 12 for other in ends):  # names do not lie on one another
            end += 12
        ends.append(end)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colors[name]}" stroke-width="2"/>')
        parts.append(f'<text x="{x_of(points[-1][0]) + 6:.0f}" y="{end + 4:.0f}" fill="{colors[name]}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
