#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""build.py TOP FOLDER: makes the site of the repository TOP in FOLDER/site, by way of FOLDER/site-pages, and checks its
links. Needs mkdocs-material. Warnings of mkdocs and bad links end it with status 1.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import links
import pages
from headers import HeaderError
from notebooks import NotebookError

FIRST = {"Home": "README.md", "Quick start": "docs/quick-start.md", "Tour": "docs/tour.md"}


def sections_of_docs(site: pages.Site) -> dict[str, list[str]]:
    """The pages that docs/README.md lists, by its paragraphs, without those that precede all others."""
    sections: dict[str, list[str]] = {}
    title = "Documentation"
    for line in site.pages["docs/README.md"].split("\n"):
        if match := re.match(r"(?:## )?(\w[\w ]*?)(?:, lowest first)?(?::|$)", line):
            title = match[1]
        for _, link in pages.LINK.findall(line):
            page = link.partition("#")[0]
            if not page.endswith(".md"):
                continue
            path = str((Path("docs") / page)) if not page.startswith("../") else page.removeprefix("../")
            is_tutorial = title == "For users" and site.titles[path].startswith("Coming from")
            section = "Coming from other systems" if is_tutorial else title
            if path not in FIRST.values():
                sections.setdefault(section, []).append(path)
    return sections


def navigation(site: pages.Site) -> list[Any]:
    nav: list[Any] = [{title: path} for title, path in FIRST.items()]
    sections = sections_of_docs(site)
    nav.append({"API": ["reference/README.md", *(path for path in site.pages if re.match(r"reference/[a-z]", path))]})
    listed = {path for paths in sections.values() for path in paths} | set(FIRST.values())
    for title, paths in sections.items():
        entries: list[Any] = [{site.titles[path]: path} for path in dict.fromkeys(paths)]
        if title == "For users":
            entries.insert(0, "docs/README.md")
        nav.append({title: entries})
    listed.add("docs/README.md")
    rest = [path for path in pages.repository_pages(site.top) if path not in listed]
    nav.append({"More": [{site.titles[path]: path} for path in rest]})
    return nav


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    top, folder = Path(argv[0]).resolve(), Path(argv[1]).resolve()
    try:
        site = pages.collect(top, folder / "site-pages")
    except (HeaderError, NotebookError) as error:
        print(error, file=sys.stderr)
        return 1
    if site.errors:
        print("\n".join(site.errors), file=sys.stderr)
        return 1
    site.write()
    settings = (Path(__file__).parent / "mkdocs.yml").read_text()
    added = {"docs_dir": str(site.out), "site_dir": str(folder / "site"), "nav": navigation(site)}
    config = folder / "mkdocs.yml"
    config.write_text(settings + "".join(f"{name}: {json.dumps(value)}\n" for name, value in added.items()))
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--clean", "-f", str(config)]
    if subprocess.run(command, check=False).returncode != 0:
        return 1
    return links.main([added["site_dir"]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
