#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds the pages for people to their size and to the source that they describe.

* README.md has at most README_WORDS words, and every other page at most PAGE_WORDS: as `wc -w` counts, code and tables included. A page that is only looked
  up, LOOKED_UP and CHANGELOG.md, may be longer.
* Every page of docs/ is linked from docs/README.md, or from an index that it links: INDEXES, and the README.md of a folder. A link to a folder without one
  leads to all its pages.
* docs/contributing.md has a map of rooms: each folder of include/pipe is a row, in the order of ORDER (rules.py), with the rooms that it may not include (APART).
* Each of its WALKS walks is a numbered list of at most STOPS headers.
* A header that a page names, `<pipe/nn/map.hpp>` or `nn/map.hpp`, exists; a name that begins with a folder of include/pipe is one of a header.
* A word of docs/reference/glossary.md has one row, and no header has a word of the last column, in a comment or as a part of a name; a word with a room
  beside it, `leaf (`runtime/`)`, is refused in the headers of this room.
"""
import re
import sys
from pathlib import Path

import rules
from links import ELSEWHERE, LINK, text_of

README_WORDS = 900
PAGE_WORDS = 3000
LOOKED_UP = ["docs/reference/errors.md", "docs/reference/structs.md"]
INDEXES = ["docs/reference/language.md"]
WALKS = 5
STOPS = 10
MAP_HEAD = "| room | what it is for | may include |"
REFUSED = re.compile(r"(.+?)(?: \(`(.+)`\))?")  # a word that headers do not use: all of them, or those of a room
GLOSSARY_HEAD = "| word | meaning | not |"
ROWS_ABOVE = "the rooms above"
HEADER = re.compile(r"(?<![\w/.-])(?:(?:include/)?(pipe)/)?(\w[\w/]*\.(?:hpp|cuh|inl))\b")


def pages_of(root):
    return sorted((root / "docs").rglob("*.md"))


def check_sizes(root):
    for page in [root / "README.md", *pages_of(root)]:
        name = page.relative_to(root).as_posix()
        most = README_WORDS if name == "README.md" else PAGE_WORDS
        words = len(page.read_text(encoding="utf-8").split())
        if words > most and name not in LOOKED_UP:
            yield f"{name}:1: {words} words; there are at most {most}: a page for each task"


def check_index(root):
    start = root / "docs" / "README.md"
    todo, reached = [start], {start}
    while todo:
        page = todo.pop()
        for _, line in text_of(page) if page.exists() else ():
            for target in LINK.findall(line):
                to = (page.parent / target.partition("#")[0]).resolve()
                if ELSEWHERE.match(target) or (root / "docs") not in to.parents:
                    continue
                index = to / "README.md"
                for found in [to] if not to.is_dir() else [index] if index.exists() else sorted(to.glob("*.md")):
                    is_index = found.name == "README.md" or found.relative_to(root).as_posix() in INDEXES
                    if is_index and found not in reached:
                        todo.append(found)
                    reached.add(found)
    for page in pages_of(root):
        if page not in reached:
            yield f"{page.relative_to(root)}:1: no index links this page: docs/README.md, or one that it links"


def rows_of(page, head):
    """(line number, cells) of all tables of a page with this head."""
    inside = False
    for number, line in text_of(page):
        if line.startswith("|"):
            if inside and not line.startswith("|--"):
                yield number, [cell.strip() for cell in line.strip().strip("|").split("|")]
            inside = inside or line == head
        else:
            inside = False


def check_map(root):
    page = root / "docs" / "contributing.md"
    rows = [(number, cells[0].strip("`/"), cells[2:]) for number, cells in rows_of(page, MAP_HEAD)]
    include = root / "include" / "pipe"
    rooms = {folder.relative_to(include).as_posix() for folder in include.rglob("*") if folder.is_dir() and any(p.is_file() for p in folder.iterdir())}
    where = page.relative_to(root)
    for name in sorted(rooms - {name for _, name, _ in rows}):
        yield f"{where}:1: the map has no row for include/pipe/{name}/"
    for number, name, _ in rows:
        if name not in rooms:
            yield f"{where}:{number}: there is no folder include/pipe/{name}/"
    ordered = [name for _, name, _ in rows if name in rules.ORDER]
    if ordered != [name for name in rules.ORDER if name in rooms]:
        yield f"{where}:1: the map's rooms are not in the order of rules.py: {', '.join(ordered)}"
    for number, name, last in rows:
        apart = " and ".join(f"`{other}/`" for other in rules.APART.get(name, []))
        expected = f"{ROWS_ABOVE} but {apart}" if apart else "" if name not in rules.ORDER else "nothing" if name == rules.ORDER[0] else ROWS_ABOVE
        if (last[0] if last else "") != expected:
            yield f"{where}:{number}: {name}/ may include: expected '{expected}', as in rules.py"


def check_walks(root):
    page = root / "docs" / "contributing.md"
    where, walks, inside = page.relative_to(root), [], False
    for number, line in text_of(page):
        if line.startswith("## "):
            inside = line == "## Walks"
        elif inside and line.startswith("### "):
            walks.append((number, []))
        elif inside and (match := re.match(r"\d+\. `([^`]+)`: \S", line)):
            walks[-1][1].append(match[1])
        elif inside and re.match(r"\d+\. ", line):
            yield f"{where}:{number}: a stop of a walk is `FILE`: what happens there"
    if len(walks) != WALKS:
        yield f"{where}:1: {len(walks)} walks; there are {WALKS}"
    for number, stops in walks:
        if not 1 <= len(stops) <= STOPS:
            yield f"{where}:{number}: a walk of {len(stops)} files; it has 1 to {STOPS}"


def check_headers(root):
    include = root / "include" / "pipe"
    rooms = {folder.name for folder in include.iterdir() if folder.is_dir()}
    for page in [root / "README.md", *pages_of(root)]:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for is_whole, name in HEADER.findall(line):
                if (is_whole or name.split("/")[0] in rooms) and not (include / name).is_file():
                    yield f"{page.relative_to(root)}:{number}: there is no header include/pipe/{name}"


def parts_of(line):
    """A line whose identifiers are in their parts: smallBatch and small_batch are `small batch`, and so is small-batch."""
    return re.sub(r"[_-]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", line)).lower()


def check_glossary(root):
    page = root / "docs" / "reference" / "glossary.md"
    where, known, refused = page.relative_to(root), {}, {}  # refused: (word, room) -> (words, line)
    for number, (words, _, *others) in rows_of(page, GLOSSARY_HEAD):
        for word in words.lower().split(", "):
            if word in known:
                yield f"{where}:{number}: {word} has another row, in line {known[word]}"
            known.setdefault(word, number)
        for other in filter(None, ", ".join(others).lower().split(", ")):
            word, room = REFUSED.fullmatch(other).groups(default="")
            if refused.setdefault((word, room), (words, number))[1] != number:
                yield f"{where}:{number}: {other} is refused in another row, in line {refused[word, room][1]}"
            if room and not (root / "include" / "pipe" / room).exists():
                yield f"{where}:{number}: {other}: there is no include/pipe/{room}"
    for (word, room), (words, _) in refused.items():
        if word in known and not room:
            yield f"{where}:{known[word]}: {word} has a row, and is refused in that of {words}"
    patterns = [(re.compile(rf"(?<![a-z]){re.escape(parts_of(word))}s?(?![a-z])"), word, room, words) for (word, room), (words, _) in refused.items()]
    for path in sorted(p for p in (root / "include").rglob("*") if p.suffix in rules.CODE):
        name = path.relative_to(root / "include").as_posix().removeprefix("pipe/")
        text = path.read_text(encoding="utf-8")
        parts = parts_of(text)
        here = [(pattern, word, words) for pattern, word, room, words in patterns if name.startswith(room) and parts_of(word) in parts]
        for number, line in enumerate(text.splitlines() if here else [], 1):
            for pattern, word, words in here:
                if pattern.search(parts_of(line)):
                    yield f"{path.relative_to(root)}:{number}: `{word}`: the word is {words} (docs/reference/glossary.md): {line.strip()}"


def check(root):
    root = root.resolve()
    return [*check_sizes(root), *check_index(root), *check_map(root), *check_walks(root), *check_headers(root), *check_glossary(root)]


if __name__ == "__main__":
    problems = check(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(problems) if problems else "the pages are short, linked and up to date with the source")
    sys.exit(1 if problems else 0)
