# SPDX-License-Identifier: BSD-3-Clause
"""The command line of `headway report`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .advice import advise, has_numbers
from .compare import compare
from .errors import InputError
from .facts import Facts, facts_of
from .inputs import Input, join, read_input, read_one_pe
from .page import NO_ADVICE, NO_NUMBERS, render
from .sections import TOPICS, run_facts, sections_of, sources
from .text import render_text
from .units import counted, duration

UNUSABLE_ARGUMENTS = 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headway report",
        description="Explains a run on one page, with advice. Files are told apart by their content. Two files of the "
        "same kind are two runs, which are compared.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a file of counts (HEADWAY_COUNTS), results or --json of probe, sensitivity, slopes or "
        "predict, or a folder with traces (HEADWAY_TRACE)",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the page goes [report.html]")
    parser.add_argument(
        "--one-pe", type=Path, metavar="FILE", help="counts of the same program with one PE: adds the speedup"
    )
    parser.add_argument("--what", metavar="LIST", help=f"only these topics: {', '.join(TOPICS)} [all]")
    parser.add_argument("--text", action="store_true", help="print to the terminal; without -o no page is written")
    return parser


def main(arguments: list[str]) -> int:
    given = _parser().parse_args(arguments)
    try:
        topics = _topics(given.what)
        inputs = [read_input(path) for path in given.files]
        _write(given, topics, inputs)
    except InputError as error:
        print(f"headway report: {error}", file=sys.stderr)
        return UNUSABLE_ARGUMENTS
    except BrokenPipeError:
        # The reader of our output has what it wants; nothing may be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _topics(text: str | None) -> set[str]:
    if text is None:
        return set(TOPICS)
    topics = text.split(",")
    for topic in topics:
        if topic not in TOPICS:
            raise InputError("--what", f"'{topic}' is unknown; allowed are {', '.join(TOPICS)}")
    return set(topics)


def _write(given: argparse.Namespace, topics: set[str], inputs: list[Input]) -> None:
    groups = _runs(inputs)
    footer = "Made by headway report from " + ", ".join(f"{one.path.name}" for one in inputs) + "."
    if len(groups) == 2:
        if given.one_pe is not None:
            raise InputError("--one-pe", "two runs are compared; allowed is one run")
        first, second = (facts_of(join(group)) for group in groups)
        title, subtitle = f"{groups[0][0].path.name} and {groups[1][0].path.name} compared", _subtitle(second)
        advice, no_advice, sections = None, "", compare(first, second, topics)
    else:
        run = join(groups[0])
        if given.one_pe is not None:
            run.one_pe = read_one_pe(given.one_pe)
            if run.counts is None or run.counts.times_ns is None:
                raise InputError("--one-pe", "the speedup needs counts of the run, too: name their file")
        facts = facts_of(run)
        title, subtitle = _title(facts), _subtitle(facts)
        advice, sections = advise(facts, topics), [*sections_of(facts, topics), run_facts(facts)]
        no_advice = NO_ADVICE if has_numbers(facts) else NO_NUMBERS
        footer = "Made by headway report from " + "; ".join(sources(facts)) + "."
    if given.text:
        sys.stdout.write(render_text(title, subtitle, advice, no_advice, sections))
        sys.stdout.flush()
    if given.output is not None or not given.text:
        path = given.output or Path("report.html")
        page = render(title, subtitle, advice, no_advice, sections, footer)
        try:
            path.write_text(page, encoding="utf-8")
        except OSError as error:
            raise InputError(path, f"it cannot be written: {error.strerror}") from error
        if not given.text:
            print(f"{path}: {_summary(advice)}")


def _runs(inputs: list[Input]) -> list[list[Input]]:
    """One run, or two: those of a kind that occurs twice. Results of several cases belong to one run, unless there is
    nothing else."""
    kinds = [one.kind for one in inputs]
    twice = [kind for kind in dict.fromkeys(kinds) if kinds.count(kind) == 2]
    for kind in dict.fromkeys(kinds):
        if kinds.count(kind) > 2 and kind != "result":
            raise InputError(
                inputs[kinds.index(kind)].path,
                f"{kinds.count(kind)} files have the same kind ({kind}); allowed are 1, or 2 to compare",
            )
    if not twice or (twice == ["result"] and len(set(kinds)) > 1):
        return [inputs]
    first: list[Input] = []
    second: list[Input] = []
    for one in inputs:
        (second if any(other.kind == one.kind for other in first) else first).append(one)
    return [first, second]


def _title(facts: Facts) -> str:
    program = facts.program.split(" ")[0].rsplit("/", 1)[-1]
    if facts.pes is None:
        return f"Report on {program}" if program else "Report"
    return f"{program or 'Run'} with {counted(facts.pes, 'PE')}"


def _subtitle(facts: Facts) -> str:
    parts = []
    if facts.transport:
        parts.append(f"transport {facts.transport}")
    if facts.run_ns:
        parts.append(f"run time {duration(facts.run_ns)}" + (" (simulated)" if facts.simulated else ""))
    if facts.analysis is not None and not facts.analysis.ended:
        parts.append("did not come to its end")
    return ", ".join(parts)


def _summary(advice: list | None) -> str:
    if advice is None:
        return "a comparison"
    return counted(len(advice), "piece of advice", "pieces of advice")
