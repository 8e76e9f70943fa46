#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds the links of the documentation: a link to a file of this tree names one that is there, and behind # a heading of that page.

Prints each broken link as `file:line: target`. Links to other places are not looked at, nor are code blocks.
"""
import re
import sys
from pathlib import Path

FOLDERS = ("docs", "examples", "bench", "tests", "tools", "packaging")
FENCE = re.compile(r"^\s*(```+|~~~+)")
HEADING = re.compile(r"^#+ (.*?)\s*$")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`]*`")
ELSEWHERE = re.compile(r"^[a-z]+:", re.IGNORECASE)


def text_of(page):
    """(line number, line) of what is not in a code block."""
    fence = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if match := FENCE.match(line):
            fence = match[1] if fence is None else None if match[1].startswith(fence) else fence
        elif fence is None:
            yield number, line


def anchor_of(heading):
    """The anchor that GitHub gives a heading: of a link its text, in lower case, without punctuation, with dashes for spaces."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors_of(page):
    """All anchors of a page; equal headings are numbered from the second on."""
    found, times = set(), {}
    for _, line in text_of(page):
        if match := HEADING.match(line):
            anchor = anchor_of(match[1])
            times[anchor] = times.get(anchor, -1) + 1
            found.add(f"{anchor}-{times[anchor]}" if times[anchor] else anchor)
    return found


def check(root):
    pages = sorted(root.glob("*.md")) + [p for folder in FOLDERS for p in sorted((root / folder).rglob("*.md"))]
    anchors = {}
    for page in pages:
        for number, line in text_of(page):
            for target in LINK.findall(CODE.sub("code", line)):
                if ELSEWHERE.match(target):
                    continue
                path, _, anchor = target.partition("#")
                to = (page.parent / path).resolve() if path else page
                if not to.exists():
                    yield f"{page.relative_to(root)}:{number}: {target}: there is no such file"
                elif anchor and to.suffix == ".md":
                    if to not in anchors:
                        anchors[to] = anchors_of(to)
                    if anchor not in anchors[to]:
                        yield f"{page.relative_to(root)}:{number}: {target}: there is no such heading"


if __name__ == "__main__":
    problems = list(check(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()))
    print("\n".join(problems) if problems else "every link leads somewhere")
    sys.exit(1 if problems else 0)
