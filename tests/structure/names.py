#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds the public names to the headers and to the pages; with --write, makes an index of them: build/names.md, or another file.

    names.py ROOT [--write [FILE]] [--update]

Namespace pp holds these names and no others, but for those of PURPOSES; what is for the library itself is in another inner namespace, `pp::detail`
where a folder has none of its own. A page mentions a name in CamelCase in any code, another name as `name`, `name(...)` or `name<...>`, and one
of an inner namespace as `inner::name` (docs/schedules opens `schedules`). A name that no page mentions is a fault, and so is one without a
sentence that says what it is, or one of pp itself more than MOST_NAMES. What a model is made of, the names of include/pipe/nn, are each in
the first column of a table on exactly one page of docs/reference/layers or on language.md; there a name that is a link is defined elsewhere.

A page for users calls nothing that a program cannot reach: each `name(...)`, `name<...>` and `detail::name` of its text and of its indented blocks is a
public name, a diagnosis of `pp::wrong`, a word of the page's own snippets, a member of a class, a function of a program in examples/ or tests/, or one of
FOREIGN. Pages about the library's own source, INSIDE, may name all of it. docs/reference/headers.md says which header has which name, and is held
to the headers; --headers writes it.
A struct that a program fills or reads has a section on docs/reference/structs.md, with a row for each data member, of which the last column says
what it is; --update writes the other columns. These are the public structs with data members but those of OPAQUE, those of pp::detail that calls
take or return by the name that it has (SETTINGS), and FURTHER ones.
"""
import argparse
import os
import re
import sys
from pathlib import Path

import members
from links import text_of

PAGE = Path("build/names.md")
HEAD = """# All names

What a program may write of namespace `pp` and of its inner namespaces for one purpose each, made from the headers and the pages by
`tests/structure/names.py`. Everything else in the headers is for the library itself and may change in any release.

| name | | header | read on |
|---|---|---|---|
"""
HEADERS = Path("docs/reference/headers.md")
HEADERS_HEAD = """# Which header has which name

A program that trains includes `<pipe/pipe.hpp>`, and has all names of the first table by it. What reads or writes files, or needs another library, is
in a header of its own, so that programs without it compile faster: the second table. A header includes what it needs, in any order. This page is
written by `python3 tests/structure/names.py . --headers`.

## In pipe.hpp

| folder | names of namespace `pp` |
|---|---|
"""
HEADERS_OTHERS = """
## In headers of their own

| header | names of namespace `pp` |
|---|---|
"""
LAYERS = "pipe/nn/"  # whose names have a page
FIRST = ["options", "trainer", "plan", "optimizers", "files"]  # pages of the reference come before others, in this order
LAST = ["errors", "language", "not_yet"]
FOLDERS = ["reference", "howto", "tutorial", "schedules", "reference/layers"]
SHOWN = 2  # pages per name
NAMESPACE = re.compile(r"^(?:inline )?namespace ([\w:]+) \{")
END = re.compile(r"^\}  // namespace")
SHORT_END = "}"  # of a namespace with one declaration, behind which clang-format puts no comment
TYPE = re.compile(r"^(?:struct|class|enum class|enum|concept|using)\s+(?:PIPE_\w+\s+|alignas\([^)]*\)\s+|\[\[[^\]]*\]\]\s+)*(\w+)(?!::)(?=[\s;:={]|$)")
VALUE = re.compile(r"^(?:inline )?constexpr [\w:<> ]+?(\w+)(?: =|\{|\[)")
FUNCTION = re.compile(r"^(?!return|else|if|for|static_assert|template|requires)(?:\[\[[\w:, ]+\]\] )?[A-Za-z_][\w:<>,&*\[\]() .]*?\b([a-z]\w*)\(")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.S)
PROGRAM = re.compile(r"```cpp\n(.*?)```", re.S)
WORD = re.compile(r"(?<![\w.>:])(?:pp::)?([a-z]\w*)(?=[<({]|::| const\b| \w+[ ;({=]|&)")  # a call or a type
OTHER = re.compile(r'//.*|"(?:\\.|[^"\\\n])*"')  # comments and texts
LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")
ALONE = re.compile(r"`(?:pp::)?([a-z]\w*)(?:`|[(<])")
QUALIFIED = re.compile(r"\bpp::([a-z]\w*)")
MOST_NAMES = 380  # of namespace pp, and those that features have added since, which the CHANGELOG lists with their page; nothing else raises the bound
ADDED = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| \[[^\]]*\]\((docs/[\w/.]+\.md)\) \|$", re.M)
PURPOSES = ("console", "custom", "drawings", "files", "math", "sampling", "schedules", "tables", "transports")  # inner namespaces for programs
PUBLIC = ["pp", *(f"pp {inner}" for inner in PURPOSES), *(f"pp::{inner}" for inner in PURPOSES if inner != "math")]  # `pp::math {` is for kernels, too
INNER = re.compile(rf"\b(?:{'|'.join(PURPOSES)})::\w+")
FOREIGN = ("add_subdirectory", "find_package", "static_assert", "target_link_libraries", "target_precompile_headers",  # C++ and CMake
           "binary_cross_entropy_with_logits", "flatten", "kaiming_normal_", "kaiming_uniform_", "log_softmax", "mse_loss", "normal_", "requires_grad_",
           "scaled_dot_product_attention", "softmax", "state_dict")  # PyTorch
INSIDE = ("docs/contributing.md", "docs/decisions/", "docs/explanation/", "docs/howto/add_an_op.md")
CALL = re.compile(r"(?<![\w:.>])(?:pp::)?((?:\w+::)*)(\w+)(?=[(<])")
MEMBER = re.compile(r"^ +(?:PIPE_\w+ |\[\[[\w:, ]+\]\] |static |constexpr |explicit |virtual |friend )*(?!return |else )(?:unsigned )?[A-Za-z_][\w:<>,&*]*(?: const)?[&*]* (\w+)(?:\(| = )|^  (?:struct|class|using) (\w+)", re.M)
OF_PROGRAM = re.compile(r"^(?: *template <.*> *)? *(?:PIPE_HD |static |constexpr |inline )*[\w:<>]+[&*]? (\w+)\(", re.M)  # what a program defines
MESSAGE = re.compile(r"error:|undefined reference")
STRUCTS = Path("docs/reference/structs.md")
SECTION = re.compile(r"^### `([\w:]+)`")
ROW = re.compile(r"^\| `(\w+)` \|")
COLUMNS = ["| member | type | initially | |", "|---|---|---|---|"]
SETTINGS = re.compile(r"\w+_(settings|result|report|options)$")
INTERNAL = ("pipe/graph/", "pipe/passes/", "pipe/backend/", "pipe/nn/", "pipe/plan/options/", "pipe/plan/compiled/", "pipe/runtime/host/", "pipe/runtime/cuda/")
FURTHER = {"batch_of", "commit_rule", "drawing_words", "drawn_action", "drawn_detail", "drawn_rank", "drawn_transfer", "fitted_epoch", "initializer",
           "memory_change", "memory_point", "named_scalar", "slow_runs"}
OPAQUE = {"Text", "bf16", "dynamic_rows", "fp16", "loss_values", "named_states", "same_cost", "stage_ranks", "static_table"}  # of which a program uses the functions alone
LABELS = ("law:", "needs:", "throws:", "shape:", "cost:", "source:", "post:")


def declarations(header, of=lambda inside: inside in PUBLIC):
    """(name, first sentence of its docstring) of everything that a header declares in a namespace of `of`: pp itself and PURPOSES."""
    inside, begun, doc, pending = [], 0, [], []
    for number, line in enumerate(header.read_text(encoding="utf-8").splitlines()):
        if match := NAMESPACE.match(line):
            inside.append(match[1])
            begun = number
        elif END.match(line) or line == SHORT_END and number == begun + 2:
            inside.pop()
        elif line.startswith("///"):
            doc.append(line[3:].strip())
        elif of(" ".join(inside)) and line and not line[0].isspace():
            match = TYPE.match(line) or VALUE.match(line) or FUNCTION.match(line)
            if match:
                yield "::".join([*"::".join(inside).split("::")[1:], match[1]]), first_sentence(doc or pending)
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
    inner = set(INNER.findall(text))
    if page.parent.name == "schedules":
        inner |= {f"schedules::{word}" for code in CODE.findall(text) for word in re.findall(r"\w+", code)}
    return types | set(ALONE.findall(text)) | set(QUALIFIED.findall(text)) | programs | inner


def defined_in(page):
    """The names of layers in the first column of the page's tables."""
    text = PROGRAM.sub("", page.read_text(encoding="utf-8"))
    cells = (LINK.sub("", line.split("|")[1]) for line in text.splitlines() if line.startswith("|"))
    return {name for cell in cells for name in re.findall(r"`((?:\w+::)*\w+)", cell)}


def names_in_program(source):
    """What an example takes of the library."""
    text = OTHER.sub("", source.read_text(encoding="utf-8"))
    return set(QUALIFIED.findall(text)) | set(INNER.findall(text)) | (set(WORD.findall(text)) if "using namespace pp;" in text else set())


def order(page):
    if page.suffix != ".md":
        return (len(FIRST) + 2, 0, page.as_posix())
    reference = page.parent.name == "reference"
    place = FIRST.index(page.stem) if reference and page.stem in FIRST else len(FIRST) + (reference and page.stem in LAST)
    return (place, [Path(folder).name for folder in FOLDERS].index(page.parent.name), page.stem)


def label(page):
    stem = page.stem if page.suffix == ".md" else page.name
    return f"layers/{stem}" if page.parent.name == "layers" else stem


def public(root):
    """Of each name in namespace pp its first sentence and its header."""
    found = {}
    for header in sorted((root / "include" / "pipe").rglob("*")):
        if header.suffix in (".hpp", ".cuh"):
            for name, sentence in declarations(header):
                known = found.setdefault(name, [sentence, header.relative_to(root / "include").as_posix()])
                known[0] = known[0] or sentence
    return found


def pages_for_users(root):
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in pages if page.exists() and not page.relative_to(root).as_posix().startswith(INSIDE)]


def code_of_text(page, indented=True):
    """(line number, code) of what a page's text has in backticks, and of its indented blocks; of shells nothing."""
    for number, line in text_of(page):
        for code in [line] * indented if line.startswith("    ") else re.findall(r"`([^`]+)`", line):
            if "examples/run.sh" not in code:
                yield number, code


def check_calls(root):
    """Calls in the text of a page for users that no program could write."""
    headers = [h for h in (root / "include" / "pipe").rglob("*") if h.suffix in (".hpp", ".cuh", ".inl")]
    declared = {h: list(declarations(h, bool)) for h in headers}
    last = {name.split("::")[-1]: name for found in declared.values() for name, _ in found}
    reached = {name.split("::")[-1] for name in public(root)} | set(FOREIGN)
    reached |= {word for word, name in last.items() if name.startswith(("wrong::", "math::"))}
    for h in headers:
        reached |= {word for words in MEMBER.findall(h.read_text(encoding="utf-8")) for word in words}
    for folder in ("examples", "tests"):
        for source in (root / folder).rglob("*"):
            if source.suffix in (".cpp", ".hpp", ".cu", ".cuh") and "fail" not in source.parts:
                reached |= set(OF_PROGRAM.findall(source.read_text(encoding="utf-8", errors="ignore")))
    for page in pages_for_users(root):
        shown = set(re.findall(r"\w+", "\n".join(PROGRAM.findall(page.read_text(encoding="utf-8")))))
        for number, code in code_of_text(page):
            for home, name in CALL.findall(code):
                where = f"{page.relative_to(root)}:{number}: `{code.strip()}`"
                if MESSAGE.search(code) or home.startswith(("std::", "hana::", "wrong::")):
                    continue
                if home.startswith("detail::"):
                    yield f"{where}: {name} is in pp::detail, which programs do not use"
                elif (name in last or "_" in name) and name not in reached | shown:
                    yield f"{where}: {name} is neither a public name nor a member" + (f", but {last[name]}" if name in last else "")


def inclusions(root):
    """All headers that each header includes, itself too."""
    include = root / "include"
    direct = {h.relative_to(include).as_posix(): re.findall(r"^\s*#\s*include\s*<(pipe/[^>]+)>", h.read_text(encoding="utf-8"), re.MULTILINE)
              for h in include.rglob("*") if h.suffix in (".hpp", ".cuh")}

    def all_of(header):
        found, todo = set(), [header]
        while todo:
            if (one := todo.pop()) not in found:
                found.add(one)
                todo += direct.get(one, [])
        return found

    return {header: all_of(header) for header in direct}


def headers_page(root):
    """The text of HEADERS."""
    inside, whole, others = inclusions(root).get("pipe/pipe.hpp", set()), {}, {}
    for name, (_, header) in sorted(public(root).items(), key=lambda item: (item[0].lower(), item[0])):
        is_inside = header in inside and header.endswith(".hpp")
        (whole if is_inside else others).setdefault(header.split("/")[1] if is_inside else header, []).append(f"`{name}`")
    rows = [f"| `{folder}/` | {', '.join(found)} |\n" for folder, found in sorted(whole.items())]
    return HEADERS_HEAD + "".join(rows) + HEADERS_OTHERS + "".join(f"| `<{header}>` | {', '.join(found)} |\n" for header, found in sorted(others.items()))


def check_headers_page(root):
    if not (root / HEADERS).exists() or (root / HEADERS).read_text(encoding="utf-8") != headers_page(root):
        yield f"{HEADERS}:1: it is not what the headers have: python3 tests/structure/names.py . --headers"
def filled_structs(root):
    """The data members of each struct that a program fills or reads, by its name, without pp::detail."""
    names, found = public(root), {}
    for header in sorted((root / "include" / "pipe").rglob("*")):
        if header.suffix not in (".hpp", ".cuh"):
            continue
        path = header.relative_to(root / "include").as_posix()
        for name, _, fields in members.structs(header.read_text(encoding="utf-8")):
            full = next((full for full, (_, home) in names.items() if home == path and full.split("::")[-1] == name), None)
            if full is None and (name in FURTHER or SETTINGS.match(name) and not path.startswith(INTERNAL)):
                full = name
            if full is not None and name not in OPAQUE:
                found[full] = fields
    return found


def row_of(field, text):
    name, kind, start, comment = field
    cells = [f"`{name}`", f"`{kind}`", f"`{start}`" if start else "", text or comment.replace("|", "\\|")]
    return "| " + " | ".join(cells) + " |"


def cells_of(row):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def sections(lines):
    """(name, first line, end) of each section; its table is the first one in it."""
    heads = [(SECTION.match(line)[1], i) for i, line in enumerate(lines) if SECTION.match(line)]
    for k, (name, begin) in enumerate(heads):
        end = next((i for i in range(begin + 1, len(lines)) if lines[i].startswith("#")), len(lines))
        table = [i for i in range(begin, end) if lines[i].startswith("|")]
        yield name, *((table[0], table[-1] + 1) if table else (begin + 1, begin + 1))


def check_structs(root, update=False):
    """What is wrong with the page of structs; with update, its tables are written first."""
    path, known, faults = root / STRUCTS, filled_structs(root), []
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if update:
        for name, begin, end in reversed(list(sections(lines))):
            if name in known:
                texts = {ROW.match(line)[1]: cells_of(line)[-1] for line in lines[begin:end] if ROW.match(line)}
                blank = [""] if begin == end else []
                lines[begin:end] = [*blank, *COLUMNS, *(row_of(field, texts.get(field[0], "")) for field in known[name])]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    there = {name: [line for line in lines[begin:end] if ROW.match(line)] for name, begin, end in sections(lines)}
    for name in known.keys() | there.keys():
        rows = {ROW.match(line)[1]: line for line in there.get(name, [])}
        if name not in there:
            faults.append(f"{STRUCTS}: struct {name} has no section, ### `{name}`")
        elif name not in known:
            faults.append(f"{STRUCTS}: {name} is no struct that a program fills or reads")
        else:
            for field in known[name]:
                row = rows.pop(field[0], "")
                if not row:
                    faults.append(f"{STRUCTS}: member {field[0]} of {name} has no row")
                elif not cells_of(row)[-1]:
                    faults.append(f"{STRUCTS}: no text says what member {field[0]} of {name} is")
                elif cells_of(row)[:-1] != cells_of(row_of(field, ""))[:-1]:
                    faults.append(f"{STRUCTS}: member {field[0]} of {name} is declared in another way: names.py --update")
            faults += [f"{STRUCTS}: {name} has no member {member}" for member in rows]
    return sorted(faults)


def added_names(root):
    """Names that features have added to namespace pp, as the CHANGELOG lists them, and the page of each."""
    log = root / "CHANGELOG.md"
    rows = ADDED.findall(log.read_text(encoding="utf-8")) if log.exists() else []
    return {name: page for names, page in rows for name in re.findall(r"\w+", names)}


def make(root, page=PAGE):
    """The index as a page of that path, and what is wrong with the names."""
    pages = [p for folder in FOLDERS for p in sorted((root / "docs" / folder).glob("*.md")) if p.name not in (PAGE.name, HEADERS.name)]
    programs = [p for p in (root / "examples").rglob("*") if p.suffix in (".cpp", ".hpp")]
    mentioned = {page: names_in(page) if page.suffix == ".md" else names_in_program(page)
                 for page in sorted([*pages, *programs], key=order)}
    of_layers = {page: defined_in(page) for page in pages if page.parent.name == "layers" or page.stem == "language"}
    rows, faults, known = [], [], public(root)
    for name, (sentence, header) in sorted(known.items(), key=lambda item: (item[0].lower(), item[0])):
        where = [page for page, names in mentioned.items() if name in names]
        if not where:
            home = "::".join(["pp", *name.split("::")[:-1]])
            faults.append(f"{header}: {name} is in namespace {home}, and no page mentions it: what is not for users belongs to pp::detail")
            continue
        homes = [page for page, names in of_layers.items() if name in names]
        if header.startswith(LAYERS) and len(homes) != 1:
            faults.append(f"{header}: {name} is in the tables of {len(homes)} pages of layers: " + (", ".join(p.name for p in homes) or "none"))
        where.sort(key=lambda page: page not in homes)
        if not sentence:
            faults.append(f"{header}: no sentence says what {name} is")
        links = ", ".join(f"[{label(p)}]({os.path.relpath(p, (root / page).parent)})" for p in where[:SHOWN])
        rows.append(f"| `{name}` | {sentence} | `{header}` | {links} |")
    added = added_names(root)
    for name, of in added.items():
        if name not in known or name not in mentioned.get(root / of, ()):
            faults.append(f"CHANGELOG.md: {name} is said to be a new name of {of}, and is " + (f"not on {of}" if name in known else "not in namespace pp"))
    if (count := sum("::" not in name for name in known)) > (most := MOST_NAMES + len(added)):
        faults.append(f"namespace pp has {count} names, and at most {most} are meant: give a new one an inner namespace, or drop another")
    return HEAD + "\n".join(rows) + "\n", faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--write", metavar="FILE", nargs="?", const=PAGE, type=Path, help="make the index; default: build/names.md of ROOT")
    parser.add_argument("--headers", action="store_true", help=f"write {HEADERS}")
    parser.add_argument("--update", action="store_true", help=f"write the tables of {STRUCTS}")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    page = root / PAGE if arguments.write in (None, PAGE) else arguments.write.resolve()
    if arguments.headers:
        (root / HEADERS).write_text(headers_page(root), encoding="utf-8")
    text, faults = make(root, page)
    faults += [*check_calls(root), *check_headers_page(root)]
    if arguments.write:
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
    faults += check_structs(root, arguments.update)
    for fault in faults:
        print(fault)
    if not faults:
        print(f"wrote {page}" if arguments.write else "every public name has a sentence and a page")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
