#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""macros.py finds the names that it is for, and no others."""
import subprocess
import sys
import unittest

from macros import CONFIG, check_text, macros_in, program

MACROS = macros_in("# libc\nI index(s,c)\n# curses\nborder(a,b) border columns\n")


class Macros(unittest.TestCase):
    def problems(self, text, config="#undef columns\n"):
        return list(check_text({"pipe/a.hpp": text, CONFIG: config}, MACROS))

    def test_widest_form_counts(self):
        self.assertEqual({"I": None, "index": "s,c", "border": None, "columns": None}, MACROS)

    def test_names_in_code_are_found(self):
        for text in ["template <int... I> struct a {};", "long x = a.index();", "int border;", "auto f = [](int I) {};", "/* I */ int I;"]:
            with self.subTest(text=text):
                self.assertEqual(1, len(self.problems(text)))

    def test_other_names_are_not(self):
        for text in ["// I, index(x)", "/* I\n I */", 'auto x = "I";', 'auto x = R"js(index(3); I)js";', "int index = 3, Is, my_border;",
                     "int n = 1'000'000; char c = 'I';", "#include <I/columns>"]:
            with self.subTest(text=text):
                self.assertEqual([], self.problems(text))

    def test_what_config_ends_needs_config(self):
        self.assertEqual(1, len(self.problems("int columns;")))
        self.assertEqual([], self.problems(f"#include <{CONFIG}>\nint columns;"))
        self.assertEqual(1, len(self.problems(f"#include <{CONFIG}>\nint columns;", config="")))

    def test_macros_end_a_compilation(self):
        for text, code in [("int columns = 1;", 1), ("struct a { int border; };", 1), ("int f(int I);", 1), ("int index(int);", 1), ("int index = 1;", 0)]:
            with self.subTest(text=text):
                source = program(["vector", "no_such_header"], MACROS, []) + text
                result = subprocess.run([compiler, "-fsyntax-only", "-x", "c++", "-"], input=source, text=True, capture_output=True)
                self.assertEqual(code, min(result.returncode, 1), result.stderr)


if __name__ == "__main__":
    compiler = sys.argv.pop(1)
    unittest.main()
