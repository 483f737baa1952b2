#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""programs.py TOP: runs the programs in Python of the pages of docs/ with 1 and 2 PEs, and verifies what they did:
lines added to their end compare their arrays with those that numpy makes of the items of all PEs. A program begins with
`import headway`. PATH must have the command `headway`, and Python must find the package."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKS = {
    "docs/quick-start.md": """
expected = np.zeros(1000, np.int64)
for sender in range(pe.size):
    rng = np.random.default_rng(sender)
    owners = rng.integers(0, pe.size, 1_000_000)
    expected += np.bincount(rng.integers(0, 1000, 1_000_000)[owners == pe.id], minlength=1000)
assert np.array_equal(table, expected)
""",
    "docs/python.md": """
by_index = np.zeros(n, np.int64)
by_message = np.zeros(n, np.int64)
for sender in range(pe.size):
    rng = np.random.default_rng(sender)
    by_index += np.bincount(rng.integers(0, n, 10_000_000), minlength=n)
    by_message += np.bincount(rng.integers(0, n, 10_000_000), minlength=n)
block = -(-n // pe.size)
assert np.array_equal(counts.local, by_index[pe.id * block:(pe.id + 1) * block])
own = by_message[pe.id::pe.size]
assert np.array_equal(table[:len(own)], own) and not table[len(own):].any()
""",
}


def failure(program: str, pes: int, folder: Path) -> str:
    """Why the program fails, or nothing. It prints a line for each PE."""
    script = folder / "script.py"
    script.write_text(program + "\nprint('verified', pe.id)\n")
    run = subprocess.run(["headway", "run", "-n", str(pes), str(script)], capture_output=True, text=True, cwd=folder,
                         timeout=100, check=False)
    verified = sorted(line for line in run.stdout.splitlines() if line.startswith("verified "))
    if run.returncode == 0 and verified == [f"verified {pe}" for pe in range(pes)]:
        return ""
    return f"status {run.returncode}\n{run.stdout}{run.stderr}"


def programs(top: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for page in sorted([top / "README.md", *(top / "docs").glob("*.md")]):
        for program in re.findall(r"^```python\n(import headway\n.*?)^```", page.read_text(), re.S | re.M):
            found.setdefault(str(page.relative_to(top)), []).append(program)
    return found


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    errors: list[str] = []
    found = programs(Path(argv[0]))
    if found.keys() != CHECKS.keys() or any(len(one) != 1 for one in found.values()):
        numbers = {page: len(one) for page, one in found.items()}
        errors.append(f"programs in Python by page: {numbers}; tests/notebooks/programs.py verifies one of each of "
                      + ", ".join(CHECKS))
    with tempfile.TemporaryDirectory(prefix="headway-") as folder:
        for page in CHECKS.keys() & found.keys():
            for pes in (1, 2):
                if failed := failure(found[page][0] + CHECKS[page], pes, Path(folder)):
                    errors.append(f"{page}: its program fails with {pes} PEs: {failed}")
        if not failure("import headway\npe = headway.init()\nassert pe.id != 0\n", 2, Path(folder)):
            errors.append("a program that fails is not found")
    for error in errors:
        print(error, file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
