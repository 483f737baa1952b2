# SPDX-License-Identifier: BSD-3-Clause
"""Files are told apart by their content, and bad ones are refused in one line."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import tempfile
import unittest
from pathlib import Path

from made_run import HEADER_BYTES, counts, header, rounds, write_json, write_trace

from headway_report.command import main
from headway_report.inputs import read_input
from headway_report.trace_file import open_folder, read_records

RESULT = {"bench": "stream", "mode": "1d", "transport": "local", "pes": 2, "seconds": {"median": 1, "min": 1, "max": 2}}


def run_main(*arguments: object) -> tuple[int, str, str]:
    """Status, standard output and standard error of the command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(one) for one in arguments])
    return status, out.getvalue(), err.getvalue()


class Inputs(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def refused(self, path: Path, *words: str) -> None:
        status, _, error = run_main(path, "--text")
        self.assertEqual(status, 2, error)
        self.assertEqual(error.count("\n"), 1, error)
        for word in (str(path), *words):
            self.assertIn(word, error)

    def test_files_are_told_apart_by_their_content(self) -> None:
        kinds = {
            "counts": counts(),
            "result": {"headway": "1", "records": [RESULT]},
            "probe": {"records": [{"bench": "probe", "o_send_ns": {"value": 1, "low": 0, "high": 2}}]},
            "sensitivity": {"records": [{"dial": "o", "dialled_us": 1, "slowdown": {"median": 2}}]},
            "predict": {"records": [{"bench": "predict", "kind": "dial"}]},
            "slopes": {"slopes": [{"parameter": "o", "slope": 1}], "path": {}},
        }
        for kind, value in kinds.items():
            self.assertEqual(read_input(write_json(self.folder / "file", value)).kind, kind)
        self.assertEqual(read_input(write_json(self.folder / "file", RESULT)).kind, "result")
        self.assertEqual(read_input(write_trace(self.folder / "trace", rounds([10, 10]))).kind, "trace")

    def test_bad_json_is_refused_in_one_line(self) -> None:
        path = self.folder / "file"
        self.refused(path, "No such file")
        for text, word in (
            ("", "empty"),
            ("{", "no JSON"),
            ("[1]", "no object"),
            ("{}", "'per_pe'"),
            ("[" * 9999, "JSON"),
            ('{"records": []}', "empty"),
            ('{"records": [1]}', "no objects"),
            ('{"records": [{"a": 1}]}', "no times"),
            ('{"records": [{"pes": -1}]}', "'pes' of record 0"),
            ('{"records": [{"seconds": {"median": 1}}]}', "median, min and max"),
            ('{"slopes": [1], "path": {}}', "slope"),
        ):
            path.write_text(text, encoding="utf-8")
            self.refused(path, word)
        path.write_bytes(b"\xff\xfe\x00\x01")
        self.refused(path, "no JSON")

    def test_bad_counts_are_refused_in_one_line(self) -> None:
        path = self.folder / "counts"
        for change, word in (
            ({"pes": 3}, "4 PEs in a run of 3"),
            ({"pes": "4"}, "'pes' is '4'"),
            ({"pes": 0}, "from 1"),
            ({"per_pe": 1}, "no list"),
        ):
            self.refused(write_json(path, {**counts(), **change}), word)
        for change, word in (
            ({"run_ns": -1}, "'run_ns' of PE 0 is -1"),
            ({"messages": "x"}, "'messages'"),
            ({"times_ns": {"program": 1}}, "times_ns of PE 0"),
            ({"phases": [{}]}, "phase of PE 0"),
        ):
            self.refused(write_json(path, counts(**change)), word)
        value = counts()
        del value["per_pe"][2]["waiting_ns"]
        self.refused(write_json(path, value), "PE 2 have no 'waiting_ns'")

    def test_bad_traces_are_refused_in_one_line(self) -> None:
        folder = self.folder / "trace"
        folder.mkdir()
        self.refused(folder, "no file pe-N.trace")
        pes = rounds([1000, 1000])
        write_trace(folder, pes)
        good = (folder / "pe-1.trace").read_bytes()
        self.refused(folder / "pe-1.trace", "name its folder")
        cases = [
            (b"x" + good[1:], "does not begin as a trace"),
            (good[:100], "cut off in its header"),
            (good[:-1], "cut off"),
            (header(pes[0], 2, 0, 1), "names PE 0"),
            (header(pes[1], 1, 0, 1), "PE 1 of 1"),
            (header(pes[1], 2, 0, 1, version=7), "version is 7"),
            (header(pes[1], 2, 0, 1, costs=(-1.0, 0.0, 0.0)), "cost"),
            (good[:20] + struct.pack("<I", 1 << 30) + good[24:], "header has 1073741824 bytes"),
            (good[:24] + struct.pack("<I", 31) + good[28:], "31 bytes"),
            (good[:180] + struct.pack("<I", 1000) + good[184:], "1000 names"),
            (good[: HEADER_BYTES + 32] + struct.pack("<q", -5) + good[HEADER_BYTES + 40 :], "record 1", "-5 ns"),
            (good[: HEADER_BYTES + 32 + 24] + struct.pack("<H", 9) + good[HEADER_BYTES + 32 + 26 :], "PE 9 of 2"),
        ]
        for data, *words in cases:
            (folder / "pe-1.trace").write_bytes(data)
            status, _, error = run_main(folder, "--text")
            self.assertEqual((status, error.count("\n")), (2, 1), (words, error))
            for word in ("pe-1.trace", *words):
                self.assertIn(word, error)
        (folder / "pe-1.trace").write_bytes(good)
        (folder / "trace.json").write_text("{", encoding="utf-8")
        self.assertIn("trace.json: it is no JSON", run_main(folder, "--text")[2])
        (folder / "trace.json").unlink()
        (folder / "pe-0.trace").unlink()
        self.refused(folder, "pe-0.trace is missing")

    def test_a_ring_keeps_the_newest_records(self) -> None:
        pes = rounds([1000, 1000])
        every = len(pes[0].records)
        folder = open_folder(write_trace(self.folder / "trace", pes, room=10))
        self.assertEqual(folder.headers[0].lost, every - 10)
        records = read_records(folder, 0)
        last = [struct.unpack_from("<q", record)[0] for record in pes[0].records[-9:]]
        self.assertEqual(records.time, last)  # not the oldest, which may be torn
        status, out, _ = run_main(folder.path, "--text")
        self.assertEqual(status, 0)
        self.assertIn("lost", out)

    def test_arguments_are_checked(self) -> None:
        path = write_json(self.folder / "counts", counts())
        self.assertIn("'wait' is unknown; allowed are waits, balance", run_main(path, "--what", "wait")[2])
        error = run_main(path, path, path)[2]
        self.assertIn("allowed are 1, or 2 to compare", error)
        self.assertIn("cannot be written", run_main(path, "-o", self.folder / "no" / "page.html")[2])
        with self.assertRaises(SystemExit) as end, contextlib.redirect_stderr(io.StringIO()):
            main([])
        self.assertEqual(end.exception.code, 2)

    def test_damaged_files_never_end_in_a_traceback(self) -> None:
        """Each byte of the header and of some records, and each value of a JSON file, is damaged in turn."""
        folder = write_trace(self.folder / "trace", rounds([1000, 1000], steps=2))
        good = (folder / "pe-0.trace").read_bytes()
        for place in [*range(0, 184, 3), *range(HEADER_BYTES, len(good), 7)]:
            damaged = bytearray(good)
            damaged[place] ^= 0xFF
            (folder / "pe-0.trace").write_bytes(damaged)
            self.assertIn(run_main(folder, "--text")[0], (0, 2), f"byte {place}")
        text = json.dumps({"records": [RESULT]})
        for value in ("null", "-1", '"x"', "[]", "{}"):
            for key in ("seconds", "pes", "mode", "bench"):
                changed = json.loads(text)
                changed["records"][0][key] = json.loads(value)
                path = write_json(self.folder / "result", changed)
                self.assertIn(run_main(path, "--text")[0], (0, 2), f"{key} = {value}")


if __name__ == "__main__":
    unittest.main()
