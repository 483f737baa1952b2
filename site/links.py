#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""links.py FOLDER: every link, picture and script of the HTML pages in FOLDER names a file of the folder, every anchor
an element of its page, and no page loads anything from another host. Bad ones are named, and end it with status 1.
"""

from __future__ import annotations

import os
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []  # a reader may follow
        self.loads: list[str] = []  # the browser fetches
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for name in ("id", "name"):
            if given.get(name):
                self.ids.add(str(given[name]))
        if tag == "a" and given.get("href"):
            self.links.append(str(given["href"]))
        elif tag == "link" and given.get("href") and given.get("rel") != "canonical":
            self.loads.append(str(given["href"]))
        elif tag in ("img", "script", "source", "iframe") and given.get("src"):
            self.loads.append(str(given["src"]))


def bad_links(folder: Path) -> list[str]:
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    bad: list[str] = []
    if not pages:
        return [f"{folder}: no page"]
    for path, page in pages.items():
        name = path.relative_to(folder)
        if str(name) == "404.html":
            continue  # its links begin with the address of the site
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    bad.append(f"{name}: loads {link}")
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            anchor = unquote(parts.fragment)
            if not target.is_file():
                bad.append(f"{name}: nothing at {link}")
            elif anchor and target in pages and anchor not in pages[target].ids:
                bad.append(f"{name}: no anchor for {link}")
    return bad


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    bad = bad_links(Path(argv[0]).resolve())
    print("\n".join(bad), end="\n" if bad else "", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
