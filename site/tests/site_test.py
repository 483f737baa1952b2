# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the site that need Python alone."""

import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "site"))
import headers  # noqa: E402
import links  # noqa: E402
import notebooks  # noqa: E402
import pages  # noqa: E402
import reference  # noqa: E402


def scanned(text: str) -> list[headers.Declaration]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.hpp").write_text("// SPDX\n/// Top.\n#pragma once\n\nnamespace headway {\n" + text + "\n}\n")
        return headers.scan(Path(folder), "a.hpp")[1]


def tree(files: dict[str, str]) -> tuple[tempfile.TemporaryDirectory, Path]:
    folder = tempfile.TemporaryDirectory()
    top = Path(folder.name)
    files = {"src/headway/headway.hpp": "// SPDX\n#include <headway/am/pe.hpp>\n",
             "src/headway/am/pe.hpp": "// SPDX\n/// Top.\n#pragma once\nnamespace headway {\nclass Pe {};\n}\n",
             "src/headway/am/README.md": "# am\n", **files}
    for path, text in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    return folder, top


class Scanning(unittest.TestCase):
    def test_a_comment_belongs_to_the_declaration_below_it(self) -> None:
        one, two = scanned("/// Doc.\nint f(int a);\n\n/// Of nothing.\n\nint g();")
        self.assertEqual((one.name, one.doc), ("f", "Doc."))
        self.assertEqual((two.name, two.doc), ("g", ""))

    def test_bodies_and_initialisers_are_left_out(self) -> None:
        found = scanned(
            'class A {\n public:\n  A(int a, int b) : a_{a}, b_([x = 1] { return x; }()) {}\n'
            '  const char* text() const { return "};"; }\n  char brace() { return \'{\'; }\n'
            " protected:\n  int of_children();\n private:\n  int a_, b_;\n};\n"
            "inline constexpr auto f = [](int a) { return a; };")
        self.assertEqual([(d.name, d.kind) for d in found], [("A", "class"), ("f", "variable")])
        self.assertEqual([m.text for m in found[0].members],
                         ["A(int a, int b);", "const char* text() const;", "char brace();", "int of_children();"])
        self.assertEqual([m.is_protected for m in found[0].members], [False, False, False, True])

    def test_templates_and_constraints_are_kept(self) -> None:
        (one,) = scanned("template <class T = int>\nrequires(sizeof(T) > 1) T* f(T (*g)(int), T x = T()) { return 0; }")
        self.assertEqual((one.name, one.kind), ("f", "function"))
        self.assertTrue(one.text.startswith("template <class T = int> requires(sizeof(T) > 1) T* f("))

    def test_a_comment_on_the_line_of_a_field_explains_it(self) -> None:
        (one,) = scanned("struct A {\n  int a = 0;  // in bytes\n  int b = 0;\n};")
        self.assertEqual([m.doc for m in one.members], ["in bytes", ""])

    def test_a_header_that_ends_too_early_is_named_with_its_line(self) -> None:
        with self.assertRaisesRegex(headers.HeaderError, r"a\.hpp:\d+: "):
            scanned("class A {\n  int f(;\n};")


class OfThisRepository(unittest.TestCase):
    site = pages.collect(TOP, Path("unused"))
    reference = reference.Reference(TOP)

    def test_all_links_lead_somewhere(self) -> None:
        self.assertEqual(self.site.errors, [])

    def test_the_api_explains_each_name_that_pages_and_programs_use(self) -> None:
        used: dict[str, str] = {}
        for path in [TOP / "README.md", *(TOP / "docs").glob("*.md"), *(TOP / "tests/programs").glob("*.cpp")]:
            text = path.read_text()
            for block in [text] if path.suffix == ".cpp" else re.findall(r"```cpp\n(.*?)```", text, re.S):
                for name in re.findall(r"headway::(?:halo::)?(\w+)", block):
                    used.setdefault(name, path.name)
        namespaces = {d.namespace.split("::")[-1] for d in self.reference.classes.values()} | {"headway"}
        self.assertGreater(len(used), 40)
        missing = {name: page for name, page in used.items() if name not in self.reference.names() | namespaces}
        self.assertEqual(missing, {})

    def test_the_pages_of_the_api_have_the_comments(self) -> None:
        am, aggregate = self.site.pages["reference/am.md"], self.site.pages["reference/aggregate.md"]
        self.assertIn("std::uint64_t quiesce();", am)
        self.assertIn("Collective: posts all buffers", am)
        self.assertIn("void on(Handler handler", aggregate)  # by a using-declaration
        self.assertNotIn("write_batch", aggregate)  # is private

    def test_python_in_pages_is_valid(self) -> None:
        count = 0
        for page in [TOP / "README.md", *(TOP / "docs").glob("*.md")]:
            for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M):
                compile(block, page.name, "exec")
                count += 1
        self.assertGreater(count, 0)


class Pages(unittest.TestCase):
    def collected(self, files: dict[str, str]) -> pages.Site:
        folder, top = tree(files)
        with folder:
            return pages.collect(top, top / "out")

    def test_a_link_to_nothing_is_named(self) -> None:
        site = self.collected({"docs/a.md": "# A\n[x](b.md) [y](../src/none.cpp) [z](../../outside.md)\n"})
        dead = ("b.md", "../src/none.cpp", "../../outside.md")
        self.assertEqual(site.errors, [f"docs/a.md: nothing at {path}" for path in dead])

    def test_a_link_to_no_heading_is_named(self) -> None:
        site = self.collected({"docs/a.md": "# A\n[x](b.md#two) [y](b.md#one-or-two)\n",
                               "docs/b.md": "# B\n## One, or two\n"})
        self.assertEqual(site.errors, ["docs/a.md: docs/b.md has no heading for #two"])

    def test_links_in_code_are_text(self) -> None:
        site = self.collected({"docs/a.md": "# A\n`[](int a)` and\n```cpp\n[x](none.md)\n```\n"})
        self.assertEqual(site.errors, [])

    def test_sources_and_folders_get_pages(self) -> None:
        site = self.collected({"docs/a.md": "# A\n[x](../src/x.cpp) [y](../data) ![z](z.svg)\n", "docs/z.svg": "<svg/>",
                               "src/x.cpp": "int x;\n", "data/one.txt": "1\n"})
        self.assertEqual(site.errors, [])
        self.assertIn("[x](../src/x.cpp.md) [y](../data/README.md) ![z](z.svg)", site.pages["docs/a.md"])
        self.assertIn("int x;", site.pages["src/x.cpp.md"])
        self.assertIn("(one.txt.md)", site.pages["data/README.md"])
        self.assertIn("docs/z.svg", site.assets)

    def test_a_notebook_is_a_page_with_its_outputs(self) -> None:
        code = {"cell_type": "code", "source": ["!x\n", "!y"]}
        printed = {"output_type": "stream", "name": "stdout", "text": ["[1](no-link.md)\n"]}
        cells = [{"cell_type": "markdown", "source": ["# A\n", "Text [b](b.md) [c](../docs/c.ipynb#two)"]},
                 code | {"outputs": [printed, {"output_type": "execute_result", "data": {"text/plain": ["2"]}}]}]
        other = [{"cell_type": "markdown", "source": ["# C\n", "## Two\n", "[d](d.ipynb) [top](../README.md)"]}]
        files = {"README.md": "# Top\n[a](docs/a.ipynb)\n", "docs/a.ipynb": json.dumps({"cells": cells}),
                 "docs/b.md": "# B\n", "docs/c.ipynb": json.dumps({"cells": other})}
        site = self.collected(files)
        self.assertEqual(site.errors, ["docs/c.md: nothing at d.ipynb"])
        self.assertEqual(site.assets, {"docs/a.ipynb", "docs/c.ipynb"})
        self.assertIn("[a](docs/a.md)", site.pages["README.md"])
        self.assertIn("Text [b](b.md) [c](../docs/c.md#two)", site.pages["docs/a.md"])
        self.assertIn('bash\n!x\n!y\n', site.pages["docs/a.md"])
        self.assertIn('title="Output"\n[1](no-link.md)\n2\n', site.pages["docs/a.md"])
        self.assertIn('href="a.ipynb"', site.pages["docs/a.md"])

    def test_a_notebook_that_a_page_cannot_show_is_named(self) -> None:
        picture = [{"cell_type": "markdown", "source": ["# A"]},
                   {"cell_type": "code", "source": ["x"], "outputs": [{"output_type": "display_data", "data": {}}]}]
        for cells, text in ((picture, "no text"), (picture[1:], "no text"), ([], "title")):
            with self.assertRaisesRegex(notebooks.NotebookError, f"docs/a.ipynb: .*{text}"):
                self.collected({"docs/a.ipynb": json.dumps({"cells": cells})})

    def test_code_without_an_end_is_named(self) -> None:
        self.assertEqual(self.collected({"docs/a.md": "# A\n```cpp\nint x;\n"}).errors,
                         ["docs/a.md: code begins that does not end"])


class Links(unittest.TestCase):
    def test_bad_links_of_html_are_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            top = Path(folder)
            (top / "a.html").write_text('<h1 id="one"></h1><a href="b.html#two"></a><a href="b.html#none"></a>'
                                        '<a href="none.html"></a><script src="https://host/x.js"></script>')
            (top / "b.html").write_text('<h1 id="two"></h1><a href="a.html#one"></a><a href="https://host/"></a>')
            self.assertEqual(links.bad_links(top), ["a.html: no anchor for b.html#none", "a.html: nothing at none.html",
                                                    "a.html: loads https://host/x.js"])
            self.assertEqual(len(links.bad_links(top / "none")), 1)


if __name__ == "__main__":
    unittest.main()
