#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The check with clang-tidy names what is found, once; a script stands in for clang-tidy. Where there is a real one, it finds
what .clang-tidy is for."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from format import find_program
from tidy import VERSIONS, check

HERE = Path(__file__).resolve().parents[2]

# Finds fault with every header that has BAD in it, as clang-tidy says it; cannot read one that has BROKEN in it.
STAND_IN = f"""#!{sys.executable}
import pathlib, re, sys
if "--version" in sys.argv:
    print("Debian LLVM version 19.1.7")
    sys.exit(0)
source = pathlib.Path(sys.argv[sys.argv.index("--") - 1])
folder = next(a[2:] for a in sys.argv if a.startswith("-I"))
bad = 0
for name in re.findall("#include <(.*)>", source.read_text()):
    text = pathlib.Path(folder, name).read_text()
    if "BAD" in text:
        print(f"{{folder}}/{{name}}:2:7: error: this is bad [some-check,-warnings-as-errors]")
        print("    2 | BAD")
    bad |= "BAD" in text or "BROKEN" in text
sys.exit(bad)
"""
# A line for each of some checks that must be on, and one that nothing is to be said of.
FAULTS = {
    "bugprone-integer-division": "inline double half(int n) { return n / 2; }",
    "cppcoreguidelines-pro-type-member-init": "struct open { int a; int b; explicit open(int n) : b(n) {} };",
    "modernize-use-nullptr": "inline int* none() { return 0; }",
    "performance-for-range-copy": "inline int sum(std::vector<std::vector<int>> const& all) {\n"
                                  "  int n = 0;\n  for (auto one : all) n += int(one.size());\n  return n;\n}",
    "readability-identifier-naming": "inline int CamelCase = 0;",
    "": "struct Layer { template <int Width> static constexpr int twice = 2 * Width; };",
}


class Tidy(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name).resolve()
        (self.root / "include/pipe").mkdir(parents=True)

    def tearDown(self):
        self.folder.cleanup()

    def stand_in(self):
        program = self.root / "clang-tidy"
        program.write_text(STAND_IN)
        program.chmod(0o755)
        return str(program)

    def write(self, name, text):
        (self.root / name).write_text(text)

    def test_what_is_found_is_named_once(self):
        self.write("include/pipe/a.hpp", "\nBAD\n")
        self.write("include/pipe/b.hpp", "good\n")
        self.write("a.cpp", "#include <pipe/a.hpp>\n")
        self.assertEqual(["include/pipe/a.hpp:2: this is bad [some-check]"], check(self.root, self.stand_in(), ["a.cpp"]))
        self.write("include/pipe/a.hpp", "good\n")
        self.assertEqual([], check(self.root, self.stand_in(), ["a.cpp"]))

    def test_other_trouble_is_no_success(self):
        self.assertEqual(["there are no headers"], check(self.root, self.stand_in(), []))
        self.write("include/pipe/a.hpp", "BROKEN\n")
        self.assertIn("failed", check(self.root, self.stand_in(), [])[0])

    def test_only_known_versions_are_taken(self):
        self.assertIsNone(find_program("clang-tidy", VERSIONS, self.root))
        self.assertEqual(self.stand_in(), find_program("clang-tidy", VERSIONS, self.root))
        self.assertIsNone(find_program("clang-tidy", range(20, 22), self.root))

    @unittest.skipUnless(find_program("clang-tidy", VERSIONS), "there is no clang-tidy")
    def test_the_checks_find_what_they_are_for(self):
        shutil.copy(HERE / ".clang-tidy", self.root)
        for name, text in FAULTS.items():
            with self.subTest(name=name):
                self.write("include/pipe/a.hpp", f"#pragma once\n#include <vector>\n{text}\n")
                found = check(self.root, find_program("clang-tidy", VERSIONS), [])
                self.assertEqual([name] if name else [], [line[line.rindex("[") + 1:-1] for line in found], found)

    @unittest.skipUnless(shutil.which("clang-tidy"), "there is no clang-tidy")
    def test_editors_read_the_file_with_any_version(self):
        result = subprocess.run(["clang-tidy", f"--config-file={HERE / '.clang-tidy'}", "--dump-config"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(0, result.returncode, result.stdout)
        self.assertNotIn("error", result.stdout.splitlines()[0])
        self.assertRegex(result.stdout, r"readability-identifier-naming.MacroDefinitionPrefix'?\n? *(value)?: +'?PIPE_")


if __name__ == "__main__":
    unittest.main()
