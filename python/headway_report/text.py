# SPDX-License-Identifier: BSD-3-Clause
"""The same report for a terminal."""

from __future__ import annotations

from textwrap import fill

from .advice import Advice
from .blocks import Bar, Cell, Paragraph, Section, Table

COLUMNS = 100


def render_text(title: str, subtitle: str, advice: list[Advice] | None, no_advice: str, sections: list[Section]) -> str:
    lines = [title, "=" * len(title)]
    if subtitle:
        lines.append(fill(subtitle, COLUMNS))
    if advice is not None:
        lines += ["", "Advice", "------"]
        for number, one in enumerate(advice, 1):
            lines.append(fill(f"{number}. {one.action}", COLUMNS, subsequent_indent="   "))
            lines.append(fill(one.evidence, COLUMNS, initial_indent="   ", subsequent_indent="   "))
        if not advice:
            lines.append(fill(no_advice, COLUMNS))
    for section in sections:
        if not any(
            isinstance(block, Paragraph) or isinstance(block, Table) and not block.summary for block in section.blocks
        ):
            continue  # drawings alone
        lines += ["", section.title, "-" * len(section.title)]
        for block in section.blocks:
            if isinstance(block, Paragraph):
                lines.append(fill(block.text, COLUMNS))
            elif isinstance(block, Table) and not block.summary:
                lines += ["", *_table(block)]
    return "\n".join(lines) + "\n"


def _text(cell: Cell) -> str:
    return (cell.text if isinstance(cell, Bar) else str(cell)).replace("\u202f", " ").replace("\u00a0", " ")


def _table(table: Table) -> list[str]:
    rows = [[_text(cell) for cell in row] for row in table.rows]
    every = ([table.headers] if any(table.headers) else []) + rows
    widths = [max(len(row[column]) for row in every) for column in range(len(every[0]))]
    lines = [table.caption + ":"] if table.caption else []
    for row in every:
        cells = [
            text.ljust(width) if column < table.texts else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
