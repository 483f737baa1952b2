# SPDX-License-Identifier: BSD-3-Clause
"""`headway report` of runs on the simulated network: planted causes are found, and healthy runs get no advice.

TEST_COMMAND is the headway command, TEST_PROGRAMS the folder of the programs."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

COMMAND = os.environ["TEST_COMMAND"]
PROGRAMS = Path(os.environ["TEST_PROGRAMS"])
STENCIL = ("stencil", "--way", "pes", "--side", "512", "--steps", "20")
TRIES = 4  # measured computation scatters on a busy machine


def call(*arguments: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(one) for one in arguments], capture_output=True, text=True, timeout=60, check=False, env=environment
    )


class Runs(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, pes: int, network: str, program: tuple[str, ...], *options: str) -> list[Path]:
        trace, counts = self.folder / "trace", self.folder / "counts.json"
        shutil.rmtree(trace, ignore_errors=True)
        trace.mkdir()
        ended = call(
            COMMAND,
            "run",
            "--transport",
            "sim",
            "-n",
            pes,
            *(["--sim", network] if network else []),
            *options,
            "--trace",
            trace,
            "--counts",
            counts,
            PROGRAMS / f"headway-{program[0]}",
            *program[1:],
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return [trace, counts]

    def advice(self, files: list[Path]) -> str:
        ended = call(COMMAND, "report", *files, "--text")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout.split("\nAdvice\n", 1)[1].split("\n\n", 1)[0]

    def test_a_planted_imbalance_is_found(self) -> None:
        found = self.advice(self.run_program(8, "slow=3:20", STENCIL))
        self.assertIn("Give PE 3 less work.", found)

    def test_a_planted_late_pe_is_found(self) -> None:
        """PE 5 stops for a time."""
        found = self.advice(self.run_program(8, "stop=5@100us+1ms", STENCIL))
        self.assertRegex(found, "Find out why PE 5 (is late|takes frames late)")

    def test_a_planted_slow_wire_is_found(self) -> None:
        for dial, name in (("L=100us", "L"), ("o=50us", "o"), ("G=100ns", "G")):
            found = self.advice(self.run_program(8, "", STENCIL, "--dial", dial))
            self.assertIn(f"network's {name} sets the run time", found)

    def end_by(self, signal_of_pe_1: signal.Signals) -> str:
        """The text of a run of which PE 1 got a signal when it had posted frames. PE 0 sends to it until it notices."""
        trace = self.folder / "trace"
        program = (PROGRAMS / "headway-randomaccess", "--log2", "26", "--updates-per-word", "1000")
        command = (COMMAND, "run", "-n", "2", "--stall", "1s", "--trace", trace, *program)
        with subprocess.Popen([str(one) for one in command], stderr=subprocess.PIPE, stdout=subprocess.PIPE) as run:
            until = time.monotonic() + 60
            pid = written = 0
            while written < 1000 and time.monotonic() < until and run.poll() is None:
                time.sleep(0.01)
                try:
                    head = (trace / "pe-1.trace").read_bytes()[:256]
                except FileNotFoundError:
                    continue
                if len(head) == 256:
                    (written,), (pid,) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<I", head, 92)
            self.assertGreaterEqual(written, 1000)
            os.kill(pid, signal_of_pe_1)
            run.communicate(timeout=60)
            self.assertNotEqual(run.returncode, 0)
        ended = call(COMMAND, "report", trace, "--text")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout

    def test_a_killed_run_leaves_a_trace_with_what_was_not_delivered(self) -> None:
        self.assertRegex(self.end_by(signal.SIGKILL), "did not come to its end(.|\n)*Find out why")

    def test_a_stalled_run_leaves_a_trace_with_what_was_not_delivered(self) -> None:
        text = self.end_by(signal.SIGSTOP)
        self.assertIn("Find out why PE 1 stopped.", text)
        self.assertRegex(text, r"Undelivered frames(.|\n)*\nPE 0 +PE 1 +")

    def test_healthy_runs_get_no_advice(self) -> None:
        healthy = (
            (2, STENCIL),
            (2, ("em3d", "--nodes", "4096", "--steps", "5", "--way", "get")),
            (2, ("randomaccess", "--log2", "17")),
        )
        for pes, program in healthy:
            found = ""
            for _ in range(TRIES):
                found = self.advice(self.run_program(pes, "compute=1", program))
                if "Nothing stands out" in found:
                    break
            self.assertIn("Nothing stands out", found, program)

    def test_pages_are_written_and_compared(self) -> None:
        files = self.run_program(4, "", STENCIL)
        first = [self.folder / f"first-{file.name}" for file in files]
        for file, kept in zip(files, first):
            file.rename(kept)
        second = self.run_program(4, "slow=1:5", STENCIL)
        page = self.folder / "page.html"
        ended = call(COMMAND, "report", *first, "-o", page)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn("</html>", page.read_text(encoding="utf-8"))
        ended = call(COMMAND, "report", *first, *second, "--text")
        self.assertIn("second over first", ended.stdout)

    def test_bad_files_end_with_2_and_one_line(self) -> None:
        ended = call(COMMAND, "report", self.folder / "none", "-o", self.folder / "page.html")
        self.assertEqual((ended.returncode, ended.stderr.count("\n")), (2, 1))
        self.assertIn("No such file", ended.stderr)

    def test_without_python3_one_line_says_what_to_install(self) -> None:
        ended = call(COMMAND, "report", "file", environment={**os.environ, "PATH": str(self.folder)})
        self.assertEqual(ended.returncode, 2)
        self.assertEqual(ended.stderr, "headway report: python3 is missing: install python3 and python3-jinja2\n")


if __name__ == "__main__":
    unittest.main()
