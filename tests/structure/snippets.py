#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds the code in the documentation equal to code that runs.

In Markdown, a line `<!-- snippet: path/to/file.cpp region -->` is followed by a fenced block, which must equal the lines
of that file between `// [region]` and `// [/region]`, dedented (`# [region]` in scripts). With --update the blocks are
rewritten instead.
"""
import re
import sys
import textwrap
from pathlib import Path

MARK = re.compile(r"^\s*<!--\s*snippet:\s*(\S+)\s+(\S+)\s*-->\s*$")
FENCE = re.compile(r"^\s*(```+|~~~+)")


def region_of(path, name):
    """The dedented lines between the marks; an error message when there is not exactly one such region."""
    lines = path.read_text(encoding="utf-8").splitlines()
    begins = [i for i, line in enumerate(lines) if re.fullmatch(rf"\s*(//|#) \[{re.escape(name)}\]\s*", line)]
    ends = [i for i, line in enumerate(lines) if re.fullmatch(rf"\s*(//|#) \[/{re.escape(name)}\]\s*", line)]
    if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        return None, f"{path.name} has no region [{name}] ... [/{name}], or more than one"
    inside = lines[begins[0] + 1:ends[0]]
    inside = [line for line in inside if not re.fullmatch(r"\s*(//|#) \[/?[\w-]+\]\s*", line)]  # nested marks
    return textwrap.dedent("\n".join(inside)).strip("\n").splitlines(), None


def check_file(root, document, update=False):
    lines = document.read_text(encoding="utf-8").splitlines()
    problems, result, i, fence = [], [], 0, None
    where = document.relative_to(root)
    while i < len(lines):
        line = lines[i]
        result.append(line)
        i += 1
        if match := FENCE.match(line):  # a mark shown inside a code block is text
            if fence is None:
                fence = match[1]
            elif match[1].startswith(fence):
                fence = None
        if fence is not None or not (mark := MARK.match(line)):
            continue
        number = i
        while i < len(lines) and not lines[i].strip():
            result.append(lines[i])
            i += 1
        opening = FENCE.match(lines[i]) if i < len(lines) else None
        if not opening:
            problems.append(f"{where}:{number}: no fenced code block follows the snippet line")
            continue
        begin = i + 1
        end = next((j for j in range(begin, len(lines)) if lines[j].strip() == opening[1]), None)
        if end is None:
            problems.append(f"{where}:{number}: the code block has no end")
            break
        source = root / mark[1]
        expected, why = region_of(source, mark[2]) if source.is_file() else (None, f"there is no file {mark[1]}")
        if expected is None:
            problems.append(f"{where}:{number}: {why}")
        else:
            shown = lines[begin:end]
            for k in range(max(len(shown), len(expected))):
                a, b = (x[k] if k < len(x) else "(nothing)" for x in (shown, expected))
                if a.rstrip() != b.rstrip() and not update:
                    problems.append(f"{where}:{begin + k + 1}: differs from {mark[1]} [{mark[2]}]\n"
                                    f"  document: {a}\n  source:   {b}")
                    break
        result += [lines[begin - 1], *(expected if update and expected is not None else lines[begin:end]), lines[end]]
        i = end + 1
    if update and not problems and result != lines:
        document.write_text("\n".join(result) + "\n", encoding="utf-8")
    return problems


def check(root, update=False):
    documents = [*sorted(root.glob("*.md"))]
    for folder in ("docs", "examples", "bench", "tests"):
        documents += sorted((root / folder).rglob("*.md"))
    return [p for document in documents for p in check_file(root, document, update)]


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    problems = check(Path(arguments[0] if arguments else ".").resolve(), "--update" in sys.argv)
    print("\n".join(problems) if problems else "every snippet equals its source")
    sys.exit(1 if problems else 0)
