#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds docs/reference/names.md, the index of all names, to the headers and to the pages; with --write, makes it.

    names.py ROOT [--write]

Namespace pp holds these names and no others: what is for the library itself is in an inner namespace, `pp::detail` where a folder has none of
its own. A name of namespace pp is for users when a page mentions it: a type in CamelCase in any code, another name as `name`, `name(...)` or
`name<...>`. A type in CamelCase that no page mentions is a fault, and so is a name without a sentence that says what it is.
"""
import argparse
import os
import re
import sys
from pathlib import Path

PAGE = Path("docs/reference/names.md")
HEAD = """# All names

What a program may write of namespace `pp`, made from the headers and the pages by `tests/structure/names.py`. Everything else in the
headers is for the library itself and may change in any release.

| name | | header | read on |
|---|---|---|---|
"""
FIRST = ["language", "options", "trainer", "optimizers", "files"]  # pages of the reference come before others, in this order
SHOWN = 2  # pages per name
NAMESPACE = re.compile(r"^(?:inline )?namespace ([\w:]+) \{")
END = re.compile(r"^\}  // namespace")
TYPE = re.compile(r"^(?:struct|class|enum class|enum|concept|using)\s+(?:PIPE_\w+\s+|alignas\([^)]*\)\s+|\[\[[^\]]*\]\]\s+)*(\w+)(?=[\s;:={]|$)")
VALUE = re.compile(r"^(?:inline )?constexpr [\w:<> ]+?(\w+)(?: =|\{)")
FUNCTION = re.compile(r"^(?!return|else|if|for|static_assert|template|requires)(?:\[\[[\w:, ]+\]\] )?[A-Za-z_][\w:<>,&*\[\]() .]*?\b([a-z]\w*)\(")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.S)
PROGRAM = re.compile(r"```cpp\n(.*?)```", re.S)
WORD = re.compile(r"(?<![\w.>:])(?:pp::)?([a-z]\w*)(?=[<({]|::| const\b| \w+[ ;({=]|&)")  # a call or a type
OTHER = re.compile(r'//.*|"(?:\\.|[^"\\\n])*"')  # comments and texts
ALONE = re.compile(r"`(?:pp::)?([a-z]\w*)(?:`|[(<])")
QUALIFIED = re.compile(r"\bpp::([a-z]\w*)")
FOLDERS = ("base", "io", "schedule", "nn", "optim", "transport", "runtime", "train", "infer", "report")  # with names that are not in CamelCase
BASES = {"activation", "element_loss", "label_loss"}  # and types that programs derive from
# What pages mean by these words is something else, a member or a variable.
FOR_ITSELF = {"accumulated", "describe", "optimizer", "plan", "scratch", "sentence", "step", "team", "text"}
# Folders with names that are in namespace pp and not in the page: a list that only gets shorter.
MIXED = ("backend", "base", "graph", "passes")
LEFT_OUT = ("page_script.hpp", "page_interaction.hpp", "elsewhere.hpp")  # no C++; names of what there is not
LABELS = ("law:", "needs:", "throws:", "shape:", "cost:", "source:", "post:")


def declarations(header):
    """(name, first sentence of its docstring) of everything that a header declares in namespace pp itself."""
    inside, doc, pending = [], [], []
    for line in header.read_text(encoding="utf-8").splitlines():
        if match := NAMESPACE.match(line):
            inside.append(match[1])
        elif END.match(line):
            inside.pop()
        elif line.startswith("///"):
            doc.append(line[3:].strip())
        elif inside == ["pp"] and line and not line[0].isspace():
            match = TYPE.match(line) or VALUE.match(line) or FUNCTION.match(line)
            if match:
                yield match[1], first_sentence(doc or pending)
                doc, pending = [], []
            elif line.startswith(("template", "requires")):
                pending, doc = doc or pending, []
            else:
                doc, pending = [], []
        elif not line:
            doc, pending = [], []


def first_sentence(doc):
    text = " ".join(doc).split("  ")[0]
    if text.startswith(LABELS):
        return ""
    ends = (m.start() for m in re.finditer(r"(?<=[\w)`\]])[.:;](?: |$)", text))
    outside = (end for end in ends if text.count("(", 0, end) <= text.count(")", 0, end))
    return text[:next(outside, len(text))].strip().replace("|", "\\|").rstrip(".")


def names_in(page):
    text = page.read_text(encoding="utf-8")
    types = {word for code in CODE.findall(text) for word in re.findall(r"\b[A-Z]\w*", code)}
    programs = {word for code in PROGRAM.findall(text) for word in WORD.findall(OTHER.sub("", code))}
    return types | set(ALONE.findall(text)) | set(QUALIFIED.findall(text)) | programs


def names_in_program(source):
    """What an example takes of the library."""
    text = OTHER.sub("", source.read_text(encoding="utf-8"))
    return set(QUALIFIED.findall(text)) | (set(WORD.findall(text)) if "using namespace pp;" in text else set())


def order(page):
    if page.suffix != ".md":
        return (len(FIRST) + 1, 0, page.as_posix())
    reference = page.parent.name == "reference"
    place = FIRST.index(page.stem) if reference and page.stem in FIRST else len(FIRST)
    return (place, ["reference", "howto", "tutorial", "schedules"].index(page.parent.name), page.stem)


def make(root):
    """The page, and what is wrong with the names."""
    folders = ("reference", "howto", "tutorial", "schedules")
    pages = [p for folder in folders for p in sorted((root / "docs" / folder).glob("*.md")) if p.name != PAGE.name]
    programs = [p for p in (root / "examples").rglob("*") if p.suffix in (".cpp", ".hpp")]
    mentioned = {page: names_in(page) if page.suffix == ".md" else names_in_program(page)
                 for page in sorted([*pages, *programs], key=order)}
    found = {}
    for header in sorted((root / "include" / "pipe").rglob("*")):
        if header.suffix in (".hpp", ".cuh") and header.name not in LEFT_OUT:
            for name, sentence in declarations(header):
                if not name[0].isupper() and header.relative_to(root / "include" / "pipe").parts[0] not in FOLDERS and \
                        name not in BASES:
                    continue
                known = found.setdefault(name, [sentence, header.relative_to(root / "include").as_posix()])
                known[0] = known[0] or sentence
    rows, faults = [], []
    exported = {}
    for name, (sentence, header) in sorted(found.items(), key=lambda item: (item[0].lower(), item[0])):
        if name in FOR_ITSELF:
            continue
        where = [page for page, names in mentioned.items() if name in names]
        if name[0].isupper() and not name.isupper() and not where:
            faults.append(f"{header}: no page mentions {name}")
        if not where:
            continue
        if not sentence:
            faults.append(f"{header}: no sentence says what {name} is")
        links = ", ".join(f"[{p.stem if p.suffix == '.md' else p.name}]({os.path.relpath(p, (root / PAGE).parent)})" for p in where[:SHOWN])
        exported[name] = header
        rows.append(f"| `{name}` | {sentence} | `{header}` | {links} |")
    return HEAD + "\n".join(rows) + "\n", faults + undocumented(root, set(exported))


def undocumented(root, exported):
    """Names of namespace pp that the page has not, in folders where every name is for users; folders of MIXED that are such by now."""
    include = root / "include" / "pipe"
    faults, mixed = [], set()
    for header in sorted(p for p in include.rglob("*") if p.suffix in (".hpp", ".cuh") and p.name not in LEFT_OUT):
        folder = header.relative_to(include).parts[0]
        for name in sorted({name for name, _ in declarations(header)} - exported):
            mixed.add(folder)
            if folder not in MIXED:
                faults.append(f"{header.relative_to(root / 'include')}: {name} is in namespace pp, and no page mentions it: it belongs to pp::detail")
    return faults + [f"{folder}/ has names for users only: take it from MIXED" for folder in MIXED if (include / folder).exists() and folder not in mixed]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    text, faults = make(arguments.root.resolve())
    path = arguments.root / PAGE
    if arguments.write:
        path.write_text(text, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != text:
        faults.append(f"{PAGE}: not what the headers and pages say: run tests/structure/names.py . --write")
    for fault in faults:
        print(fault)
    if not faults:
        print("the index has every name")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
