# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the API, from the headers that <headway/headway.hpp> includes.

Public are the names of namespace headway, and those of namespace headway::halo in the headers that headway.hpp itself
includes. A page has one layer.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

from headers import Declaration, _without_template, public_headers, scan

WIDTH = 100


class Reference:
    def __init__(self, top: Path) -> None:
        source = top / "src"
        self.direct = set(re.findall(r"<(headway/[^>]+)>", (source / "headway/headway.hpp").read_text()))
        self.comments: dict[str, str] = {}  # of headers
        self.public: list[Declaration] = []
        self.classes: dict[str, Declaration] = {}  # of every namespace, by name
        for header in public_headers(source):
            self.comments[header], found = scan(source, header)
            for one in found:
                if one.kind == "class" and not one.is_forward:
                    self.classes.setdefault(one.name, one)
                if self._is_public(one):
                    self.public.append(one)

    def _is_public(self, one: Declaration) -> bool:
        of_halo = one.namespace == "headway::halo" and one.header in self.direct
        is_part = "::" in one.name or (one.kind == "class" and re.search(re.escape(one.name) + r"<.*>::\w+", one.text))
        if one.is_forward or is_part or not (one.namespace == "headway" or of_halo):
            return False
        return not re.search(r"[\w>]::~?" + re.escape(one.name) + r"[( ]", one.text.split("(")[0] + "(")

    def names(self) -> set[str]:
        """All names that the pages explain."""
        return {one.name for one in self.public}

    def pages(self) -> dict[str, str]:
        """The Markdown of each layer's page, by layer, lowest layer first."""
        pages: dict[str, list[str]] = {}
        header = ""
        for one in self.public:
            layer = one.header.split("/")[1]
            lines = pages.setdefault(layer, [
                f"# {layer}\n",
                f"Public names of the layer [{layer}](../src/headway/{layer}/README.md), from its headers.\n",
            ])
            if one.header != header:
                header = one.header
                lines.append(f"## {header.removeprefix('headway/')}\n")
                lines.append(f"[`<{header}>`](../src/{header})\n")
                lines.append(prose(self.comments[header]) + "\n")
            lines += self._section(one, 3)
        return {layer: "\n".join(lines) for layer, lines in pages.items()}

    def _section(self, one: Declaration, level: int) -> list[str]:
        if one.kind not in ("class", "enum"):
            return self._members([one])
        text = one.text.rstrip(";")
        body = "{ ... };" if one.kind == "class" else "{" + one.body.rstrip() + "\n};"
        lines = [f"{'#' * level} {one.name}\n", code(f"{text} {body}"), prose(one.doc)]
        lines += self._members(self._all_members(one))
        return lines

    def _all_members(self, one: Declaration) -> list[Declaration]:
        """Its public members, those that `using` makes public, and those of bases that no page explains."""
        members: list[Declaration] = []
        for member in one.members:
            if member.is_protected:
                continue
            if member.kind == "using":
                for base, name in re.findall(r"(\w+)::(\w+)", member.name):
                    of_base = self.classes.get(base)
                    members += [m for m in of_base.members if m.name == name] if of_base else []
            else:
                members.append(member)
        head = _without_template(one.text)
        for base in re.findall(r"public (?:\w+::)*(\w+)", head.partition(" : ")[2]):
            of_base = self.classes.get(base)
            if of_base is not None and of_base.namespace != "headway":
                members += [m for m in self._all_members(of_base)
                            if m.kind == "function" and m.name.lstrip("~") != base and m.name != "operator="]
        return members

    def _members(self, members: list[Declaration]) -> list[str]:
        lines: list[str] = []
        bare: list[str] = []
        for member in members:
            if member.kind == "class" and (member.members or member.doc):
                lines += [code(*bare)] if bare else []
                bare = []
                if not member.is_forward:
                    lines += self._section(member, 4)
                continue
            is_noise = "= delete" in member.text or member.doc.startswith("A compile error")
            if is_noise or (not member.doc and (member.kind in ("alias", "class") or member.name.startswith("~"))):
                continue
            if member.doc and bare:
                lines.append(code(*bare))
                bare = []
            text = member.text
            if member.kind == "enum":
                text = text + " {" + member.body.rstrip() + "\n};"
            if member.doc:
                lines += [code(text), prose(member.doc)]
            else:
                bare.append(text)
        return lines + ([code(*bare)] if bare else [])


def code(*declarations: str) -> str:
    return "```cpp\n" + "\n".join(map(laid_out, declarations)) + "\n```\n"


def laid_out(text: str) -> str:
    """`template <...>` on a line of its own, and parameters below each other where they are too long for one line."""
    rest = text if "\n" in text else _without_template(text)
    template = text[: len(text) - len(rest)].strip() if text.endswith(rest) else ""
    if not template:
        rest = text
    if len(rest) > WIDTH and "\n" not in rest and "(" in rest:
        depth, parts, begin = 0, [], 0
        opening = rest.index("(") + 1
        for at in range(opening, len(rest)):
            depth += (rest[at] in "([{<") - (rest[at] in ")]}" or (rest[at] == ">" and rest[at - 1] != "-"))
            if depth < 0:
                break
            if rest[at] == "," and depth == 0:
                parts.append(rest[opening + begin : at + 1].strip())
                begin = at + 1 - opening
        parts.append(rest[opening + begin :].strip())
        rest = rest[:opening] + "\n    " + "\n    ".join(parts)
    return (template + "\n" if template else "") + rest


def prose(doc: str) -> str:
    """A comment as Markdown: lines indented by four or more are code, and other text is only text."""
    out: list[str] = []
    in_code = False
    for line in doc.split("\n"):
        is_code = line.startswith("    ") and (in_code or not out or out[-1] == "")
        if is_code != in_code and (is_code or line.strip()):
            out.append("```cpp" if is_code else "```")
            in_code = is_code
        if in_code:
            out.append(line[4:])
        else:
            parts = re.split(r"(`[^`]*`)", line)
            out.append("".join(part if part.startswith("`") else escaped(part) for part in parts))
    if in_code:
        out.append("```")
    for at in range(len(out) - 1, 0, -1):  # no empty line at the end of code
        if out[at] == "```" and out[at - 1] == "":
            out[at - 1 : at + 1] = ["```", ""]
    return "\n".join(out) + "\n"


def escaped(text: str) -> str:
    return re.sub(r"([\\*_\[\]])", r"\\\1", html.escape(text, quote=False))
