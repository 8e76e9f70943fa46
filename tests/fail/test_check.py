#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The compile-fail check fails for every reason it should."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else "g++"
KIND = "clang++" if "clang" in Path(COMPILER).name else "g++"

GOOD = """// error: small number: 3 is too small
#ifdef PIPE_EXPECT_OK
constexpr int n = 5;
#else
constexpr int n = 3;
#endif
static_assert(n > 4, "small number: 3 is too small");
"""


class Check(unittest.TestCase):
    def run_check(self, source):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.cpp")
            path.write_text(source)
            script = Path(__file__).with_name("check.py")
            result = subprocess.run([sys.executable, script, path, "--kind", KIND, "--compiler", COMPILER],
                                    capture_output=True, text=True)
            return result.returncode, result.stdout + result.stderr

    def refused_because(self, source, why):
        code, output = self.run_check(source)
        self.assertNotIn(code, (0, 77))
        self.assertIn(why, output)

    def test_the_right_error_passes(self):
        code, output = self.run_check(GOOD)
        self.assertEqual(0, code, output)

    def test_every_wrong_one_fails(self):
        self.refused_because(GOOD.replace("// error: small", "// error: large"), "not the expected one")
        self.refused_because(GOOD.replace("n = 3", "n = 6"), "it compiles, and must not")
        self.refused_because(GOOD.replace("n = 5", "n = 2"), "the positive twin does not compile")
        self.refused_because(GOOD.replace("PIPE_EXPECT_OK", "SOMETHING"), "no positive twin")
        self.refused_because("int x;\n" + GOOD, "the first line must be")
        cascade = GOOD + "#ifndef PIPE_EXPECT_OK\nint x = y;\n#endif\n"
        self.refused_because(cascade, "2 errors, expected 1")
        code, output = self.run_check(cascade.replace("\n", "\n// errors: 2\n", 1))
        self.assertEqual(0, code, output)

    def test_a_wall_fails(self):
        wall = GOOD + "#warning once more\n" * 8
        self.refused_because(wall, "lines, at most")
        code, output = self.run_check(wall.replace("\n", "\n// lines: 60\n", 1))
        self.assertEqual(0, code, output)

    def test_a_precompiled_header_changes_no_verdict(self):
        with tempfile.TemporaryDirectory() as folder:
            header, path = Path(folder, "include", "pipe", "pipe.hpp"), Path(folder, "a.cpp")
            header.parent.mkdir(parents=True)
            header.write_text("#pragma once\nconstexpr int most = 4;\n")
            script = Path(__file__).with_name("check.py")
            how = [sys.executable, script, "--kind", KIND, "--compiler", COMPILER, "--precompiled", Path(folder, "made"),
                   "--include", Path(folder, "include")]

            def verdict(source):
                path.write_text(source)
                return subprocess.run([*how, "--", path], stdout=subprocess.DEVNULL).returncode

            good = GOOD.replace("\n", "\n\n// A comment.\n#include <pipe/pipe.hpp>\n", 1).replace("n > 4", "n > most")
            sources = [good, good.replace("#include", "#include <cstddef>\n#include", 1), good.replace("n = 3", "n = 6"), good.replace("n = 5", "n = 2"),
                       good.replace("<pipe/pipe.hpp>", "<pipe/none.hpp>")]
            self.assertEqual([0, 0, 1, 1, 1], [verdict(s) for s in sources])  # there is none yet
            self.assertEqual(0, subprocess.run([*how, "--precompile"]).returncode)
            self.assertEqual([0, 0, 1, 1, 1], [verdict(s) for s in sources])

    def test_twins_are_compiled_as_one_program(self):
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder, "include", "pipe", "pipe.hpp")
            header.parent.mkdir(parents=True)
            header.write_text("#pragma once\nnamespace pp { constexpr int most = 4; }\n")
            Path(folder, "part.hpp").write_text("#pragma once\n#include <cstddef>\nstatic_assert(n + 2 > pp::most);\n")
            how = [sys.executable, Path(__file__).with_name("check.py"), "--kind", KIND, "--compiler", COMPILER, "--include", Path(folder, "include")]
            source = GOOD.replace("\n", "\n#include <pipe/pipe.hpp>\n", 1) + '#include "part.hpp"\nstd::size_t size = n;\n'
            alone = source + "static_assert(::n > 0);\n"
            paths = [Path(folder, name) for name in ("a.cpp", "b.cpp", "c.cpp")]

            def verdict(*texts):
                for path, text in zip(paths, texts):
                    path.write_text(text)
                result = subprocess.run([*how, "--twins", *paths], capture_output=True, text=True)
                return result.returncode, result.stdout

            self.assertEqual((0, "2 positive twins compile\n"), verdict(source, source, alone))
            code, output = verdict(source, source.replace("n = 5", "n = 2"), alone)
            self.assertNotEqual(0, code)
            self.assertIn(f"{paths[1]}:8", output)
            broken = [source.replace("n = 5", "n = 2"), alone.replace("n = 5", "n = 2")]  # the one is for --twins, the other is not
            for path, text, code in zip(paths, broken, (0, 1)):
                path.write_text(text)
                self.assertEqual(code, subprocess.run([*how, "--without-twin", "--", path], stdout=subprocess.DEVNULL).returncode)

    def test_a_flag_can_be_what_is_refused(self):
        source = GOOD.replace("\n", "\n// flags: -DSIZE=5\n// refused: -USIZE -DSIZE=3\n", 1).replace("n = 3", "n = SIZE")
        self.refused_because(source.replace("n = SIZE", "n = 7"), "it compiles, and must not")
        code, output = self.run_check(source)
        self.assertEqual(0, code, output)

    def test_a_compiler_can_be_left_out(self):
        self.assertEqual(77, self.run_check(GOOD.replace("\n", "\n// compilers: another\n", 1))[0])

    def test_a_library_may_be_missing(self):
        self.assertEqual(77, self.run_check(GOOD.replace("\n", "\n// needs: no/such.hpp\n", 1))[0])
        self.assertEqual(0, self.run_check(GOOD.replace("\n", "\n// needs: vector\n", 1))[0])


if __name__ == "__main__":
    unittest.main()
