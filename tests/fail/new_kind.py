#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Adds a kind of op to a copy of the library: whole, it compiles and its gradient is right; without any one of its parts,
g++ refuses the program that uses it and names the part.

`square` (y = x^2 along rows) and `square_gradient` are what an engineer would add by hand: each entry of PARTS is a
place that the kinds need, and the text that goes there.
"""
import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = "    case op_kind::square:\n    case op_kind::square_gradient:"

# name: (file, the line before which the text goes, text)
ALWAYS = {
    "kind": ("graph/op_kind.hpp", "  pointwise,\n", "  square,           // x[R, C]      -> y\n"
                                                     "  square_gradient,  // dy, x        -> dx\n"),
    "builder": ("graph/builder.hpp", "  /// Softmax along each row.\n",
                "  constexpr handle square(handle x) { return push(op_kind::square, x, x.form, {}); }\n"),
}
PARTS = {
    "traits": ("graph/op_traits.hpp", '    case op_kind::pointwise: return {.name = "pointwise"};\n',
               '    case op_kind::square: return {.name = "square"};\n'
               '    case op_kind::square_gradient: return {.name = "square_gradient"};\n'),
    "gradient_rule": ("graph/differentiate.hpp", "      case op_kind::attention: attention_rule",
                      "      case op_kind::square:\n"
                      "        if (needs(x)) input(backward(op_kind::square_gradient, o, {dy, x}), x);\n"
                      "        return;\n"
                      "      case op_kind::square_gradient: return;\n"),
    "cost": ("graph/cost.hpp", "    case op_kind::concat:\n", CASES + " return {results, 8 * results};\n"),
    "workspace": ("backend/host/workspace.hpp", "    case op_kind::none:\n", CASES + " return 0;\n"),
    "host_kernel": ("backend/host/region/group.inl", "  else if constexpr (anchor == op_kind::matmul)\n",
                    "  else if constexpr (anchor == op_kind::square)\n    k::square(a);\n"
                    "  else if constexpr (anchor == op_kind::square_gradient)\n    k::square_gradient(a);\n"),
}
KERNELS = ("backend/host/region/group.inl", "  static void concat(args const& a) {\n", """  static void square(args const& a) {
    share const own = own_rows(a);
    for (extent i = own.begin * g.columns; i < own.end * g.columns; ++i)
      a.at(g.out[0])[i] = a.at(g.in[0])[i] * a.at(g.in[0])[i];
  }
  static void square_gradient(args const& a) {
    share const own = own_rows(a);
    for (extent i = own.begin * g.columns; i < own.end * g.columns; ++i)
      a.at(g.out[0])[i] = 2 * a.at(g.in[0])[i] * a.at(g.in[1])[i];
  }
""")

PROGRAM = """#include <pipe/pipe.hpp>
#include <pipe/train/check_gradients.hpp>

using namespace pp;

struct Square {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_numbers()) b.set(b.square(b.current()));
  }
};
struct Net : Model<Input<3>, Linear<4>, Square, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, SGD, PortableHost>;

double step(Trainer::batch const& batch) { return Trainer().step(batch).loss; }
int main() { return check_gradients<Square, Input<5>>().ok() ? 0 : 1; }
"""


def include_with(root, folder, parts):
    """A copy of include/ with the kinds and these parts of them."""
    include = Path(folder) / "include"
    shutil.copytree(root / "include", include)
    for file, before, text in [*ALWAYS.values(), KERNELS, *(PARTS[name] for name in parts)]:
        path = include / "pipe" / file
        source = path.read_text(encoding="utf-8")
        if source.count(before) != 1:
            raise SystemExit(f"{file}: {source.count(before)} lines {before!r}, expected one")
        path.write_text(source.replace(before, text + before), encoding="utf-8")
    return include


def compile_with(root, compiler, parts, *flags):
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "program.cpp", Path(folder) / "program"
        source.write_text(PROGRAM, encoding="utf-8")
        result = subprocess.run([compiler, "-std=c++20", *flags, f"-isystem{include_with(root, folder, parts)}", source,
                                 "-o", program], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if result.returncode == 0 and "-fsyntax-only" not in flags:
            return subprocess.run([program]).returncode, "its gradient is wrong"
        return result.returncode, result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("compiler", nargs="?", default="g++")
    arguments = parser.parse_args()
    problems = []
    code, output = compile_with(arguments.root, arguments.compiler, PARTS, "-pthread")
    if code != 0:
        problems.append(f"with all its parts:\n{output}")
    for missing in PARTS:
        kept = [name for name in PARTS if name != missing]
        code, output = compile_with(arguments.root, arguments.compiler, kept, "-fsyntax-only")
        if code == 0:
            problems.append(f"without {missing}: it compiles, and must not")
        elif f"op_kind_without::{missing}" not in output and f"function '{missing}'" not in output:
            problems.append(f"without {missing}: no line names it\n{output}")
    code, output = compile_with(arguments.root, arguments.compiler, [], "-fsyntax-only")
    if code == 0:
        problems.append("with a name and a builder function alone: it compiles, and must not")
    print("\n".join(problems) if problems else "every part is asked for")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
