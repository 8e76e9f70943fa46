#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The format check names what differs and takes no clang-format that is too old; a script stands in for clang-format."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from format import VERSIONS, check, files_of, find_program

HERE = Path(__file__).resolve().parents[2]

# Finds fault with every line that begins with a space.
STAND_IN = f"""#!{sys.executable}
import sys
if "--version" in sys.argv:
    print("Debian clang-format version VERSION.1.7 (3)")
    sys.exit(0)
bad = 0
for name in (a for a in sys.argv[1:] if not a.startswith("-")):
    for number, line in enumerate(open(name), 1):
        if line.startswith(" "):
            bad = 1
            print(f"{{name}}:{{number}}:1: error: code should be clang-formatted [-Wclang-format-violations]", file=sys.stderr)
            print(line, "^", file=sys.stderr)
        if "BROKEN" in line:
            bad = 1
sys.exit(bad)
"""


class Format(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name).resolve()
        (self.root / "include").mkdir()

    def tearDown(self):
        self.folder.cleanup()

    def stand_in(self, name="clang-format", version=19):
        program = self.root / name
        program.write_text(STAND_IN.replace("VERSION", str(version)))
        program.chmod(0o755)
        return str(program)

    def write(self, name, text):
        (self.root / name).write_text(text)

    def test_formatted_files_pass(self):
        self.write("include/a.hpp", "int a;\n")
        self.assertEqual(([], ""), check(self.root, self.stand_in()))

    def test_each_place_is_named_once(self):
        self.write("include/a.hpp", "int a;\n int b;\nint c;\n int d;\n")
        self.write("include/b.inl", " int a;\n")
        self.write("include/c.txt", " int a;\n")
        places, trouble = check(self.root, self.stand_in())
        self.assertEqual([("include/a.hpp", 2), ("include/a.hpp", 4), ("include/b.inl", 1)], places)
        self.assertEqual("", trouble)

    def test_other_trouble_is_no_success(self):
        self.write("include/a.hpp", "BROKEN\n")
        places, trouble = check(self.root, self.stand_in())
        self.assertEqual([], places)
        self.assertIn("failed", trouble)

    def test_a_tree_without_sources_is_no_success(self):
        self.assertEqual(([], "there are no C++ files"), check(self.root, self.stand_in()))

    def test_only_tracked_files_count_where_there_is_git(self):
        self.write("include/a.hpp", "int a;\n")
        self.write("include/b.hpp", "int b;\n")
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
        try:
            for arguments in (["init", "-q"], ["add", "include/a.hpp"]):
                subprocess.run(["git", "-C", str(self.root), *arguments], check=True, env=environment)
        except OSError:
            self.skipTest("there is no git")
        self.assertEqual([self.root / "include/a.hpp"], files_of(self.root))

    def test_an_old_clang_format_is_none(self):
        self.stand_in(version=18)
        self.assertIsNone(find_program("clang-format", VERSIONS, self.root))
        new = self.stand_in("clang-format-20", 20)
        self.assertEqual(new, find_program("clang-format", VERSIONS, self.root))

    @unittest.skipUnless(shutil.which("clang-format"), "there is no clang-format")
    def test_editors_read_the_file_with_any_version(self):
        result = subprocess.run(["clang-format", f"--style=file:{HERE / '.clang-format'}", "--dump-config"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        self.assertRegex(result.stdout, r"ColumnLimit: +100")


if __name__ == "__main__":
    unittest.main()
