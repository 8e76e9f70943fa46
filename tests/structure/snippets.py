#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds the code in the documentation equal to code that runs.

In Markdown, a line `<!-- snippet: path/to/file.cpp region -->` is followed by a fenced block, which must equal the lines
of that file between `// [region]` and `// [/region]`, dedented (`# [region]` in scripts). With --update the blocks are
rewritten instead.

No page has C++ that no compiler has seen: a fenced block of C++ has such a mark, and an indented block that looks like C++ is fenced and marked, unless
it is a form with an ellipsis (`Model<input, layer ...>`). What a page quotes needs no header that the page does not name: of each public name in a
snippet, and of each in the text of a page for users (names.py), the page names the header, or one that includes it, unless <pipe/pipe.hpp> does. Only
WITHOUT_HEADERS, which are looked up, leave that to docs/reference/headers.md.
"""
import re
import sys
import textwrap
from pathlib import Path

import names

MARK = re.compile(r"^\s*<!--\s*snippet:\s*(\S+)\s+(\S+)\s*-->\s*$")
FENCE = re.compile(r"^\s*(```+|~~~+)")
CPP_FENCE = re.compile(r"^\s*(```+|~~~+)\s*(cpp|c\+\+|cuda|cu|hpp)(?!\w)")
# Of an indented block: the end of a statement or a block, or the beginning of one.
STATEMENT = re.compile(r"^ {4,}(?![$#{] ?[^\s\w\"]).*[;{}]\s*(//.*)?$|^ {4,}(#include|using|struct|template|static_assert|constexpr)\b|^ {4,}\.\w+ = ")
# What is no C++ though it ends so: a shell's words, JSON, what a compiler or the library says, CMake.
OTHER = re.compile(r"^ {4,}(\$ |\{\"|\[\"|.*\b(error|note):|.*'pp::wrong::|.*\b(done|fi|esac);?|\w+\(.*\)$|(nsys|mpirun|cmake|for \w+ in) )")
HEADER = re.compile(r"\b(?:pipe/)?[\w/]+\.(?:hpp|cuh)")
WITHOUT_HEADERS = ("docs/figures.md", "docs/reference/errors.md", "docs/reference/headers.md", "docs/reference/not_yet.md")
NAME = re.compile(r"(?<![\w.>:])(?:pp::)?((?:\w+::)*\w+)")


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


def unseen_code(root, document):
    """C++ of a page that is quoted from no file."""
    where, lines, fence, is_marked, i = document.relative_to(root), document.read_text(encoding="utf-8").splitlines(), None, False, 0
    while i < len(lines):
        line, number = lines[i], i + 1
        i += 1
        if match := FENCE.match(line):
            if fence is None:
                fence = match[1]
                if CPP_FENCE.match(line) and not is_marked:
                    yield f"{where}:{number}: C++ that is quoted from no compiled file: <!-- snippet: FILE REGION -->"
            elif match[1].startswith(fence):
                fence = None
        elif fence is None and line.startswith("    ") and (i < 2 or not lines[i - 2].strip()):  # of an indented block the first line
            block = [line]
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                block.append(lines[i])
                i += 1
            code = [n for n, text in enumerate(block) if STATEMENT.match(text) and not OTHER.match(text)]
            if code and not any("..." in text for text in block):
                yield f"{where}:{number + code[0]}: indented C++: fence it, quoted from a compiled file: {block[code[0]].strip()}"
        if line.strip():
            is_marked = bool(MARK.match(line))


def headers_of(root, source, seen=None):
    """The headers of pipe that a source includes, directly or by files beside it."""
    seen = set() if seen is None else seen
    if source in seen or not source.is_file():
        return set()
    seen.add(source)
    found = set()
    for bracket, name in re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', source.read_text(encoding="utf-8"), re.MULTILINE):
        if name.startswith("pipe/"):
            found.add(name)
        elif bracket == '"':
            for folder in (source.parent, root / "tests"):
                found |= headers_of(root, (folder / name).resolve(), seen)
    return found


def unnamed_headers(root, document, headers, included):
    """Headers that a page's snippets need and the page does not name."""
    text, missing = document.read_text(encoding="utf-8"), {}
    named = ("pipe/" + header.removeprefix("pipe/") for header in HEADER.findall(text))
    known = set(included.get("pipe/pipe.hpp", ())).union(*(included.get(header, ()) for header in named))
    for mark in filter(None, map(MARK.match, text.splitlines())):
        source = root / mark[1]
        lines = region_of(source, mark[2])[0] if source.is_file() else None
        here = set().union(*(included.get(header, ()) for header in headers_of(root, source.resolve())))
        code = re.sub(r'//.*|"(\\.|[^"\\])*"', "", "\n".join(lines or []))
        declared = re.findall(r"(?:auto|const|const&|struct|class|[a-z]\w*&?) (\w+)\s*(?:[({=;:])", code)
        for word in set(re.findall(r"(?<![.\w])(\w+)", re.sub(r'\.\w+ =', '', code))):
            if headers.get(word) in here - known and word not in declared:
                missing.setdefault(headers[word], []).append(word)
        if "hana::" in code and "boost/hana.hpp" not in text:
            missing.setdefault("boost/hana.hpp", []).append("hana")
    where = document.relative_to(root).as_posix()
    found = [f"{where}:1: its snippets need <{header}> ({', '.join(sorted(set(words)))}), which it does not name" for header, words in sorted(missing.items())]
    if document not in names.pages_for_users(root) or where in WITHOUT_HEADERS:
        return found
    inner = "schedules::" if where.startswith("docs/schedules/") else ""
    for number, code in names.code_of_text(document, indented=False):
        for word in NAME.findall(code):
            if (header := headers.get(word) or headers.get(inner + word)) and header not in known | set(missing):
                missing[header] = [word]
                found.append(f"{where}:{number}: {word} is in <{header}>, which the page does not name")
    return found


def check(root, update=False):
    documents = [*sorted(root.glob("*.md"))]
    for folder in ("docs", "examples", "bench", "tests"):
        documents += sorted((root / folder).rglob("*.md"))
    headers = {name: header for name, (_, header) in names.public(root).items()}
    included, found = names.inclusions(root), []
    for document in documents:
        found += [*check_file(root, document, update), *unseen_code(root, document), *unnamed_headers(root, document, headers, included)]
    return found


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    problems = check(Path(arguments[0] if arguments else ".").resolve(), "--update" in sys.argv)
    print("\n".join(problems) if problems else "every snippet equals its source")
    sys.exit(1 if problems else 0)
