#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The snippet checker accepts equal code and names the first line that differs."""
import tempfile
import unittest
from pathlib import Path

from snippets import check

SOURCE = "int main() {\n  // [body]\n  int a = 1;\n    f(a);\n  // [/body]\n}\n"
GOOD = "# Title\n\n<!-- snippet: examples/a.cpp body -->\n```cpp\nint a = 1;\n  f(a);\n```\nmore\n"


class Snippets(unittest.TestCase):
    def problems(self, document, source=SOURCE, update=False, files=()):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "examples").mkdir()
            (root / "examples/a.cpp").write_text(source)
            (root / "README.md").write_text(document)
            for name in files:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(files[name])
            found = check(root, update)
            self.after = (root / "README.md").read_text()
            return found

    def test_equal_code_passes(self):
        self.assertEqual([], self.problems(GOOD))

    def test_a_difference_is_named(self):
        problems = self.problems(GOOD.replace("f(a)", "g(a)"))
        self.assertEqual(1, len(problems))
        self.assertTrue(problems[0].startswith("README.md:6: differs from examples/a.cpp [body]"), problems)

    def test_missing_and_additional_lines(self):
        self.assertEqual(1, len(self.problems(GOOD.replace("  f(a);\n", ""))))
        self.assertEqual(1, len(self.problems(GOOD.replace("  f(a);\n", "  f(a);\nf(b);\n"))))

    def test_what_is_named_must_exist(self):
        self.assertIn("no file", self.problems(GOOD.replace("a.cpp", "b.cpp"))[0])
        self.assertIn("no region", self.problems(GOOD.replace("body", "head"))[0])
        self.assertIn("no region", self.problems(GOOD, SOURCE + SOURCE)[0])
        self.assertIn("no fenced code block", self.problems("<!-- snippet: examples/a.cpp body -->\ntext\n")[0])
        self.assertIn("has no end", self.problems(GOOD.replace("```\nmore", "more"))[0])

    def test_a_mark_inside_a_code_block_is_text(self):
        self.assertEqual([], self.problems("```\n<!-- snippet: nowhere.cpp x -->\n```\n"))

    def test_code_that_no_file_has_is_found(self):
        for text in ("```cpp\nint a;\n```\n", "~~~ c++\nint a;\n~~~\n", "<!-- snippet: examples/a.cpp body -->\n\n```cpp\nint a = 1;\n  f(a);\n```\n```cpp\nint b;\n```\n"):
            found = self.problems(text)
            self.assertEqual(1, len(found), found)
            self.assertIn("C++ that is quoted from no compiled file", found[0])
        for line in ("using Trainer = Pipeline<GPT, AdamW>;", "Trainer t({.seed = 1});  // one", "for (int i = 0; i < n; ++i) {", ".clip_norm = 1",
                     "struct Net", "template <int N>", "#include <pipe/pipe.hpp>", "b.set<\"x\">(v);"):
            found = self.problems(f"text:\n\n    {line}\n\nmore\n")
            self.assertEqual(1, len(found), line)
            self.assertTrue(found[0].startswith("README.md:3: indented C++"), found)

    def test_what_is_no_code_may_be_indented(self):
        for line in ("struct Name : Model<input, layer ..., loss> {};", "$ examples/run.sh gpt; echo $?", "mpirun -n 4 ./train       # the same;",
                     '{"step":1,"loss":1.5}', "for rank in 0 1; do ./train & done; wait", "a.hpp:3: error: 'pp::wrong::x<pp::Linear<3> >'",
                     "target_link_libraries(program PRIVATE pipe::pipe)", "step 1: loss 0.5", "w = (1 - r weight_decay) w"):
            self.assertEqual([], self.problems(f"text:\n\n    {line}\n\nmore\n"), line)
        self.assertEqual([], self.problems("* an item\n    whose text; goes on;\n"))
        self.assertEqual([], self.problems("```text\n    int a;\n```\n"))

    def test_a_header_that_a_snippet_needs_is_named(self):
        source = "#include <pipe/plan/compiled/planned.hpp>\n" + SOURCE.replace("f(a)", "Planned<A> p; Other<B> o; auto b = 1")
        document = GOOD.replace("f(a)", "Planned<A> p; Other<B> o; auto b = 1")
        public = "namespace pp {{\n/// A name.\nstruct {};\n}}  // namespace pp\n".format
        files = {"include/pipe/plan/compiled/planned.hpp": "#include <pipe/base/other.hpp>\n" + public("Planned"),
                 "include/pipe/base/other.hpp": public("Other") + public("b"),  # b is declared in the snippet
                 "include/pipe/base/b.hpp": public("a")}  # which the file does not include
        found = self.problems(document, source, files=files)
        self.assertEqual(["README.md:1: its snippets need <pipe/base/other.hpp> (Other), which it does not name",
                          "README.md:1: its snippets need <pipe/plan/compiled/planned.hpp> (Planned), which it does not name"], found)
        self.assertEqual([], self.problems(document + "It is in `<pipe/plan/compiled/planned.hpp>`.\n", source, files=files))
        files["include/pipe/pipe.hpp"] = "#include <pipe/plan/compiled/planned.hpp>\n"
        self.assertEqual([], self.problems(document, source, files=files))
        files["include/pipe/pipe.hpp"] = ""
        self.assertEqual(["README.md:3: Other is in <pipe/base/other.hpp>, which the page does not name"],
                         self.problems("# Title\n\n`Other<3>` and\n\n    $ a shell's Planned\n", files=files))
        self.assertEqual([], self.problems("`Other<3>` of `pipe/base/other.hpp`, or `base/other.hpp`", files=files))
        self.assertEqual([], self.problems("`Other<3>` of `pipe/plan/compiled/planned.hpp`, which includes it", files=files))
        hana = [text.replace("f(a)", "hana::size(a)") for text in (GOOD, SOURCE)]
        self.assertIn("<boost/hana.hpp>", self.problems(*hana)[0])

    def test_update_writes_the_source(self):
        self.assertEqual([], self.problems(GOOD.replace("f(a)", "g(a)"), update=True))
        self.assertEqual(GOOD, self.after)


if __name__ == "__main__":
    unittest.main()
