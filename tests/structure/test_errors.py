#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The checker of diagnostics sees what is missing on any of the three sides."""
import tempfile
import unittest
from pathlib import Path

from errors import check

HEADER = """namespace wrong {
enum diagnosis : unsigned char {
  nothing,

  // Sizes
  // expected: one; found: the other
  too_big,
};
template <int Size>
struct Found;
}  // namespace wrong
"""
PAGE = "`Found<...>` is its size.\n\n### too_big\n\nMake it smaller.\n"


class Errors(unittest.TestCase):
    def problems(self, header=HEADER, page=PAGE, test="// error: wrong::Found<1, wrong::too_big, .*int\n"):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for part in ("include/pipe/base", "docs/reference", "tests/fail"):
                (root / part).mkdir(parents=True)
            (root / "include/pipe/base/diagnosis.hpp").write_text(header)
            (root / "docs/reference/errors.md").write_text(page)
            if test:
                (root / "tests/fail/too_big.cpp").write_text(test)
            return list(check(root))

    def test_agreement_passes(self):
        self.assertEqual([], self.problems())

    def test_what_is_missing_is_named(self):
        self.assertIn("no heading too_big", self.problems(page="## too_big\n")[0])
        self.assertIn("no paragraph for too_big", self.problems(page="### too_big\n\n### other\n")[0])
        self.assertIn("nothing about the word Found<", self.problems(page=PAGE.replace("Found", "It"))[0])
        self.assertIn("no test too_big.cpp", self.problems(test="")[0])
        self.assertIn("does not expect", self.problems(test="// error: wrong::too_bigger\n")[0])
        self.assertIn("no diagnostic found", self.problems(header="")[0])

    def test_what_is_too_much_is_named(self):
        self.assertIn("there is no diagnostic too_small", self.problems(page=PAGE + "### too_small\n")[0])
        self.assertIn("has another place", self.problems(header=HEADER.replace("too_big", "too_small,\n  too_big"),
                                                         page=PAGE + "### too_small\n\nGrow.\n")[-1])
        self.assertIn("more than once", self.problems(page=PAGE + "### too_big\n")[0])


if __name__ == "__main__":
    unittest.main()
