#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The library as one header: how files are put together, and that the consumer compiles with nothing else and runs.

    test_single_header.py --root ROOT --compiler g++
"""
import argparse
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--root", type=Path, required=True)
parser.add_argument("--compiler", required=True)
ARGUMENTS = parser.parse_args()
sys.path.append(str(ARGUMENTS.root / "cmake"))
from single_header import single_header  # noqa: E402


class SingleHeader(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        (self.path / "pipe").mkdir()

    def tearDown(self):
        self.folder.cleanup()

    def run_command(self, *command):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.assertEqual(0, result.returncode, result.stdout[-3000:])
        return result.stdout

    def together(self, files, names=("pipe/a.hpp",)):
        for name, text in files.items():
            (self.path / name).write_text(text)
        return single_header(self.path, names)

    def preprocessed(self, files, *flags):
        """What a compiler sees of it, without blank lines."""
        (self.path / "one.hpp").write_text(self.together(files))
        (self.path / "main.cpp").write_text('#include "one.hpp"\n')
        output = self.run_command(ARGUMENTS.compiler, "-E", "-P", *flags, str(self.path / "main.cpp"))
        return output.split()

    def test_a_header_stands_there_once_where_it_is_first_included(self):
        text = self.together({"pipe/a.hpp": "#pragma once\n#include <pipe/b.hpp>\n#include <pipe/c.hpp>\nint a;\n",
                              "pipe/b.hpp": "#pragma once\n#include <vector>\n#include <pipe/c.hpp>\nint b;\n",
                              "pipe/c.hpp": "#pragma once\n#include <vector>\nint c;\n"})
        code = [line for line in text.splitlines() if line and not line.startswith("//")]
        self.assertEqual(["#pragma once", "#include <vector>", "int c;", "int b;", "int a;"], code)

    def test_an_inl_stands_there_wherever_it_is_included(self):
        self.assertEqual(["one", "two"], self.preprocessed(
            {"pipe/a.hpp": "#define X one\n#include <pipe/x.inl>\n#undef X\n#define X two\n#include <pipe/x.inl>\n#undef X\n",
             "pipe/x.inl": "X\n"}))

    def test_a_header_under_a_condition_is_there_when_it_is_needed(self):
        files = {"pipe/a.hpp": "#ifdef WITH\n#include <pipe/b.hpp>\n#endif\n#include <pipe/c.hpp>\n#ifdef WITH\n"
                               "#include <pipe/c.hpp>\n#endif\na\n",
                 "pipe/b.hpp": "#include <pipe/c.hpp>\nb\n", "pipe/c.hpp": "c\n"}
        self.assertEqual(["c", "a"], self.preprocessed(files))
        self.assertEqual(["c", "b", "a"], self.preprocessed(files, "-DWITH"))

    def test_a_header_stands_there_once_under_a_condition(self):
        text = self.together({"pipe/a.hpp": "#ifdef WITH\n#include <pipe/b.hpp>\n#include <pipe/c.hpp>\n#else\n#include <pipe/c.hpp>\n"
                                            "#endif\na\n",
                              "pipe/b.hpp": "#include <pipe/c.hpp>\nb\n", "pipe/c.hpp": "c\n"})
        self.assertEqual(2, text.split().count("c"))
        self.assertEqual(["c", "a"], self.preprocessed({}))
        self.assertEqual(["c", "b", "a"], self.preprocessed({}, "-DWITH"))

    def test_what_cannot_be_put_together_is_named(self):
        with self.assertRaisesRegex(SystemExit, "pipe/a.hpp: there is no pipe/none.hpp"):
            self.together({"pipe/a.hpp": "#include <pipe/none.hpp>\n"})
        with self.assertRaisesRegex(SystemExit, "pipe/x.inl -> pipe/x.inl: includes itself"):
            self.together({"pipe/a.hpp": "#include <pipe/x.inl>\n", "pipe/x.inl": "#include <pipe/x.inl>\n"})

    def test_the_command_checks_what_it_makes(self):
        command = [sys.executable, str(ARGUMENTS.root / "cmake/single_header.py"), str(self.path), "pipe/a.hpp",
                   "-o", str(self.path / "one.hpp"), "--check", ARGUMENTS.compiler]
        (self.path / "pipe/a.hpp").write_text("#pragma once\nint a();\n")
        self.assertIn("one.hpp: ", self.run_command(*command))
        self.assertIn("int a();", (self.path / "one.hpp").read_text())
        (self.path / "pipe/a.hpp").write_text("#pragma once\nint b() { return none; }\n")
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(1, result.returncode)
        self.assertIn("it does not compile alone", result.stdout)
        self.assertNotIn("int b()", (self.path / "one.hpp").read_text())

    def test_the_consumer_compiles_with_it_alone_and_runs(self):
        text = single_header(ARGUMENTS.root / "include", ["pipe/pipe.hpp", "pipe/weights/weights.hpp"])
        self.assertNotIn("#include <pipe/", text)
        self.assertEqual(1, text.count("SPDX-License-Identifier"))
        (self.path / "pipe-all.hpp").write_text(text)
        for name in ("pipe.hpp", "weights/weights.hpp"):
            (self.path / "pipe" / name).parent.mkdir(exist_ok=True)
            (self.path / "pipe" / name).write_text('#include "pipe-all.hpp"\n')
        (self.path / "other.cpp").write_text("#include <pipe/pipe.hpp>\n")
        for name in ("main.cpp", "names.hpp"):
            shutil.copy(ARGUMENTS.root / "tests/package/consumer" / name, self.path)
        consumer = str(self.path / "consumer")
        self.run_command(ARGUMENTS.compiler, "-std=c++20", "-O1", f"-I{self.path}", "-pthread",
                         str(self.path / "main.cpp"), str(self.path / "other.cpp"), "-o", consumer)
        self.run_command(consumer)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
