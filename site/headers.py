# SPDX-License-Identifier: BSD-3-Clause
"""Declarations of C++ headers with their `///` comments.

It reads the subset of C++ in which clang-format writes the headers of this repository: a brace after a blank opens a
body, a brace after a name is an initialiser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

OPEN, CLOSE = "([{", ")]}"
LITERAL = re.compile(r"""R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\])*"|(?<!\w)'(?:\\.|[^'\\])+'|//[^\n]*|/\*.*?\*/""", re.S)


class HeaderError(Exception):
    """A header that this scanner cannot read; the text names file and line."""


@dataclass
class Declaration:
    """One declaration, without its body. `members` are those of a class, without private ones."""

    text: str  # on one line
    doc: str  # the `///` lines, or the comment on the same line
    header: str  # as it is included
    kind: str  # class, function, alias, enum, variable, using
    name: str
    namespace: str
    members: list["Declaration"] = field(default_factory=list)
    body: str = ""  # of an enum
    is_protected: bool = False

    @property
    def is_forward(self) -> bool:
        """A declared class without members: the definition is elsewhere."""
        return self.kind == "class" and self.text.endswith(";")


def public_headers(source: Path, first: str = "headway/headway.hpp") -> list[str]:
    """The headers that `first` includes, and those that these include, lowest first."""
    order: list[str] = []
    seen: set[str] = set()  # some headers include each other

    def visit(header: str) -> None:
        if header in seen:
            return
        seen.add(header)
        for included in re.findall(r"^#include <(headway/[^>]+)>", (source / header).read_text(), re.M):
            visit(included)
        order.append(header)

    visit(first)
    return order


def scan(source: Path, header: str) -> tuple[str, list[Declaration]]:
    """The comment at the top of a header, and the declarations in namespaces that begin with headway."""
    scanner = _Scanner((source / header).read_text(), header)
    return scanner.top_comment(), scanner.scope(len(scanner.text), "", is_class=False, access="public")


def _without_template(text: str) -> str:
    """The declaration after `template <...>`."""
    while match := re.match(r"template <", text):
        depth, at = 1, match.end()
        while depth:
            depth += {"<": 1, ">": -1}.get(text[at], 0)
            at += 1
        text = text[at:].lstrip()
        if text.startswith("requires(") or text.startswith("requires ("):
            depth = at = 0
            while depth or ")" not in text[:at]:
                depth += {"(": 1, ")": -1}.get(text[at], 0)
                at += 1
            text = text[at:].lstrip()
        elif match := re.match(r"requires [\w:]+<", text):
            depth, at = 1, match.end()
            while depth:
                depth += {"<": 1, ">": -1}.get(text[at], 0)
                at += 1
            text = text[at:].lstrip()
    return re.sub(r"^(\[\[\w+\]\] |inline |__attribute__\(\(\w+\)\) )+", "", text)


def _outside_brackets(text: str) -> str:
    """The text with empty brackets."""
    kept, depth = [], 0
    for char in text:
        depth -= char in CLOSE
        if depth == 0:
            kept.append(char)
        depth += char in OPEN
    return "".join(kept)


class _Scanner:
    def __init__(self, text: str, header: str) -> None:
        self.text, self.header, self.at = text, header, 0

    def fail(self, why: str) -> HeaderError:
        return HeaderError(f"{self.header}:{self.text.count(chr(10), 0, self.at) + 1}: {why}")

    def top_comment(self) -> str:
        lines = []
        for line in self.text.split("\n")[1:]:
            if not line.startswith("///"):
                break
            lines.append(line[4:])
        return "\n".join(lines)

    def skip_literal(self) -> bool:
        """Passes a string, a character or a comment that begins here."""
        if self.text[self.at] not in "/R\"'":
            return False
        if match := LITERAL.match(self.text, self.at):
            self.at = match.end()
        return match is not None

    def balanced(self) -> None:
        """Passes from an opening bracket to behind the closing one."""
        begin, depth = self.at, 0
        while self.at < len(self.text):
            if self.skip_literal():
                continue
            char = self.text[self.at]
            depth += (char in OPEN) - (char in CLOSE)
            self.at += 1
            if depth == 0:
                return
        self.at = begin
        raise self.fail("a bracket is not closed")

    def scope(self, end: int, namespace: str, is_class: bool, access: str) -> list[Declaration]:
        found: list[Declaration] = []
        doc: list[str] = []
        while True:
            while self.at < end and self.text[self.at] in " \t\n;":
                if self.text.startswith("\n\n", self.at):
                    doc = []  # of nothing in particular
                self.at += 1
            if self.at >= end:
                return found
            line_end = self.text.find("\n", self.at)
            line = self.text[self.at : line_end if line_end >= 0 else end]
            if line.startswith("///"):
                doc.append(line[4:])
                self.at += len(line)
            elif line.startswith("//"):
                self.at += len(line)
            elif line.startswith("#"):
                while line.endswith("\\"):
                    self.at += len(line) + 1
                    line = self.text[self.at : self.text.find("\n", self.at)]
                self.at += len(line)
            elif match := re.match(r"(public|private|protected):", line):
                access, doc = match[1], []
                self.at += match.end()
            elif match := re.match(r"(?:inline )?namespace ?([\w:]*) \{", line):
                inner = "::".join(filter(None, (namespace, match[1] or "(unnamed)")))
                self.at += match.end()
                inner_end = self.end_of_body()
                found += self.scope(inner_end, inner, is_class=False, access="public")
                self.at = inner_end + 1
                doc = []
            else:
                one = self.declaration("\n".join(doc), namespace, is_class)
                doc = []
                if access != "private" and one is not None:
                    one.is_protected = access == "protected"
                    found.append(one)

    def end_of_body(self) -> int:
        """Where the body ends that has begun before here."""
        begin = self.at
        self.at -= 1
        self.balanced()
        end, self.at = self.at - 1, begin
        return end

    def declaration(self, doc: str, namespace: str, is_class: bool) -> Declaration | None:
        begin = self.at
        kind = "other"
        members: list[Declaration] = []
        text = body = ""
        while True:
            if self.at >= len(self.text):
                self.at = begin
                raise self.fail("a declaration does not end")
            if self.skip_literal():
                continue
            char = self.text[self.at]
            if char == ";":
                text = self.text[begin : self.at + 1]
                self.at += 1
                break
            if char != "{":
                if char in "([":
                    self.balanced()
                elif char in CLOSE:
                    raise self.fail(f"a '{char}' without its opening bracket")
                else:
                    self.at += 1
                continue
            head = _without_template(self._clean(self.text[begin : self.at]))
            is_type = re.match(r"(class|struct|union|enum)\b", head)
            initialises = self.text[self.at - 1] not in " \n" or re.search(r"(?<![=!<>])=$", head.split("operator")[0])
            if not is_type and (initialises or self._has_value(head)):
                self.balanced()
                continue
            text = self.text[begin : self.at].rstrip()
            self.at += 1
            end = self.end_of_body()
            if is_type and is_type[1] == "enum":
                kind, body = "enum", self.text[self.at : end]
            elif is_type:
                inner = (namespace + "::" if namespace else "") + self._type_name(head)
                members = self.scope(end, inner, True, "private" if is_type[1] == "class" else "public")
                kind = "class"
            else:
                text = self._without_initialisers(text) + ";"
            self.at = end + 1
            break
        after = re.compile(r"[ ;]*//(?!/) ?([^\n]*(?:\n +// [^\n]*)*)").match(self.text, self.at)
        if after and not doc:
            doc = re.sub(r"\n +// ", " ", after[1])
        text = self._clean(text)
        head = _without_template(text)
        if head.startswith(("friend ", "static_assert", "extern template", "template ", "requires ")):
            return None
        kind, name = self._kind_and_name(head, kind)
        return Declaration(text, doc, self.header, kind, name, namespace, members, body)

    @staticmethod
    def _has_value(head: str) -> bool:
        """A variable or alias that takes a value, perhaps a lambda or a requires expression."""
        flat = _outside_brackets(head)
        return "operator" not in flat and bool(re.search(r"[\w>\]] = ", flat))

    @staticmethod
    def _clean(text: str) -> str:
        text = re.sub(r"//[^\n]*", "", text)
        return re.sub(r"\s+", " ", text).strip()

    @staticmethod
    def _without_initialisers(text: str) -> str:
        """A constructor without `: a(b), c(d)`."""
        depth = 0
        for at, char in enumerate(text):
            depth += (char in OPEN) - (char in CLOSE)
            if depth == 0 and char == ":" and text[at - 1] in " \n" and text[at + 1] in " \n":
                return text[:at].rstrip()
        return text

    @staticmethod
    def _type_name(head: str) -> str:
        head = re.sub(r"\[\[[^\]]*\]\] ?|__attribute__\(\([^)]*\)\)+ ?|alignas\([^)]*\) ?", "", head)
        match = re.match(r"(?:class|struct|union|enum(?: class)?) ?((?:\w+::)*\w*)", head)
        return match[1] if match else ""

    def _kind_and_name(self, head: str, kind: str) -> tuple[str, str]:
        if kind in ("class", "enum") or re.match(r"(class|struct|union|enum)\b[^()]*;$", head):
            return ("enum" if head.startswith("enum") else "class"), self._type_name(head)
        if head.startswith("using "):
            match = re.match(r"using (\w+) = ", head)
            return ("alias", match[1]) if match else ("using", head[6:-1])
        if match := re.match(r"concept (\w+)", head):
            return "alias", match[1]
        if match := re.search(r"(operator ?(?:\(\)|\[\]|\"\"\w+|co_await|[^\s(]+|\w+))\(", head):
            return "function", match[1]
        flat = re.sub(r"\b(decltype|alignas|requires|explicit|noexcept) ?\((?:[^()]|\([^()]*\))*\)", "", head)
        if match := re.match(r"[^()]*\([\w:]*\*(\w+)\)\(", flat):
            return "variable", match[1]
        while re.search(r"<[^<>()]*>", flat):
            flat = re.sub(r"<[^<>()]*>", "", flat)
        value = flat.find(" = ")
        call = re.search(r"(~?\w+)\(", flat)
        if call and (value < 0 or call.start() < value):
            return "function", call[1]
        flat = flat[:value] + ";" if value > 0 else flat
        match = re.search(r"(\w+)(?:\[[^\]]*\]|\{.*\})*(?: = .*)?(?:, .*)?;$", flat)
        if not match:
            raise self.fail(f"no name in: {head[:80]}")
        return "variable", match[1]
