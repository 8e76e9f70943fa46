#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds docs/decisions to a size and a form that a reader can use; prints every page that breaks a rule.

* There are at most MOST decisions, of at most WORDS words each.
* A page has a question (`**Question.** Why ...?`), and the sections of SECTIONS.
* The index, README.md, has each page in one row: the page's question, and a link with its title.
"""
import re
import sys
from pathlib import Path

MOST = 35
WORDS = 600
SECTIONS = ("Decision", "Why", "What would change it")
INDEX = "README.md"
QUESTION = re.compile(r"^\*\*Question\.\*\* (.*?\?)\s*$", re.MULTILINE)
ROW = re.compile(r"^\| (.+) \| \[(.+)\]\(([^)]+\.md)\) \|$", re.MULTILINE)


def check(folder):
    pages = {page.name: page.read_text(encoding="utf-8") for page in sorted(folder.glob("*.md"))}
    rows = ROW.findall(pages.pop(INDEX, ""))
    if len(pages) > MOST:
        yield f"{len(pages)} decisions; merge some or move them into comments: at most {MOST} stay"
    for name, text in pages.items():
        if (words := len(text.split())) > WORDS:
            yield f"{name}: {words} words; a decision has at most {WORDS}"
        for section in SECTIONS:
            if f"\n**{section}.**" not in text:
                yield f"{name}: there is no **{section}.**"
        if not (question := QUESTION.search(text)):
            yield f"{name}: there is no **Question.** with a question mark"
            continue
        title = text.splitlines()[0].removeprefix("# ")
        found = [(asked, called) for asked, called, target in rows if target == name]
        if found != [(question[1], title)]:
            yield f"{name}: {INDEX} needs one row: | {question[1]} | [{title}]({name}) |"
    for _, _, target in rows:
        if target not in pages:
            yield f"{INDEX}: {target}: there is no such decision"


if __name__ == "__main__":
    problems = list(check(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve() / "docs/decisions"))
    print("\n".join(problems) if problems else "every decision answers a question of the index")
    sys.exit(1 if problems else 0)
