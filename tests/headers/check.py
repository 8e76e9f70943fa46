#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks of headers by one compiler.

alone     every header compiles by itself, included twice, warnings as errors
together  all headers compile in one file, and that file links with a copy of itself: nothing lacks `inline`; none calls std::to_string for a real
          number, which depends on the program's locale
sources   every test and example compiles without a warning (syntax only), after the headers, which are parsed once; what fails after them is judged
          without
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Of other libraries, used by some files: where one is missing, the rest is checked.
OTHERS = ("mpi.h", "nccl.h", "CLI/CLI.hpp", "benchmark/benchmark.h", "boost/hana.hpp", "boost/hana/unpack.hpp", "cuda_runtime_api.h",
          "cublasLt.h", "cudnn_graph.h", "png.h", "turbojpeg.h", "ft2build.h")


REALS = """#include <string>
#if defined _GLIBCXX_BEGIN_NAMESPACE_CXX11 && !defined __clang__  // which ignores an attribute after a definition
namespace std {
_GLIBCXX_BEGIN_NAMESPACE_CXX11
[[deprecated("depends on the locale")]] string to_string(float);
[[deprecated("depends on the locale")]] string to_string(double);
_GLIBCXX_END_NAMESPACE_CXX11
}
#endif
"""

SHOWN = 12  # lines of a compiler's output worth reading


def run(command, text=""):
    environment = {k: v for k, v in os.environ.items() if k not in ("CPATH", "CPLUS_INCLUDE_PATH")}
    result = subprocess.run(command, input=text, text=True, errors="replace", stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env={**environment, "LC_ALL": "C"})
    return result.returncode, result.stdout


class Compiler:
    def __init__(self, arguments, root):
        self.is_nvcc = "nvcc" in Path(arguments.compiler).name
        self.path = arguments.compiler
        self.systems = [option for folder in arguments.system for option in ("-isystem", folder)]
        includes = [f"-I{root / 'include'}", *self.systems]
        warnings = arguments.warnings.split()
        if self.is_nvcc:
            warnings = ["-Werror=all-warnings", "-Xcompiler=-Wall,-Wextra"]
        self.flags = ["-std=c++20", "-DPIPE_SHOWS_WARNINGS", *warnings, *includes, *[f"-D{d}" for d in arguments.define]]
        self.absent = [name for name in OTHERS if name in arguments.without or not self.has(name)]

    def has(self, header):
        language = ["-x", "cu"] if self.is_nvcc else ["-x", "c++"]
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.cpp")
            source.write_text(f"#include <{header}>\n")
            return run([self.path, *language, *self.systems, "-std=c++20", "-E", str(source), "-o", os.devnull])[0] == 0

    def needs_absent(self, file):
        return any(f"#include <{name}>" in file.read_text() for name in self.absent)

    def syntax(self, text):
        return run([self.path, *self.flags, "-fsyntax-only", "-x", "c++", "-"], text)


def first_lines(output):
    lines = [line for line in output.splitlines() if line.strip()]
    return "\n".join([*lines[:SHOWN], *(["[...]"] if len(lines) > SHOWN else [])])


def check_all(items, one):
    """Runs one(item) for all items, two at a time or more; prints the output of those that fail."""
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 2)) as pool:
        for item, (code, output) in zip(items, pool.map(one, items)):
            if code != 0:
                failed += 1
                print(f"--- {item}\n{first_lines(output)}")
    print(f"{len(items) - failed} of {len(items)} files compile")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=["alone", "together", "sources"])
    parser.add_argument("--root", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--warnings", default="")
    parser.add_argument("--define", action="append", default=[])
    parser.add_argument("--system", action="append", default=[], help="folder of another library's headers")
    parser.add_argument("--folders", nargs="+", default=["tests", "examples"], help="of sources")
    parser.add_argument("--without", action="append", default=[], help="a header of another library that is too old")
    arguments = parser.parse_args()
    root, include = arguments.root, arguments.root / "include"

    compiler = Compiler(arguments, root)
    kinds = ["*.hpp", "*.cuh"] if compiler.is_nvcc else ["*.hpp"]
    headers = [h.relative_to(include) for kind in kinds for h in sorted(include.rglob(kind))]
    left_out = [h for h in headers if compiler.needs_absent(include / h)]
    headers = [h for h in headers if h not in left_out]
    for header in left_out:
        print(f"left out: {header} (includes a library that is not installed)")

    if arguments.check == "alone":
        return check_all(headers, lambda h: compiler.syntax(f"#include <{h}>\n#include <{h}>\n"))

    if arguments.check == "sources":
        sources = [s for folder in arguments.folders for s in sorted((root / folder).rglob("*.cpp"))]
        sources = [s for s in sources if not re.search(r"/tests/((fail|package)/|[^/]+$)", str(s))]
        sources = [s for s in sources if not compiler.needs_absent(s)]
        compiler.flags += [f"-I{root / 'tests'}", f"-DPIPE_TESTS_FOLDER=\"{root / 'tests'}\""]
        instead = [f"-I{folder}" for folder in sorted((root / "tests").glob("*/stand_in"))]  # of headers of others
        command = [compiler.path, *instead, *compiler.flags]
        with tempfile.TemporaryDirectory() as folder:
            together, parsed = Path(folder, "together.hpp"), Path(folder, "together.pch")
            together.write_text("".join(f"#include <{h}>\n" for h in ["catch.hpp", *headers]))
            run([*command, "-fpch-instantiate-templates", "-x", "c++-header", str(together), "-o", str(parsed)])

            def one(source):
                if parsed.exists() and (found := run([*command, "-include-pch", str(parsed), "-fsyntax-only", str(source)]))[0] == 0:
                    return found
                return run([*command, "-fsyntax-only", str(source)])

            return check_all(sources, one)

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "all.cu" if compiler.is_nvcc else "all.cpp")
        source.write_text(("" if compiler.is_nvcc else REALS) + "".join(f"#include <{h}>\n" for h in headers))
        one, two, both = (str(Path(folder, name)) for name in ("one.o", "two.o", "both.o"))
        code, output = run([compiler.path, *compiler.flags, "-c", str(source), "-o", one])
        if code == 0:
            Path(two).write_bytes(Path(one).read_bytes())
            code, output = run(["ld", "-r", one, two, "-o", both])
        print(first_lines(output))
        print(f"{len(headers)} headers in one file: {'failed' if code else 'one definition each'}")
        return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main())
