#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""pages.py TOP FOLDER: writes the pages of the site to FOLDER: every Markdown page and notebook of the repository TOP
in its place, the pages of the API, and a page for each source that a page links to. mkdocs makes the site from them
(build.py).

Pages keep their paths, so that links between them need no change. Bad links are named, and end it with status 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from headers import HeaderError
from notebooks import NotebookError, page_of
from reference import Reference

LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".h": "c", ".c": "c", ".f90": "fortran", ".py": "python", ".sh": "bash",
             ".cmake": "cmake", ".yaml": "yaml", ".yml": "yaml", ".cff": "yaml"}
ASSETS = (".svg", ".png", ".json")
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")


@dataclass
class Site:
    """Paths are relative to the top of the repository."""

    top: Path
    out: Path
    pages: dict[str, str] = field(default_factory=dict)  # Markdown by path
    sources: set[str] = field(default_factory=set)  # that have a page of their own
    assets: set[str] = field(default_factory=set)
    titles: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def resolve(self, page: str, link: str) -> str:
        """The link as it is in the site. Collects the sources, folders and pictures that the site needs for it."""
        if re.match(r"[a-z][a-z0-9+.-]*:", link) or link.startswith("#"):
            return link
        path, hash_sign, anchor = link.partition("#")
        target = os.path.normpath(PurePosixPath(page).parent / path)
        here = self.top / target
        if target in self.pages:
            return link
        if target in self.assets and target.endswith(".ipynb"):
            return f"{path.removesuffix('.ipynb')}.md{hash_sign}{anchor}"
        if target.startswith("..") or not here.exists() or target.startswith("build"):
            self.errors.append(f"{page}: nothing at {link}")
            return link
        if here.is_dir():
            folder_page = f"{target}/README.md"
            if folder_page not in self.pages:
                self.pages[folder_page] = self.folder_page(target)
            return f"{path.rstrip('/')}/README.md{hash_sign}{anchor}"
        if here.suffix in ASSETS:
            self.assets.add(target)
            return link
        self.sources.add(target)
        return f"{path}.md{hash_sign}{anchor}"

    def folder_page(self, folder: str) -> str:
        """A page for a folder without one."""
        rows = [f"# {folder}\n"]
        for entry in sorted((self.top / folder).iterdir()):
            if not entry.name.startswith((".", "__")):
                rows.append(f"- [{entry.name}]({entry.name})")
        return "\n".join(rows) + "\n"

    def source_page(self, source: str) -> str:
        text = (self.top / source).read_text()
        language = LANGUAGES.get(Path(source).suffix, "bash" if text.startswith("#!") else "text")
        return f"# {source}\n\n``````{language}\n{text}\n``````\n"

    def adapted(self, page: str, text: str) -> str:
        """A page of the repository as mkdocs reads it."""
        out: list[str] = []
        fence = ""
        for line in text.split("\n"):
            if match := re.match(r" *(```+|~~~+)", line):
                if not fence:
                    fence = match[1]
                elif line.strip() == fence:
                    fence = ""
                out.append(line)
                continue
            if fence:
                out.append(line)
                continue
            parts = re.split(r"(`+[^`]*`+)", line)
            # A link may have code in its text: hide the code while links are looked for.
            codes = parts[1::2]
            plain = "".join(part if i % 2 == 0 else f"\x00{i // 2}\x00" for i, part in enumerate(parts))
            plain = LINK.sub(lambda match: f"{match[1]}({self.resolve(page, match[2])})", plain)
            plain = re.sub(r"<(table|tr)>", r'<\1 markdown="block">', plain)
            plain = re.sub(r"<(td|th)( [^>]*)?>", r'<\1\2 markdown="block">', plain)
            line = re.sub("\x00(\\d+)\x00", lambda match: codes[int(match[1])], plain)
            # GitHub begins a list without an empty line before it.
            is_item = re.match(r"([-*]|\d+\.) ", line)
            if is_item and out and out[-1].strip() and not re.match(r"([-*]|\d+\.) |  ", out[-1]):
                out.append("")
            out.append(line)
        if fence:
            self.errors.append(f"{page}: code begins that does not end")
        return "\n".join(out)

    def write(self) -> None:
        shutil.rmtree(self.out, ignore_errors=True)
        for path, text in self.pages.items():
            title = re.search(r"^# (.+)", text, re.M)
            self.titles[path] = re.sub(r"[`*]", "", title[1]) if title else path
            target = self.out / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        for asset in self.assets:
            (self.out / asset).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.top / asset, self.out / asset)


def repository_pages(top: Path, pattern: str = "*.md") -> list[str]:
    """All Markdown pages: those that git knows or would add, or else all outside of build folders."""
    listed = subprocess.run(["git", "-C", str(top), "ls-files", "--cached", "--others", "--exclude-standard", pattern],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        found = listed.stdout.split("\n")
    else:
        found = [str(path.relative_to(top)) for path in top.rglob(pattern)]
    return sorted(page for page in found if page and not page.startswith("build/") and (top / page).is_file())


def collect(top: Path, out: Path) -> Site:
    """All pages, adapted, with their errors; nothing is written yet."""
    site = Site(top, out)
    originals = {page: (top / page).read_text() for page in repository_pages(top)}
    site.pages.update(originals)
    for notebook in repository_pages(top, "*.ipynb"):
        site.assets.add(notebook)
        site.pages[notebook.removesuffix(".ipynb") + ".md"] = page_of((top / notebook).read_text(), notebook)
    reference = Reference(top)
    for layer, text in reference.pages().items():
        site.pages[f"reference/{layer}.md"] = text
    site.pages["reference/README.md"] = "\n".join([
        "# API\n",
        "Public names, from the comments of the headers. `#include <headway/headway.hpp>` has all of them.\n",
        "| layer | names |",
        "| --- | --- |",
        *(f"| [{layer}]({layer}.md) | {', '.join(f'`{name}`' for name in names)} |"
          for layer, names in names_by_layer(reference).items()),
    ]) + "\n"
    done: set[str] = set()
    while todo := [page for page in site.pages if page not in done]:  # folders come along
        for page in todo:
            done.add(page)
            site.pages[page] = site.adapted(page, site.pages[page])
    for source in sorted(site.sources):
        site.pages[f"{source}.md"] = site.source_page(source)
    check_anchors(site)
    return site


def names_by_layer(reference: Reference) -> dict[str, list[str]]:
    layers: dict[str, list[str]] = {}
    for one in reference.public:
        names = layers.setdefault(one.header.split("/")[1], [])
        if one.name not in names and not one.name.startswith("operator"):
            names.append(one.name)
    return layers


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def without_code(text: str) -> str:
    return re.sub(r"^ *(```+)[^\n]*\n.*?^ *\1 *$", "", text, flags=re.S | re.M)


def check_anchors(site: Site) -> None:
    """Each link with an anchor names a heading of its page."""
    anchors: dict[str, set[str]] = {}
    for page, text in site.pages.items():
        seen: set[str] = set()
        for heading in re.findall(r"^#+ (.+)$", without_code(text), re.M):
            base, number = slug(heading), 0
            while (anchor := base + (f"-{number}" if number else "")) in seen:
                number += 1
            seen.add(anchor)
        anchors[page] = seen
    for page, text in site.pages.items():
        if page.startswith("reference/") or page.removesuffix(".md") in site.sources:
            continue
        for _, link in LINK.findall(re.sub(r"`[^`\n]*`", "", without_code(text))):
            path, _, anchor = link.partition("#")
            if not anchor or re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue
            target = os.path.normpath(PurePosixPath(page).parent / path) if path else page
            if anchor not in anchors.get(target, set()):
                site.errors.append(f"{page}: {target} has no heading for #{anchor}")


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        site = collect(Path(argv[0]).resolve(), Path(argv[1]))
    except (HeaderError, NotebookError) as error:
        print(error, file=sys.stderr)
        return 1
    for error in site.errors:
        print(error, file=sys.stderr)
    if not site.errors:
        site.write()
    return 1 if site.errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
