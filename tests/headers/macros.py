#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""No name of the library is a macro of a system header that a program may include before it: macros.txt has their names.

* All headers compile after these macros have been defined as what nothing compiles with, as gnu++20, CMake's default.
* No header uses one of the names, read as text, so that headers of CUDA and of other libraries count too. Exempt are names that base/config.hpp
  ends; a header that uses one includes it, directly or not.
"""
import argparse
import re
import sys
from pathlib import Path

from check import Compiler, first_lines

INCLUDE = re.compile(r"#\s*include\s*<([^>]+)>")
ENDED = re.compile(r"^#undef (\w+)", re.MULTILINE)
APART = re.compile(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'|^\s*#\s*(?:include|undef)[^\n]*',
                   re.DOTALL | re.MULTILINE)
CONFIG = "pipe/base/config.hpp"


def macros_in(text):
    """{name: its parameters, None of an object-like macro}, of each name's widest form."""
    found = {}
    for word in re.sub(r"^# .*", "", text, flags=re.MULTILINE).split():
        name, has_parameters, parameters = word.rstrip(")").partition("(")
        if name not in found or not has_parameters:
            found[name] = parameters if has_parameters else None
    return found


def used_in(text, macros):
    """The names of macros that the text of a header has outside comments, strings and preprocessor lines."""
    code = APART.sub(" ", text)
    return {m[1] for m in re.finditer(r"\b([A-Za-z]\w*)\b(\s*\()?", code) if m[1] in macros and (macros[m[1]] is None or m[2])}


def check_text(headers, macros):
    """headers: {name: text}. Lines that say which header uses which macro."""
    ended = set(ENDED.findall(headers.get(CONFIG, "")))

    def reached(name, seen):
        if name not in seen:
            seen.add(name)
            for used in INCLUDE.findall(headers.get(name, "")):
                reached(used, seen)
        return seen

    for name, text in sorted(headers.items()):
        used = used_in(text, macros)
        for macro in sorted(used - ended):
            yield f"include/{name}: {macro} is a macro of a system header"
        if used & ended and name.endswith("pp") and CONFIG not in reached(name, set()):
            yield f"include/{name}: uses {', '.join(sorted(used & ended))} and does not include <{CONFIG}>, which ends macros of these names"


def program(others, macros, headers):
    """The headers of others, the macros unless one of those defines it, then the library's."""
    lines = [line for name in others for line in (f"#if __has_include(<{name}>)", f"#include <{name}>", "#endif")]
    for name, parameters in sorted(macros.items()):
        call = "" if parameters is None else f"({parameters})"
        lines += [f"#ifndef {name}", f"#define {name}{call} 0 = \"{name} is a macro of a system header\" =", "#endif"]
    return "\n".join([*lines, *(f"#include <{name}>" for name in headers), ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--warnings", default="")
    parser.add_argument("--define", action="append", default=[])
    parser.add_argument("--system", action="append", default=[], help="folder of another library's headers")
    parser.add_argument("--without", action="append", default=[], help="a header of another library that is too old")
    arguments = parser.parse_args()
    include = arguments.root / "include"
    macros = macros_in((Path(__file__).parent / "macros.txt").read_text())
    headers = {str(h.relative_to(include)): h.read_text() for h in sorted(include.rglob("*")) if h.suffix in (".hpp", ".cuh", ".inl")}
    problems = list(check_text(headers, macros))
    for problem in problems:
        print(problem)

    compiler = Compiler(arguments, arguments.root)
    compiler.flags[0] = "-std=gnu++20"
    compiled = [name for name in headers if name.endswith(".hpp") and not compiler.needs_absent(include / name)]
    others = sorted({used for name in compiled for used in INCLUDE.findall(headers[name]) if not used.startswith("pipe/")})
    code, output = compiler.syntax(program(others, macros, compiled))
    print(first_lines(output))
    print(f"{len(compiled)} headers after {len(macros)} macros: {'failed' if code or problems else 'compile'}")
    return 1 if code or problems else 0


if __name__ == "__main__":
    sys.exit(main())
