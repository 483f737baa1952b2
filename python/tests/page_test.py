# SPDX-License-Identifier: BSD-3-Clause
"""The page: valid HTML that needs no other file, its size, and the choice of sections."""

from __future__ import annotations

import re
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

from inputs_test import RESULT, run_main
from made_run import MadePe, counts, rounds, write_json, write_trace

VOID = {"meta", "br", "hr", "img", "input", "link"}
BYTES_MAX = 500_000


class Page(HTMLParser):
    """Checks that tags are balanced, ids are used once, and nothing is loaded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.problems: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append(f"open at the end: {self.open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            self.problems.append(f"{tag} has an attribute twice")
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in ("src", "href", "srcset", "xlink:href") and not str(value).startswith(("data:image/png", "#")):
                self.problems.append(f"{tag} loads {value}")
            if name.startswith("on"):
                self.problems.append(f"{tag} has a script in {name}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"{tag} ends inside of {self.open[-3:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def neighbours(pes: int, steps: int) -> list[MadePe]:
    """Each PE sends to the next ones, and waits for the one before it."""
    made = [MadePe(pe) for pe in range(pes)]
    for pe in made:
        pe.names += [(2, 1, "edges & <others>"), (2, 2, "ranks")]
        for step in range(steps):
            now = step * 20_000
            for i in range(8):
                to = (pe.pe + 1 + i * i) % pes
                pe.post(
                    now + 100 + (pe.pe * 37 + step * 11 + i) % 9000,
                    to,
                    100 + 400 * (i % 3),
                    i + 1,
                    reason=i % 4,
                    age=1000 * i,
                    handler=1 + i % 2,
                )
            first = (pe.pe - 1) % pes
            pe.wait(now + 10_000 + pe.pe % 7 * 300, now + 15_000 + (pe.pe + step) % 5 * 400, first, 500)
        pe.records.sort(key=lambda record: int.from_bytes(record[:8], "little"))
        pe.end(steps * 20_000)
    return made


class Pages(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def page(self, *arguments: object) -> str:
        file = self.folder / "page.html"
        status, _, error = run_main(*arguments, "-o", file)
        self.assertEqual(status, 0, error)
        return file.read_text(encoding="utf-8")

    def check(self, text: str) -> Page:
        page = Page(text)
        self.assertEqual(page.problems, [])
        self.assertEqual(len(set(page.ids)), len(page.ids), page.ids)
        self.assertNotIn("script", page.tags)
        self.assertNotIn("link", page.tags)
        without_images = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", text)
        self.assertEqual(re.findall(r"//|@import|url\(", without_images), [])
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertIn("@media print", text)
        self.assertLess(len(text.encode()), BYTES_MAX)
        return page

    def every_input(self, pes: int, made: list[MadePe]) -> list[Path]:
        parts = {"program": 6e7, "handlers": 2e7, "communication": 1e7, "waiting": 1e7}
        phase = {
            "name": "solve <1>",
            "parent": None,
            "calls": 3,
            "ns": parts,
            "cycles": 1e9,
            "instructions": 2e9,
            "cache_misses": None,
        }
        inner = {**phase, "name": "inner", "parent": 0, "cycles": None}
        estimate = {"value": 200.0, "low": 150.0, "high": 250.0}
        point = {"bench": "sensitivity", "kind": "point", "pes": pes, "dial": "L"}
        slopes = {
            "command": ["./made"],
            "pes": pes,
            "traced_seconds": 1e-3,
            "path": {},
            "slopes": [{"parameter": "G", "slope": 5e4, "critical": 0.5, "one_percent": None}],
            "dialled": [{"dials": "L=1us", "predicted_seconds": 1e-3, "measured_seconds": 2e-3, "error": -0.5}],
        }
        files = {
            "counts": counts(pes, times_ns=parts, phases=[phase, inner]),
            "result": {"headway": "0.1.0", "machine": {"processor": "A & B"}, "records": [RESULT]},
            "probe": {
                "records": [
                    {
                        "bench": "probe",
                        "transport": "local",
                        "pair": "process",
                        "residual": 0.01,
                        **dict.fromkeys(("o_send_ns", "o_recv_ns", "latency_ns", "g_ns"), estimate),
                    }
                ]
            },
            "sensitivity": {
                "records": [
                    {"bench": "sensitivity", "kind": "program", "conclusions": ["Prefetch <reads>."]},
                    *(
                        {
                            **point,
                            "us": us,
                            "slowdown": {"median": 1 + us, "min": us, "max": 2 + us},
                            "predicted_slowdown": {"formula": 1.5 + us, "trace": None},
                        }
                        for us in (1, 5, 20)
                    ),
                ]
            },
            "slopes": slopes,
            "predict": {
                "records": [
                    {
                        "bench": "predict",
                        "kind": "machine",
                        "machine": "summit",
                        "pes": 64,
                        "mode": "2d",
                        "predicted_seconds": 0.1,
                    }
                ]
            },
        }
        paths = [write_json(self.folder / name, value) for name, value in files.items()]
        return [write_trace(self.folder / "trace", made), *paths]

    def test_a_page_with_every_input_is_valid_and_has_every_section(self) -> None:
        page = self.check(self.page(*self.every_input(16, neighbours(16, 10))))
        self.assertEqual(
            page.ids,
            [
                "advice",
                "balance",
                "waits",
                "path",
                "timeline",
                "phases",
                "undelivered",
                "communication",
                "matrix",
                "aggregation",
                "latency",
                "network",
                "slopes",
                "sensitivity",
                "predictions",
                "run",
            ],
        )
        words = " ".join(page.words)
        for word in ("edges & <others>", "solve <1>", "inner", "Prefetch <reads>.", "A & B", "summit"):
            self.assertIn(word, words)

    def test_a_page_of_256_pes_with_every_input_stays_below_500_kb(self) -> None:
        text = self.page(*self.every_input(256, neighbours(256, 12)))
        self.check(text)
        self.assertIn("data:image/png;base64,", text)

    def test_more_than_256_pes_are_binned(self) -> None:
        text = self.page(write_trace(self.folder / "trace", neighbours(300, 2)))
        self.check(text)
        self.assertIn("a cell has 2 by 2 PEs", text)

    def test_one_pe_has_a_page(self) -> None:
        self.check(self.page(write_trace(self.folder / "trace", rounds([1000]))))

    def test_missing_inputs_leave_their_sections_out(self) -> None:
        paths = self.every_input(4, neighbours(4, 5))
        ids = {path.name: self.check(self.page(path)).ids for path in paths}
        of_trace = ["balance", "waits", "path", "timeline", "matrix", "aggregation", "latency", "network", "run"]
        self.assertEqual(
            ids["trace"],
            ["advice", *of_trace[:4], "undelivered", *of_trace[4:]],
        )
        self.assertEqual(ids["counts"], ["advice", "balance", "phases", "communication", "aggregation", "run"])
        self.assertEqual(ids["result"], ["advice", "communication", "run"])
        self.assertEqual(ids["probe"], ["advice", "network", "run"])
        self.assertEqual(ids["sensitivity"], ["advice", "sensitivity", "run"])
        self.assertEqual(ids["slopes"], ["advice", "slopes", "run"])
        self.assertEqual(ids["predict"], ["advice", "predictions", "run"])

    def test_what_chooses_sections(self) -> None:
        paths = self.every_input(4, neighbours(4, 5))
        chosen = {
            what: self.check(self.page(*paths, "--what", what)).ids
            for what in ("waits", "balance", "aggregation", "network", "waits,balance")
        }
        self.assertEqual(chosen["waits"], ["advice", "waits", "path", "timeline", "undelivered", "run"])
        self.assertEqual(chosen["balance"], ["advice", "balance", "timeline", "phases", "undelivered", "run"])
        self.assertEqual(
            chosen["aggregation"], ["advice", "undelivered", "communication", "matrix", "aggregation", "latency", "run"]
        )
        self.assertEqual(
            chosen["network"],
            ["advice", "path", "undelivered", "latency", "network", "slopes", "sensitivity", "predictions", "run"],
        )
        self.assertEqual(
            chosen["waits,balance"],
            ["advice", "balance", "waits", "path", "timeline", "phases", "undelivered", "run"],
        )

    def test_a_run_with_one_pe_gives_the_speedup_and_what_it_was_lost_to(self) -> None:
        def parts(*ns: float) -> dict:
            return dict(zip(("program", "handlers", "communication", "waiting"), ns))

        def phase(name: str, *ns: float) -> dict:
            return {"name": name, "parent": None, "calls": 1, "ns": parts(*ns)}

        one = counts(1, run_ns=80e6, times_ns=parts(60e6, 12e6, 6e6, 2e6), phases=[phase("solve", 40e6, 0, 0, 0)])
        four = counts(4, run_ns=40e6, times_ns=parts(20e6, 4e6, 8e6, 8e6), phases=[phase("solve", 10e6, 0, 6e6, 0)])
        alone, run = write_json(self.folder / "one.json", one), write_json(self.folder / "four.json", four)
        status, out, err = run_main(run, "--one-pe", alone, "--text")
        self.assertEqual((status, err), (0, ""))
        section = out.split("\nSpeedup\n", 1)[1]
        self.assertIn("the speedup is 2.", section)
        for row in (
            ("work of one PE, shared", "18 ms", "45 %"),
            ("extra work", "6 ms", "15 %", "2.35"),
            ("communication", "8 ms", "20 %", "2.5"),
            ("waiting", "8 ms", "20 %", "2.5"),
            ("solve", "40 ms", "16 ms", "2.5"),
        ):
            self.assertRegex(section, r"\s+".join(row))
        self.assertIn("speedup", self.check(self.page(run, "--one-pe", alone)).ids)
        for wrong, reason in ((run, "4 PEs; allowed is 1"), (self.folder / "none", "No such file")):
            status, _, err = run_main(run, "--one-pe", wrong, "--text")
            self.assertEqual((status, err.count("\n")), (2, 1))
            self.assertIn(reason, err)
        status, _, err = run_main(write_trace(self.folder / "trace", rounds([1000])), "--one-pe", alone, "--text")
        self.assertEqual(status, 2)
        self.assertIn("the speedup needs counts", err)

    def test_text_has_the_advice_and_the_tables(self) -> None:
        trace = write_trace(self.folder / "trace", rounds([10_000, 10_000, 30_000, 10_000]))
        status, out, _ = run_main(trace, "--text")
        self.assertEqual(status, 0)
        self.assertFalse((self.folder / "page.html").exists())
        for word in ("1. Give PE 2 less work.", "Balance\n-------", "PE 2", "Critical path", "all messages"):
            self.assertIn(word, out.replace("other members of a collective", "all messages"))
        self.assertNotIn("<", out)

    def test_two_files_of_a_kind_are_compared(self) -> None:
        first = write_trace(self.folder / "first", rounds([10_000] * 4))
        second = write_trace(self.folder / "second", rounds([20_000] * 4))
        text = self.page(first, second)
        page = self.check(text)
        self.assertEqual(page.ids, ["times", "parts", "causes", "latencies"])
        words = " ".join(page.words)
        self.assertIn("first and second compared", words)
        self.assertIn("100 % to 100 % more", words)
        results = [
            write_json(
                self.folder / name, {"records": [{**RESULT, "seconds": {"median": m, "min": m - 1, "max": m + 1}}]}
            )
            for name, m in (("a", 2), ("b", 8))
        ]
        self.assertIn("4 (2.33 to 9)", self.page(*results))


if __name__ == "__main__":
    unittest.main()
