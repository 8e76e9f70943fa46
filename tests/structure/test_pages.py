#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Tests of pages.py: each rule is broken by one file."""
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import pages

MAP = """# Contributing

| room | what it is for | may include |
|---|---|---|
| `base/` | parts | nothing |
| `io/` | files | the rooms above |
| `graph/` | models | the rooms above but `base/` |
| `graph/inner/` | more | |

## Walks

### From a to b

1. `base/a.hpp`: begins.
2. `io/b.hpp`: `ends`.

## Further

1. A list that is no walk.
"""
GLOSSARY = "| word | meaning | not |\n|---|---|---|\n| item | x | |\n| micro-batch, pass | y | small batch, stall |\n"


@mock.patch.multiple(pages.rules, ORDER=["base", "io", "graph"], APART={"graph": ["base"]})
@mock.patch.multiple(pages, WALKS=1, STOPS=2, README_WORDS=4, PAGE_WORDS=120)
class Pages(unittest.TestCase):
    def problems(self, files=None, without=()):
        all_files = {"README.md": "# Three words\n", "docs/README.md": "[a](contributing.md) [b](reference/glossary.md)\n", "docs/contributing.md": MAP,
                     "docs/reference/glossary.md": GLOSSARY, "include/pipe/base/a.hpp": "// small, batch\n", "include/pipe/io/b.hpp": "",
                     "include/pipe/graph/c.hpp": "", "include/pipe/graph/inner/d.hpp": ""} | (files or {})
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in all_files.items():
                if name not in without:
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text)
            return pages.check(root)

    def test_good_pages_have_no_problems(self):
        self.assertEqual([], self.problems())

    def test_pages_have_few_words(self):
        self.assertEqual(["README.md:1: 5 words; there are at most 4: a page for each task"], self.problems({"README.md": "a b ```\nc\n```"}))
        files = {"docs/README.md": "[a](contributing.md) [b](reference/glossary.md) [c](reference/errors.md) [d](d.md)", "docs/d.md": "word " * 121,
                 "docs/reference/errors.md": "word " * 121}
        self.assertEqual(["docs/d.md:1: 121 words; there are at most 120: a page for each task"], self.problems(files))

    def test_every_page_is_in_an_index(self):
        fault = "docs/more/c.md:1: no index links this page: docs/README.md, or one that it links"
        self.assertEqual([fault], self.problems({"docs/more/c.md": ""}))
        self.assertEqual([fault], self.problems({"docs/more/c.md": "", "docs/contributing.md": MAP + "[c](more/c.md)\n"}))  # which is no index
        linked = {"docs/more/c.md": "", "docs/README.md": "[a](contributing.md) [b](reference/glossary.md) [more](more)\n"}
        self.assertEqual([], self.problems(linked))
        self.assertEqual([fault], self.problems(linked | {"docs/more/README.md": "nothing"}))
        self.assertEqual([], self.problems(linked | {"docs/more/README.md": "[c](c.md)"}))

    def test_the_map_has_the_rooms(self):
        page = "docs/contributing.md"
        for line, changed, fault in (("| `io/` | files | the rooms above |\n", "", ":1: the map has no row for include/pipe/io/"),
                                     ("| `graph/inner/` | more | |", "| `graph/outer/` | more | |", ":1: the map has no row for include/pipe/graph/inner/"),
                                     ("| `graph/inner/` | more | |", "| `graph/inner/` | more | |\n| `x/` | y | |", ":9: there is no folder include/pipe/x/"),
                                     ("the rooms above but `base/`", "the rooms above", ":7: graph/ may include: expected 'the rooms above but `base/`', as in rules.py"),
                                     ("| nothing |", "| |", ":5: base/ may include: expected 'nothing', as in rules.py")):
            self.assertIn(page + fault, self.problems({page: MAP.replace(line, changed)}), line)
        lines = MAP.splitlines(keepends=True)
        lines[4:6] = lines[5], lines[4]
        self.assertIn(page + ":1: the map's rooms are not in the order of rules.py: io, base, graph", self.problems({page: "".join(lines)}))

    def test_walks_are_short_and_their_files_exist(self):
        page = "docs/contributing.md"
        self.assertEqual([page + ":15: there is no header include/pipe/io/gone.hpp"], self.problems({page: MAP.replace("io/b.hpp", "io/gone.hpp")}))
        longer = MAP.replace("`ends`.\n", "`ends`.\n3. `io/b.hpp`: again.\n")
        self.assertEqual([page + ":12: a walk of 3 files; it has 1 to 2"], self.problems({page: longer}))
        self.assertEqual([page + ":15: a stop of a walk is `FILE`: what happens there"], self.problems({page: MAP.replace("2. `io", "2. See `io")}))
        self.assertEqual([page + ":1: 2 walks; there are 1"], self.problems({page: MAP.replace("## Further", "### Further\n\n1. `io/b.hpp`: x\n\n## End")}))

    def test_headers_that_pages_name_exist(self):
        page = "docs/reference/glossary.md"
        for name in ("`base/a.hpp`", "`<pipe/base/a.hpp>`", "[a](../../include/pipe/base/a.hpp)", "`other/a.hpp`", "`boost/a.hpp`"):
            self.assertEqual([], self.problems({page: f"{GLOSSARY}\n{name}\n"}), name)
        for name in ("`base/b.hpp`", "<pipe/base/b.hpp>", "`#include <pipe/b.hpp>`"):
            self.assertEqual(1, len(self.problems({page: f"{GLOSSARY}\n{name}\n"})), name)

    def test_a_word_has_one_row_and_headers_no_other(self):
        page, header = "docs/reference/glossary.md", "include/pipe/io/b.hpp"
        self.assertEqual([page + ":5: pass has another row, in line 4"], self.problems({page: GLOSSARY + "| Pass | z | |\n"}))
        self.assertEqual([page + ":3: item has a row, and is refused in that of z"], self.problems({page: GLOSSARY + "| z | z | item |\n"}))
        for text in ("// a small batch", "int small_batch;", "int most_small_batch_of;", "struct SmallBatch;", "// Stalls", "int stalls_;"):
            self.assertEqual(1, len(self.problems({header: text})), text)
        self.assertEqual([header + ":2: `small batch`: the word is micro-batch, pass (docs/reference/glossary.md): int small_batch;"],
                         self.problems({header: "\nint small_batch;"}))
        self.assertEqual([], self.problems({header: "// install, smaller batches, small\nbatch, stalled"}))

    def test_a_word_may_be_refused_in_a_room(self):
        page, row = "docs/reference/glossary.md", "| run | z | turn (`io/`), pass (`base/`) |\n"
        rooms = {page: GLOSSARY + row, "include/pipe/graph/c.hpp": "int turn;"}
        self.assertEqual([], self.problems(rooms))
        self.assertEqual(["include/pipe/io/b.hpp:1: `turn`: the word is run (docs/reference/glossary.md): int turn_of;"],
                         self.problems(rooms | {"include/pipe/io/b.hpp": "int turn_of;"}))
        self.assertEqual([page + ":6: turn (`io/`) is refused in another row, in line 5"], self.problems({page: GLOSSARY + row + "| x | z | turn (`io/`) |\n"}))
        self.assertEqual([page + ":5: turn (`gone/`): there is no include/pipe/gone/"], self.problems({page: GLOSSARY + "| run | z | turn (`gone/`) |\n"}))


if __name__ == "__main__":
    unittest.main()
