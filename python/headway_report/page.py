# SPDX-License-Identifier: BSD-3-Clause
"""The page: jinja2 puts the sections into templates/page.html."""

from __future__ import annotations

from pathlib import Path

from .advice import Advice
from .blocks import Section

NO_ADVICE = "Nothing stands out: no rule found a cause that would be worth a change."
NO_NUMBERS = "Advice needs the counts of a run (--counts), and finds more with its trace (--trace)."


def render(
    title: str, subtitle: str, advice: list[Advice] | None, no_advice: str, sections: list[Section], footer: str
) -> str:
    """One page that needs no other file. `advice` is None in a comparison; `no_advice` stands for an empty list."""
    import jinja2

    folder = Path(__file__).parent / "templates"
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, undefined=jinja2.StrictUndefined
    )
    style = (folder / "page.css").read_text(encoding="utf-8")
    return environment.get_template("page.html").render(
        title=title,
        subtitle=subtitle,
        advice=advice,
        sections=sections,
        footer=footer,
        no_advice=no_advice,
        style=jinja2.utils.markupsafe.Markup(style),
    )
