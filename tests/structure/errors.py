#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds the compile-time diagnostics, their page and their tests together.

Every enumerator of `enum diagnosis` in include/pipe/base/diagnosis.hpp but `nothing` has a heading `### name` with a paragraph in
docs/reference/errors.md, in the same order, and a source tests/fail/name.cpp whose first line expects it; and the page has no other
headings of that level. A `struct Word;` in a namespace `wrong` is a word of such messages: the page says somewhere what `Word<` means.
"""
import re
import sys
from pathlib import Path

DIAGNOSES = re.compile(r"^enum diagnosis : unsigned char \{\n  nothing,\n(.*?)^\};", re.DOTALL | re.MULTILINE)
NAMESPACE = re.compile(r"namespace wrong \{(.*?)\}  // namespace wrong", re.DOTALL)


def check(root):
    listed = DIAGNOSES.search((root / "include/pipe/base/diagnosis.hpp").read_text(encoding="utf-8"))
    names = re.findall(r"^  (\w+),$", listed[1], re.MULTILINE) if listed else []
    words = set()
    for header in sorted((root / "include/pipe").rglob("*.hpp")):
        for body in NAMESPACE.findall(header.read_text(encoding="utf-8")):
            words |= set(re.findall(r"^struct ([A-Z]\w*);", body, re.MULTILINE))
    page = (root / "docs/reference/errors.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (\w+)$", page, re.MULTILINE)
    described = re.findall(r"^### (\w+)\n\n[^#\n]", page, re.MULTILINE)

    if not names:
        yield "include/pipe/base/diagnosis.hpp: no diagnostic found"
    for name in names:
        if name not in headings:
            yield f"docs/reference/errors.md: no heading {name}"
        elif name not in described:
            yield f"docs/reference/errors.md: no paragraph for {name}"
        source = root / f"tests/fail/{name}.cpp"
        if not source.exists():
            yield f"tests/fail: no test {name}.cpp"
        elif not re.search(rf"wrong::{name}\W", source.read_text(encoding="utf-8").splitlines()[0]):
            yield f"tests/fail/{name}.cpp:1: does not expect wrong::{name}"
    for word in sorted(words):
        if f"{word}<" not in page:
            yield f"docs/reference/errors.md: nothing about the word {word}<"
    for heading in headings:
        if heading not in names:
            yield f"docs/reference/errors.md: there is no diagnostic {heading}"
        if headings.count(heading) > 1:
            yield f"docs/reference/errors.md: {heading} stands there more than once"
    if sorted(headings) == sorted(names) and headings != names:
        first = next(name for name, heading in zip(names, headings) if name != heading)
        yield f"docs/reference/errors.md: {first} has another place among the headings than in base/diagnosis.hpp"


if __name__ == "__main__":
    problems = list(check(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(problems) if problems else "diagnostics, page and tests agree")
    sys.exit(1 if problems else 0)
