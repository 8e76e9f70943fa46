#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compiles a source that must be refused, and its positive twin.

The source begins with its expectations, each on a line of its own:

    // error: REGEX         the first error of every compiler matches this
    // error(nvcc): REGEX   optional: what one compiler says instead
    // says: REGEX          optional: some line of every compiler matches this, perhaps a note
    // errors: N            optional: how many errors there are (1 when not said)
    // errors(nvcc): N      optional: of one compiler
    // lines: N             optional: how many lines at most, where all words are the compiler's own
    // compilers: g++ nvcc  optional: the others skip the test
    // needs: HEADER        optional: skipped where the compiler does not find it
    // flags: FLAG...       optional: more of them
    // refused: FLAG...     optional: more for what must be refused, which its twin does without

With PIPE_EXPECT_OK defined the same source must compile; nvcc, which takes the longest, is not asked for what the others compile.

--twins SOURCE... compiles the positive twins of many sources as one program, each in a namespace of its own, or with --part K N every Nth of them from
number K on; --without-twin leaves those out that can be compiled so. A source with flags of its own, or that has more than headers before
<pipe/pipe.hpp>, or adds to the library's namespaces, is compiled by itself.

--precompile makes FOLDER (see --precompiled) of <pipe/pipe.hpp>, which most sources include: parsing it is most of what g++ and clang++ do here.
A source with flags of its own, or with more than headers before <pipe/pipe.hpp>, is compiled without; and one that fails with it is judged without.
"""
import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from joined import may_be_joined, program

# `file.cpp:12:3: error: text`, or nvcc's `file.cpp(12): error #20: text`; an echoed source line is neither.
ERROR = re.compile(r"^\S.*?(?::\d+(?::\d+)?|\(\d+\)): (?:fatal |catastrophic )?error(?: #[\w-]+)?: (.*)$", re.MULTILINE)
SKIPPED = 77
USUAL_FLAGS = {"nvcc": ["-arch=compute_80"]}
MOST_LINES = {"g++": 15, "clang++": 20, "nvcc": 20}  # of all that a compiler says, with notes and echoed sources


def expectations(text, kind):
    found = {}
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        if match := re.match(r"// (errors?(?:\([^)]*\))?|says|lines|compilers|flags|refused|needs): (.+)$", line):
            found[match[1]] = match[2].strip()
    pattern = found.get(f"error({kind})", found.get("error"))
    if pattern is None or not text.startswith("// error"):
        raise SystemExit("the first line must be: // error: REGEX")
    compilers = found.get("compilers", " ".join(MOST_LINES)).split()
    flags = found["flags"].split() if "flags" in found else USUAL_FLAGS.get(kind, [])
    refused = [*flags, *found.get("refused", "").split()]
    return pattern, int(found.get(f"errors({kind})", found.get("errors", "1"))), compilers, flags, refused, found.get("needs"), found.get("says", ""), int(found.get("lines", MOST_LINES[kind]))


def has_header(compiler, name):
    command = [compiler, "-x", "cu" if "nvcc" in os.path.basename(compiler) else "c++", "-std=c++20", "-E", "-o", os.devnull]
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write(f"#include <{name}>\n")
        source.flush()
        return subprocess.run([*command, source.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


# After comments and other headers, if any.
BEGINS_WITH_PIPE = re.compile(r"(\s*(//.*|#pragma once|#include .*)?\n)*?#include <pipe/pipe\.hpp>\n")
OWN_HEADER = re.compile(r'^#include "(.+)".*$', re.MULTILINE)


def precompile(arguments):
    """Makes the folder: g++ finds pipe/pipe.hpp.gch in it before the header, clang++ is told of it."""
    header = arguments.precompiled / "pipe" / "pipe.hpp"
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text("#include_next <pipe/pipe.hpp>\n")
    made = f"{header}.new"
    includes = [f"-I{folder}" for folder in arguments.include]
    result = subprocess.run([arguments.compiler, "-std=c++20", "-w", *includes, "-x", "c++-header", header, "-o", made])
    if result.returncode == 0:
        os.replace(made, f"{header}.gch")
    return result.returncode


def may_use_precompiled(source):
    def with_own_headers(path):
        return OWN_HEADER.sub(lambda match: with_own_headers(path.parent / match[1]), path.read_text(encoding="utf-8"))

    text = with_own_headers(Path(source))
    return BEGINS_WITH_PIPE.match(text) and not re.search(r"^// (flags|refused):", text, re.MULTILINE)


def use_of_precompiled(arguments):
    if arguments.kind == "clang++":
        return ["-include-pch", f"{arguments.precompiled}/pipe/pipe.hpp.gch"]
    return [f"-I{arguments.precompiled}", "-include", "pipe/pipe.hpp"]


# A name of the outermost namespace may be one of the source, and what a source is for may be in a header alone, or be for one compiler.
STANDS_ALONE = re.compile(r"(?<![\w>])::|^// needs:", re.MULTILINE)
OF_ONE_COMPILER = re.compile(r"^// compilers: (.+)$", re.MULTILINE)


def twin_may_be_joined(source, kind):
    """Whether the positive twin of a source can be a part of one program with others: --twins. nvcc's has the sources that are for nvcc alone."""
    text = Path(source).read_text(encoding="utf-8")
    its_compiler = OF_ONE_COMPILER.search(text)
    return (bool(may_use_precompiled(source)) and may_be_joined(source) and not STANDS_ALONE.search(text) and
            (its_compiler[1] if its_compiler else None) == ("nvcc" if kind == "nvcc" else None))


def check_twins(arguments):
    first, step = arguments.part
    sources = [source for source in arguments.twins if twin_may_be_joined(source, arguments.kind)][first::step]
    with tempfile.NamedTemporaryFile("w", suffix=".cpp", encoding="utf-8") as file:
        file.write(program(sources, inlines_its_own=True))
        file.flush()
        arguments.source = file.name
        code, output = compile_source(arguments, ["-DPIPE_EXPECT_OK", *USUAL_FLAGS.get(arguments.kind, [])])
    print(f"{len(sources)} positive twins compile" if code == 0 else f"a positive twin does not compile:\n{output}")
    return code


def compile_source(arguments, flags):
    if arguments.kind == "nvcc":
        command = [arguments.compiler, "-x", "cu", "-ptx", "-o", os.devnull]
    else:
        command = [arguments.compiler, "-fsyntax-only"]
    if not any(flag.startswith("-std=") for flag in flags):
        command.append("-std=c++20")
    if arguments.precompiled:
        command += use_of_precompiled(arguments)
    command += [*flags, *(f"-I{folder}" for folder in arguments.include), arguments.source]
    result = subprocess.run(command, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env={**os.environ, "LC_ALL": "C"})
    return result.returncode, result.stdout


def check(arguments):
    with open(arguments.source, encoding="utf-8") as file:
        text = file.read()
    pattern, count, kinds, flags, refused, header, says, most = expectations(text, arguments.kind)
    if arguments.kind not in kinds:
        print(f"not for {arguments.kind}")
        return SKIPPED
    if header and not has_header(arguments.compiler, header):
        print(f"there is no <{header}>")
        return SKIPPED
    if "PIPE_EXPECT_OK" not in text:
        print("there is no positive twin: no PIPE_EXPECT_OK in the source")
        return 1

    if not (arguments.without_twin and twin_may_be_joined(arguments.source, arguments.kind)) and (arguments.kind != "nvcc" or kinds == ["nvcc"]):
        code, output = compile_source(arguments, [*flags, "-DPIPE_EXPECT_OK"])
        if code != 0:
            print(f"the positive twin does not compile:\n{output}")
            return 1

    code, output = compile_source(arguments, refused)
    errors = ERROR.findall(output)
    problems = []
    if code == 0:
        problems.append("it compiles, and must not")
    elif not errors:
        problems.append("it is refused without a line that says error:")
    else:
        if not re.search(pattern, errors[0]):
            problems.append(f"the first error is not the expected one\n  expected: {pattern}\n  found:    {errors[0]}")
        if not re.search(says, output):
            problems.append(f"no line says {says}")
        if len(errors) != count:
            problems.append(f"{len(errors)} errors, expected {count}")
        if (lines := len(output.splitlines())) > most:
            problems.append(f"{lines} lines, at most {most} are allowed")
    if problems:
        print("\n".join(problems) + f"\n--- the compiler's words:\n{output}")
        return 1
    print(f"refused: {errors[0]}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?")
    parser.add_argument("--precompile", action="store_true")
    parser.add_argument("--twins", nargs="+", metavar="SOURCE")
    parser.add_argument("--part", nargs=2, type=int, default=(0, 1), metavar=("K", "N"))
    parser.add_argument("--without-twin", action="store_true")
    parser.add_argument("--precompiled", type=Path, metavar="FOLDER")
    parser.add_argument("--kind", choices=["g++", "clang++", "nvcc"], required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", nargs="*", default=[])
    arguments = parser.parse_args()
    if arguments.precompile:
        return precompile(arguments)
    if arguments.twins:
        return check_twins(arguments)
    if arguments.precompiled and may_use_precompiled(arguments.source):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            code = check(arguments)
        if code in (0, SKIPPED):
            print(output.getvalue(), end="")
            return code
    arguments.precompiled = None
    return check(arguments)


if __name__ == "__main__":
    sys.exit(main())
