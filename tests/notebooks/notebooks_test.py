# SPDX-License-Identifier: BSD-3-Clause
"""notebooks.py finds what is wrong in a notebook."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import notebooks  # noqa: E402


def notebook(*sources: str) -> dict:
    return {"cells": [{"cell_type": "code", "source": [source], "outputs": []} for source in sources]}


def verdict(text: str, outputs: list) -> tuple[int, str]:
    """Of a file, after an execution with these outputs."""
    errors = io.StringIO()
    execution = mock.patch.object(notebooks, "execute", return_value=outputs)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(errors), execution:
        file = Path(folder, "a.ipynb")
        file.write_text(text)
        return notebooks.main([str(file)]), errors.getvalue()


class Notebooks(unittest.TestCase):
    def test_an_exception_is_an_error_with_its_text(self) -> None:
        with self.assertRaisesRegex(notebooks.Failed, "ZeroDivisionError"):
            notebooks.execute(notebook("1 / 0"))

    def test_a_command_that_fails_is_an_error_with_its_output(self) -> None:
        with self.assertRaisesRegex(notebooks.Failed, "before the end(.|\n)*status 3"):
            notebooks.execute(notebook("!echo before the end; exit 3"))

    def test_outputs_and_metadata_that_differ_are_named(self) -> None:
        right = notebook("print('one')\nprint('two')", "%%writefile a.txt\n!x", "1 + 1")
        outputs = notebooks.execute(right)
        self.assertEqual([notebooks.text_of(one) for one in outputs], ["one\ntwo\n", "Writing a.txt\n", "2\n"])
        text = notebooks.stored(right, outputs)
        self.assertEqual(verdict(text, outputs), (0, ""))
        status, errors = verdict(text.replace('"two\\n"', '"too\\n"'), outputs)
        self.assertEqual(status, 1)
        self.assertIn("-too\n+two\n", errors)
        for change in ({"metadata": {"time": 1}}, {"nbformat_minor": 4}):
            status, errors = verdict(json.dumps(json.loads(text) | change, indent=1, sort_keys=True) + "\n", outputs)
            self.assertEqual(status, 1)
            self.assertIn("more than text and outputs", errors)


if __name__ == "__main__":
    unittest.main()
