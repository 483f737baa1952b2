# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the site from notebooks: cells with text as they are, code and outputs in blocks."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

FENCE = "``````"


class NotebookError(Exception):
    """A notebook has something that a page cannot show; the text has the path."""


def page_of(notebook: str, path: str) -> str:
    """The page, which begins with the title of the notebook and a link to it."""
    parts: list[str] = []
    for cell in json.loads(notebook)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            language = "bash" if source.startswith("!") else "python"
            parts.append(f"{FENCE}{language}\n{source}\n{FENCE}")
            output = "".join(text_of(one, path) for one in cell["outputs"])
            if output:
                parts.append(f'{FENCE}text title="Output"\n{output.rstrip()}\n{FENCE}')
    if not parts or not parts[0].startswith("# "):
        raise NotebookError(f"{path}: the first cell does not begin with a title, `# ...`")
    title, _, rest = parts[0].partition("\n")
    name = PurePosixPath(path).name
    link = f'This page is the notebook <a href="{name}" download>{name}</a>, with the outputs of an execution.'
    return "\n\n".join([title, link, rest.strip(), *parts[1:]]) + "\n"


def text_of(output: dict[str, Any], path: str) -> str:
    """With an end of line."""
    if output["output_type"] == "stream":
        text = "".join(output["text"])
    elif "text/plain" in output.get("data", {}):
        text = "".join(output["data"]["text/plain"])
    else:
        raise NotebookError(f"{path}: an output of type {output['output_type']} has no text")
    return text if text.endswith("\n") else text + "\n"
