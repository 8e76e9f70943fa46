#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Holds the source tree to its rules; prints every line that breaks one as `file:line: what is wrong`.

* A folder of include/pipe includes itself and folders earlier in ORDER only, less the pairs in APART. No two directories include each
  other, directly or not, a folder and a folder within it included; a directory has at most MOST_FILES files, an .inl file of a
  header not counted.
* x.inl beside x.hpp has definitions of x.hpp, which includes it under `#ifdef PIPE_DEFINED` when all is declared. Each begins with PIPE_DEFINED,
  and is in the library pipe::compiled: compiled.inl leads to the header, as to each header with a template that is compiled there. The includes of x.inl are bound as those of x.hpp are.
* A header declares no class that a folder after its own defines, and defines no member of a class of another header: what a header means
  does not depend on which others are included.
* Only hana.hpp includes Boost, and only catch.hpp of the tests includes Catch2, which has other headers by version.
* A header that no other header includes, outside of backend/, is one for programs: it is a system header unless PIPE_SHOWS_WARNINGS.
* Nothing that pipe.hpp includes, directly or not, includes one of HEAVY, which every program would read.
* Includes are spelled <pipe/...>, name a file that exists, and make no cycle.
* Every source file has the licence line; a header has at most LONGEST lines and #pragma once.
* No header declares a `consteval` function: clang++ 14 refuses to call one with a constant that depends on a template parameter.
* No header has a directory_iterator of <filesystem>, which in libstdc++ ends the program where memory runs out: io/folder_reader.hpp.
* No static constant is made of a concept of std: g++ 14 leaves constants that are computed from it without a value, and says nothing, if a
  template of a program is the first to name them. A type trait has the same value.
* No template argument list is torn into comparisons (`f < P, G > (x)`), as clang-format does where an argument has `<` or `&&`: torn.py.
* No header but base/real_text.hpp writes or reads a real number by what depends on the locale (LOCALE): printf's %g, strtod, streams, <cctype>.
* include/ defines at most MOST_MACROS macros, each named PIPE_*.
* A function of include/, and a lambda, has at most MOST_PARAMETERS parameters, and a class at most MOST_FIELDS fields: signatures.py.
* Lines of include/ have at most WIDTH columns.
* A header's first comment opens with what the header is: no question word, no verb (OPENINGS), and no comment opens with "What is".
* Comments and pages use the field's words: none of WORDS.
* At least COMMENTS percent of the lines of include/ are comments and nothing else.
* The comment above a kernel has a `shape:` line: above a host kernel, a kernel body and a __global__ function.
* No file holds an absolute path of somebody's machine.
"""
import functools
import re
import sys
from pathlib import Path

from signatures import signatures
from torn import TIGHT, torn_lists

ORDER = ["base", "io", "schedule", "graph", "nn", "passes", "optim", "weights", "data", "backend", "transport", "runtime",
         "metrics", "plan", "train/parts", "checkpoint", "train", "loose", "infer", "report"]
APART = {  # these may never include those
    "graph": ["schedule"],
    "backend/host": ["backend/cuda"],
    "backend/cuda": ["backend/host"],
}
HEAVY = ["algorithm", "chrono", "filesystem", "fstream", "functional", "iostream",
         "memory", "optional", "sstream", "thread", "unordered_map"]
LONGEST = 450
WIDTH = 100
MOST_FILES = 40
COMMENTS = 18
FEW_LINES = 1000  # of which no share is asked
MOST_MACROS = 9
MOST_PARAMETERS = 8
MOST_FIELDS = 35
WORDS = {  # not -> but
    r"mend(s|ed|ing)?": "fix",
    r"lest": "so that ... not",
    r"so many": "the number: N, that many",
    r"who(m|so)?ever": "the caller, the reader, the rank",
    r"(no|some|every)body": "no thread, the caller, every rank",
    r"(a|the) user's own|one's own": "user-defined",
    r"in vain": "timed out",
    r"hither(to)?|thither|hence(forth)?|thereof|whereof|wherein|herein": "a plain word",
    r"attention[ _]turn": "rope",
    r"row_order": "radix_sort_rows",
    r"cuda_race": "autotune",
}
LOCALE = re.compile(r'"[^"\n]*%[-+ #0-9.*]*[aefgAEFG][^"\n]*"|\b(?:(?:str|wcs)to(?:d|f|ld)|atof|sto(?:d|f|ld)|v?s?scanf|[io]?stringstream|setprecision|'
                    r"is(?:alpha|alnum|digit|space|upper|lower|punct|print|xdigit|graph|cntrl)|to(?:lower|upper)|setlocale|strcoll|strftime|put_time)\b(?=\()"
                    r"|\b[io]?stringstream\b|\b[io]?fstream\b(?!>)")
CLASSIC = ".imbue(std::locale::classic())"
OPENINGS = re.compile(r"(what|how|where|which|who|whose|whether|when|why|from|to|if|as|it|there|everything|nothing|"
                      r"runs|draws|puts|lays|makes|gives|refuses|finds|keeps|holds|says|tells|reads|writes|computes)\b", re.IGNORECASE)
LICENCE = "SPDX-License-Identifier: BSL-1.0"

HEADERS = {".hpp", ".cuh"}
SOURCES = HEADERS | {".cpp", ".cu", ".py", ".sh", ".cmake"}
CODE = HEADERS | {".inl", ".cpp", ".cu"}
FOLDERS = ["include", "tests", "examples", "tools", "bench", "docs", "cmake", ".ci"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)")
QUIET = "#pragma once\n#ifndef PIPE_SHOWS_WARNINGS\n#pragma GCC system_header\n#endif\n"
ITERATOR = re.compile(r"^[^/]*\b(recursive_)?directory_iterator\b")
IMMEDIATE = re.compile(r"^[^/]*\bconsteval\b")
CONCEPT = re.compile(r"^\s*static constexpr (?:bool|int|long|auto) \w+ =[^{]*\bstd::(same_as|integral|floating_point|(un)?signed_integral|convertible_to|derived_from)<")
NAMESPACE = re.compile(r"^(?:inline )?namespace ([\w:]+) \{")
COMMENT = re.compile(r"//[/!]*<?\s*(.*)")
WORD = re.compile(r"\b(" + "|".join(f"(?:{word})" for word in WORDS) + r")\b", re.IGNORECASE)
END = re.compile(r"^\}  // namespace")
DECLARED = re.compile(r"^(?:template <[^;{]*>\s*)?(?:class|struct|enum class|enum|union) (?:PIPE_\w+ )?(\w+)(?: : [\w: ]+)?;")
DEFINED = re.compile(r"^(?:template <.*> )?(?:class|struct|enum class|enum|union) (?:\w+\(.*?\) |PIPE_\w+ )*(\w+)(?:<.*>)?(?: final)?(?: :[^:].*)?(?: \{.*|)$")
MEMBER = re.compile(r"^[^/#=]*?\b(\w+)(?:<[^()]*>)?::(?:~?\w+|operator\W+)\(")
KERNEL = re.compile(r"^struct kernel_of<op_kind::|^[^/]*\b__global__\b|^  PIPE_HD static void run\(Block& block, ")
ABSOLUTE = re.compile(r'(?<![\w.:/~}$-])/(?:home|root|work|workspace|Users|mnt|opt|var/folders)/\w|#\s*include\s*[<"]/')


def room_of(path):
    """The entry of ORDER of a header's path: the folder that it is in, or the first one; nothing if it has none."""
    folders = [str(folder) for folder in Path(path).parents]
    return next((folder for folder in folders if folder in ORDER), "")


def may_include(user, used):
    """Whether a header may include another one, by their folders; why not, otherwise."""
    room, other = room_of(user), room_of(used)
    if not room:
        return ""
    if not other:
        return "a header inside a folder may not include a header of all"
    for name, refused in APART.items():
        for apart in refused:
            if user.startswith(f"{name}/") and used.startswith(f"{apart}/"):
                return f"{name}/ may not include {apart}/"
    if ORDER.index(other) > ORDER.index(room):
        return f"{room}/ comes before {other}/"
    return ""


def check_headers(root):
    include = root / "include" / "pipe"
    uses, heavy = {}, {}
    for header in sorted(p for p in include.rglob("*") if p.suffix in HEADERS):
        name = header.relative_to(include).as_posix()
        lines = header.read_text().splitlines()
        uses[name] = []
        where = header.relative_to(root)
        if "/" in name and not room_of(name):
            yield f"{where}:1: the folder {name.split('/')[0]}/ has no place in the order of folders"
            continue
        if len(lines) > LONGEST:
            yield f"{where}:{LONGEST + 1}: {len(lines)} lines; a header has at most {LONGEST}"
        if "#pragma once" not in lines:
            yield f"{where}:1: no #pragma once"
        for number, line in enumerate(lines, 1):
            if IMMEDIATE.match(line):
                yield f"{where}:{number}: write constexpr, clang++ 14 cannot always call it: {line.strip()}"
            if ITERATOR.match(line):
                yield f"{where}:{number}: take io/folder_reader.hpp, these end a program without memory: {line.strip()}"
            if CONCEPT.match(line):
                yield f"{where}:{number}: write a type trait, g++ 14 may lose the constant: {line.strip()}"
            if not (match := INCLUDE.match(line)):
                continue
            if match[1] == '"':
                yield f"{where}:{number}: write <pipe/...>: {line.strip()}"
            elif match[2].startswith("boost/") and name != "hana.hpp":
                yield f"{where}:{number}: only pipe/hana.hpp needs Boost: {line.strip()}"
            elif match[2] in HEAVY:
                heavy.setdefault(name, []).append((number, match[2]))
            elif match[2].startswith("pipe/"):
                used = match[2].removeprefix("pipe/")
                if not (include / used).exists():
                    yield f"{where}:{number}: there is no such header: {line.strip()}"
                elif "/" not in used or room_of(used):
                    uses[name].append((used, number))
                    if why := may_include(name, used):
                        yield f"{where}:{number}: {why}: {line.strip()}"
    included = {used for user in uses.values() for used, _ in user}
    for name in uses:
        if name not in included and not name.startswith("backend/") and name.endswith(".hpp"):
            if QUIET not in (include / name).read_text():
                yield f"include/pipe/{name}:1: a header for programs is without the pragma that keeps it quiet"
    for name in sorted(reached(uses, "pipe.hpp")):
        for number, what in heavy.get(name, []):
            yield (f"include/pipe/{name}:{number}: <{what}> costs every program "
                   "that includes <pipe/pipe.hpp>")
    yield from cycles(uses)
    yield from folder_cycles(uses)
    for folder in sorted(p for p in include.rglob("*") if p.is_dir()):
        if (files := sum(p.is_file() and not is_definitions(p) for p in folder.iterdir())) > MOST_FILES:
            yield f"{folder.relative_to(root)}: {files} files; a folder has at most {MOST_FILES}"


def is_definitions(path):
    """Whether a file has the definitions of a header."""
    return path.suffix == ".inl" and path.with_suffix(".hpp").exists()


def check_definitions(root):
    include = root / "include" / "pipe"
    uses = {}
    for path in sorted(p for p in include.rglob("*") if p.suffix in CODE):
        uses[path.relative_to(include).as_posix()] = [(match[2].removeprefix("pipe/"), 0) for line in path.read_text().splitlines()
                                                      if (match := INCLUDE.match(line)) and match[2].startswith("pipe/")]
    compiled = reached(uses, "compiled.inl") | reached(uses, "compiled.hpp")
    for name in uses:
        if name not in compiled and "\nPIPE_COMPILED template" in (include / name).read_text():
            yield f"include/pipe/{name}:1: pipe::compiled does not have its templates: include/pipe/compiled.inl leads to no header that includes it"
    for path in sorted(p for p in include.rglob("*.inl") if is_definitions(p) and p.name != "compiled.inl"):
        name, where = path.relative_to(include).as_posix(), path.relative_to(root)
        lines = path.read_text().splitlines()
        if f"}}\n#ifdef PIPE_DEFINED\n#include <pipe/{name}>\n#endif\n" not in re.sub(r"(?m)^\}  // namespace.*$", "}", path.with_suffix(".hpp").read_text()):
            yield f"{where}:1: its header does not include it under #ifdef PIPE_DEFINED, behind its declarations"
        if name not in compiled:
            yield f"{where}:1: pipe::compiled does not compile it: include/pipe/compiled.inl leads to no header that includes it"
        for number, line in enumerate(lines, 1):
            if re.match(r"(?!PIPE_DEFINED).*\binline\b", line.split("//")[0]):
                yield f"{where}:{number}: write PIPE_DEFINED for inline: {line.strip()}"
            if (match := INCLUDE.match(line)) and match[2].startswith("pipe/") and (why := may_include(name, match[2].removeprefix("pipe/"))):
                yield f"{where}:{number}: {why}: {line.strip()}"


def reached(uses, name):
    """The headers that one includes, directly or not, and itself."""
    found, todo = set(), [name]
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += [used for used, _ in uses.get(name, [])]
    return found


def names_of(lines):
    """(number, namespace, line) of every line at namespace scope; the namespaces of a line are joined by `::`."""
    inside = []
    for number, line in enumerate(lines, 1):
        if match := NAMESPACE.match(line):
            inside.append(match[1])
        elif END.match(line):
            inside.pop()
        elif inside and line and not line[0].isspace():
            yield number, "::".join(inside), line


def check_declarations(root):
    include = root / "include" / "pipe"
    declared, defined, members = [], {}, []
    for header in sorted(p for p in include.rglob("*") if p.suffix in HEADERS):
        for number, scope, line in names_of(header.read_text().splitlines()):
            if match := DECLARED.match(line):
                declared.append((header, number, (scope, match[1])))
            elif match := DEFINED.match(line):
                defined.setdefault((scope, match[1]), set()).add(header)
            elif match := MEMBER.match(line):
                members.append((header, number, (scope, match[1])))
    place = lambda header: ORDER.index(room) if (room := room_of(header.relative_to(include))) else len(ORDER)
    for header, number, name in declared:
        homes = defined.get(name, set())
        if homes and min(map(place, homes)) > place(header):
            yield f"{header.relative_to(root)}:{number}: {name[1]} is defined above, in {min(homes).relative_to(root)}"
    for header, number, name in members:
        homes = defined.get(name, set())
        if homes and header not in homes:
            yield f"{header.relative_to(root)}:{number}: a member of {name[1]}, which is of {min(homes).relative_to(root)}"


def rings(uses):
    """The cycles of a graph, each a list that ends with its first node: uses[node] are the nodes that it leads to."""
    done, trail = set(), []

    def visit(node):
        if node in trail:
            yield [*trail[trail.index(node):], node]
        elif node not in done:
            trail.append(node)
            for used in uses.get(node, []):
                yield from visit(used)
            done.add(trail.pop())

    for node in uses:
        yield from visit(node)


def cycles(uses):
    for ring in rings({name: [other for other, _ in used] for name, used in uses.items()}):
        yield f"include/pipe/{ring[0]}:1: includes itself: {' -> '.join(ring)}"


def folder_cycles(uses):
    """A cycle of directories, by one include directive for each of its steps."""
    steps = {}
    for name, used in uses.items():
        for other, number in used:
            user, folder = (str(Path(n).parent) for n in (name, other))
            if user != folder and "." not in (user, folder):
                steps.setdefault(user, {}).setdefault(folder, f"{name}:{number} -> {other}")
    for ring in rings({user: sorted(folders) for user, folders in sorted(steps.items())}):
        yield (f"include/pipe/{ring[-2]}: folders include each other: {' -> '.join(ring)}: "
               + ", ".join(steps[a][b] for a, b in zip(ring, ring[1:])))


def check_texts(root):
    files = [p for folder in FOLDERS for p in sorted((root / folder).rglob("*")) if p.is_file()]
    files += [p for p in sorted(root.iterdir()) if p.is_file() and p.name != ".git"]  # a file in a linked work tree

    @functools.cache
    def templates():
        return {name for p in files if p.suffix in CODE for name in TIGHT.findall(p.read_text(encoding="utf-8"))}

    def is_template(name):
        return name in templates()

    for path in files:
        if "__pycache__" in path.parts:
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        where = path.relative_to(root)
        if path.suffix in SOURCES or path.name == "CMakeLists.txt":
            if not any(LICENCE in line for line in lines[:6]):
                yield f"{where}:1: no licence line: {LICENCE}"
        if path.suffix in CODE:
            for number in torn_lists("\n".join(lines), is_template):
                yield f"{where}:{number}: a torn template argument list, name its arguments: {lines[number - 1].strip()}"
        for number, line in enumerate(lines, 1):
            if path.suffix in CODE and where.name != "catch.hpp" and (match := INCLUDE.match(line)) and match[2].startswith("catch2/"):
                yield f"{where}:{number}: include \"catch.hpp\", which knows Catch2's versions: {line.strip()}"
            if ABSOLUTE.search(line):
                yield f"{where}:{number}: an absolute path: {line.strip()}"


def check_macros(root):
    macros = set()
    for path in sorted(p for p in (root / "include").rglob("*") if p.suffix in CODE):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not (match := MACRO.match(line)) or match[1] in macros:
                continue
            macros.add(match[1])
            where = f"{path.relative_to(root)}:{number}"
            if not match[1].startswith("PIPE_"):
                yield f"{where}: a macro that a program may have: {match[1]}"
            if len(macros) > MOST_MACROS:
                yield f"{where}: {match[1]} is macro number {len(macros)}; there are at most {MOST_MACROS}"


def check_signatures(root):
    for path in sorted(p for p in (root / "include").rglob("*") if p.suffix in CODE):
        for name, line, count in signatures(path.read_text()):
            what, most = ("fields", MOST_FIELDS) if name.startswith("class ") else ("parameters", MOST_PARAMETERS)
            if count > most:
                yield f"{path.relative_to(root)}:{line}: {name} has {count} {what}, make a struct of some; there are at most {most}"


def check_locale(root):
    for path in sorted(p for p in (root / "include").rglob("*") if p.suffix in CODE):
        text = path.read_text()
        if path.name == "real_text.hpp" or CLASSIC in text:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if match := LOCALE.search(re.sub(r"(?<!:)//.*", "", line)):
                yield f"{path.relative_to(root)}:{number}: depends on the program's locale, base/real_text.hpp does not: {match[0]}"


def prose_of(path, lines):
    """(number, text) of what is written for people: comments of code, a page but for its programs."""
    is_program = False
    for number, line in enumerate(lines, 1):
        if path.suffix == ".md":
            is_program ^= line.startswith("```")
            if not is_program:
                yield number, line
        elif match := COMMENT.search(line):
            yield number, match[1]


def check_prose(root):
    pages = [p for p in sorted(root.glob("*.md"))] + [p for p in sorted((root / "docs").rglob("*.md"))]
    for path in pages + [p for folder in ("include", "examples") for p in sorted((root / folder).rglob("*")) if p.suffix in CODE]:
        lines = path.read_text(encoding="utf-8").splitlines()
        where = path.relative_to(root)
        prose = list(prose_of(path, lines))
        for number, text in prose:
            for match in WORD.finditer(text):
                better = next(term for word, term in WORDS.items() if re.fullmatch(word, match[1], re.IGNORECASE))
                yield f"{where}:{number}: `{match[1]}`: write {better}"
            if path.suffix in CODE and re.match(r"What (is|are)\b", text):
                yield f"{where}:{number}: a comment opens with the noun: {text}"
        if where.parts[0] != "include":
            continue
        for number, line in enumerate(lines, 1):
            if len(line) > WIDTH:
                yield f"{where}:{number}: {len(line)} columns; there are at most {WIDTH}"
        opening = next(((number, text) for number, text in prose if text and LICENCE not in text), None)
        if opening and OPENINGS.match(opening[1]):
            yield f"{where}:{opening[0]}: a header opens with what it is, a noun phrase: {opening[1]}"


def check_share(root):
    lines = [line.strip() for p in sorted((root / "include").rglob("*")) if p.suffix in CODE for line in p.read_text().splitlines()]
    comments = sum(line.startswith("//") for line in lines)
    if len(lines) >= FEW_LINES and 100 * comments < COMMENTS * len(lines):
        yield f"include/pipe:1: {100 * comments / len(lines):.2f} % of {len(lines)} lines are comments; there are at least {COMMENTS} %"


def comment_above(lines, i):
    """The comment above the declaration in line i, whose template parameters may take lines of their own."""
    def is_comment(line):
        return line.lstrip().startswith("//")
    while i > 0 and lines[i - 1].strip() and not is_comment(lines[i - 1]) and not lines[i - 1].rstrip().endswith((";", "}")):
        i -= 1
    end = i
    while i > 0 and is_comment(lines[i - 1]):
        i -= 1
    return lines[i:end]


def check_kernels(root):
    for path in sorted(p for p in (root / "include").rglob("*") if p.suffix in CODE):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            if not (match := KERNEL.match(line)) or (line.startswith("struct") and "/cuda/" in path.as_posix()):
                continue  # on CUDA kernel_of lists bodies, each of which has its contract
            at = number - 1
            while match[0].startswith("  ") and at > 0 and not lines[at].startswith("struct "):
                at -= 1  # the contract of a body is that of its struct
            if not any("shape:" in text for text in comment_above(lines, at)):
                yield f"{path.relative_to(root)}:{at + 1}: a kernel without a shape: {lines[at].strip()}"


def check(root):
    return [*check_headers(root), *check_macros(root), *check_signatures(root), *check_locale(root), *check_prose(root), *check_share(root), *check_kernels(root), *check_declarations(root), *check_definitions(root), *check_texts(root)]


if __name__ == "__main__":
    problems = check(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(problems) if problems else "every rule holds")
    sys.exit(1 if problems else 0)
