#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Makes one header of many: `single_header.py include [HEADER...] -o pipe.hpp --check g++`, of pipe/pipe.hpp if none is named.

Every <pipe/...> include is replaced by the file: a header where it is first included, an .inl wherever it is included. Includes of
other libraries stay. A header that is included under a condition is guarded, for it may be needed again where that does not hold. --check
compiles the result with nothing beside it.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

INCLUDE = re.compile(r"^\s*#\s*include\s*<([^>]+)>")
OPENS = re.compile(r"^\s*#\s*(if|ifdef|ifndef)\b")
ELSE = re.compile(r"^\s*#\s*(else|elif)\b")
CLOSES = re.compile(r"^\s*#\s*endif\b")
LICENCE = "// SPDX-License-Identifier: BSL-1.0"


class SingleHeader:
    def __init__(self, include):
        self.include = include
        self.lines = []
        self.there = [set()]  # what stands there already: under no condition, and under each condition that is open
        self.guarded = set()  # headers that stand there under one
        self.open = []        # the files that are being inlined, the innermost last

    def is_there(self, name):
        return any(name in names for names in self.there)

    def add(self, name):
        if self.is_there(name):
            return
        path = self.include / name
        if not path.is_file():
            raise SystemExit(f"{self.open[-1] if self.open else 'command line'}: there is no {name}")
        if name in self.open:
            raise SystemExit(f"{' -> '.join([*self.open, name])}: includes itself")
        is_header = path.suffix != ".inl"
        guard = is_header and (len(self.there) > 1 or name in self.guarded)
        macro = "PIPE_SINGLE_" + re.sub(r"\W", "_", name).upper()
        if is_header:
            self.there[-1].add(name)
        if guard:
            self.guarded.add(name)
            self.lines += [f"#ifndef {macro}", f"#define {macro}"]
        self.open.append(name)
        self.lines += ["", f"// {name}"]
        self.add_lines(path)
        self.open.pop()
        if guard:
            self.lines.append(f"#endif  // {macro}")

    def add_lines(self, path):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line in (LICENCE, "#pragma once"):
                continue
            if OPENS.match(line):
                self.there.append(set())
            elif ELSE.match(line):
                self.there[-1] = set()
            elif CLOSES.match(line):
                self.there.pop()
            match = INCLUDE.match(line)
            if match and match[1].startswith("pipe/"):
                self.add(match[1])
            elif match is None:
                self.lines.append(line)
            elif not self.is_there(match[1]):
                self.there[-1].add(match[1])
                self.lines.append(line)

    def text(self):
        head = [LICENCE, "//", "// All of pipe in one header, made by cmake/single_header.py. Change the headers it was made of instead.",
                "#pragma once"]
        text = "\n".join([*head, *self.lines]) + "\n"
        return re.sub(r"\n{3,}", "\n\n", text)


def single_header(include, names):
    one = SingleHeader(include)
    for name in names:
        one.add(name)
    return one.text()


def complaint(text, compiler):
    """What the compiler says of the header alone, included twice; empty if nothing."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "one.hpp").write_text(text, encoding="utf-8")
        Path(folder, "main.cpp").write_text('#include "one.hpp"\n#include "one.hpp"\nint main() {}\n')
        result = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", str(Path(folder, "main.cpp"))], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace")
        return result.stdout if result.returncode != 0 else ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("include", type=Path, help="the folder that holds pipe/")
    parser.add_argument("headers", nargs="*", default=["pipe/pipe.hpp"])
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--check", metavar="COMPILER", help="compile it alone")
    arguments = parser.parse_args()
    text = single_header(arguments.include, arguments.headers)
    if arguments.check and (why := complaint(text, arguments.check)):
        raise SystemExit(f"it does not compile alone:\n{why[:3000]}")
    if arguments.output:
        arguments.output.write_text(text, encoding="utf-8")
        checked = f", compiles alone with {arguments.check}" if arguments.check else ""
        print(f"{arguments.output}: {text.count(chr(10))} lines{checked}")
    else:
        sys.stdout.write(text)
