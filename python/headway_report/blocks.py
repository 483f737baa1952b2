# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a page, for HTML and for the terminal."""

from __future__ import annotations

from dataclasses import dataclass, field


TOPICS = ("waits", "balance", "aggregation", "network")  # of sections


@dataclass
class Bar:
    """A cell with a bar behind its text."""

    text: str
    share: float  # 0 to 1


Cell = str | Bar


@dataclass
class Table:
    headers: list[str]
    rows: list[list[Cell]]
    marked: set[int] = field(default_factory=set)  # rows
    texts: int = 1  # so many first columns are texts, the others numbers
    summary: str = ""  # stands for the table until the reader opens it
    caption: str = ""


@dataclass
class Chart:
    html: str


@dataclass
class Paragraph:
    text: str


Block = Table | Chart | Paragraph


@dataclass
class Section:
    id: str
    title: str
    topics: frozenset[str]
    blocks: list[Block]
