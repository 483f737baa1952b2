#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""notebooks.py NOTEBOOK...: executes notebooks and compares the text of their outputs with the stored one. Differences,
exceptions and commands that fail are printed, and end it with status 1.

--write stores notebooks with the outputs of this execution, if nothing failed. PATH must have the command `headway`,
and Python must find the package `headway`, nbclient and ipykernel. Cells run in an empty folder.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat
from traitlets.config import Config

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
SECONDS_OF_A_CELL = 60
# A failed command of `!` is no error for a kernel.
CHECK = "if _exit_code: raise RuntimeError(f'the command ended with status {_exit_code}')"


class Failed(Exception):
    """A cell failed; the text has the cell and its outputs."""


def execute(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of each cell, without all that changes from one execution to the next."""
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        cells.append(nbformat.v4.new_code_cell(source))
        is_command = re.search(r"^!", source, re.M) and not source.startswith("%%")
        cells.append(nbformat.v4.new_code_cell(CHECK if is_command else ""))
    copy = nbformat.v4.new_notebook(cells=cells, metadata=METADATA)
    with tempfile.TemporaryDirectory(prefix="headway-") as folder:
        # Settings, history and kernels of the user stay out of it.
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            os.environ[name] = folder + "/jupyter"
        work = Path(folder, "work")
        work.mkdir()
        config = Config(KernelManager={"transport": "ipc", "ip": folder + "/kernel"})
        client = nbclient.NotebookClient(copy, config=config, timeout=SECONDS_OF_A_CELL, coalesce_streams=True,
                                         kernel_name="python3", resources={"metadata": {"path": str(work)}})
        try:
            client.execute()
        except nbclient.exceptions.CellExecutionError as error:
            raise Failed(re.sub(r"\x1b\[[0-9;]*m", "", f"{outputs_before(cells)}{error}")) from None
    return [[plain(output) for output in cell["outputs"]] for cell in cells[::2]]


def outputs_before(cells: list[dict[str, Any]]) -> str:
    """What the last command printed."""
    done = [cell for cell in cells if cell["outputs"] and cell["source"] != CHECK]
    return text_of([plain(output) for output in done[-1]["outputs"]]) if done else ""


def plain(output: dict[str, Any]) -> dict[str, Any]:
    if output["output_type"] == "stream":
        return {"name": output["name"], "output_type": "stream", "text": lines(output["text"])}
    kept: dict[str, Any] = {"metadata": {}, "output_type": output["output_type"]}
    if output["output_type"] == "execute_result":
        kept["execution_count"] = None
    if "data" in output:
        kept["data"] = {"text/plain": lines(output["data"].get("text/plain", ""))}
    return kept


def lines(text: str) -> list[str]:
    """As notebooks store text; commands run in a terminal, where lines end in two characters."""
    return text.replace("\r\n", "\n").splitlines(keepends=True)


def text_of(outputs: list[dict[str, Any]]) -> str:
    texts = ["".join(one.get("text", one.get("data", {}).get("text/plain", ""))) for one in outputs]
    return "".join(text if text.endswith("\n") or not text else text + "\n" for text in texts)


def stored(notebook: dict[str, Any], outputs: list[list[dict[str, Any]]]) -> str:
    """The file of a notebook: with these outputs, and nothing of the machine that executed it."""
    cells: list[dict[str, Any]] = []
    code = iter(outputs)
    for number, cell in enumerate(notebook["cells"], 1):
        kept = {"cell_type": cell["cell_type"], "id": f"cell-{number}", "metadata": {},
                "source": lines("".join(cell["source"]).rstrip("\n"))}
        if cell["cell_type"] == "code":
            kept |= {"execution_count": None, "outputs": next(code)}
        cells.append(kept)
    whole = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def differences(notebook: dict[str, Any], outputs: list[list[dict[str, Any]]]) -> str:
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    found = ""
    for number, (cell, new) in enumerate(zip(code, outputs, strict=True), 1):
        old_text, new_text = text_of(cell["outputs"]), text_of(new)
        if old_text != new_text:
            found += "".join(difflib.unified_diff(old_text.splitlines(True), new_text.splitlines(True),
                                                  f"code cell {number}, stored", "this execution"))
    return found


def main(argv: list[str]) -> int:
    files = [Path(name) for name in argv if name != "--write"]
    if not files:
        print(__doc__, file=sys.stderr)
        return 2
    status = 0
    for file in files:
        notebook = json.loads(file.read_text())
        try:
            outputs = execute(notebook)
        except Failed as error:
            print(f"{file}: {error}", file=sys.stderr)
            status = 1
            continue
        if "--write" in argv:
            file.write_text(stored(notebook, outputs))
        elif found := differences(notebook, outputs):
            print(f"{file}: outputs differ; scripts/notebooks stores those of an execution\n{found}", file=sys.stderr)
            status = 1
        elif file.read_text() != stored(notebook, outputs):
            print(f"{file}: has more than text and outputs; scripts/notebooks writes it without", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
