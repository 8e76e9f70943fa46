#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Adds a kind of op to a copy of the library: whole, it compiles and its gradient is right on both backends; without any one of
its parts, g++ refuses the program that uses it and names the part.

The text of each part is a region of new_kind.txt. The kernel for a GPU runs on the CPU, as in tests/cuda.
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MOST_FILES = 7
# name: (file, the line before which its text goes, what the compiler says without it, or nothing where the program itself names the part)
PARTS = {
    "kind": ("graph/op_kind.hpp", "  pointwise,\n", None),
    "builder": ("graph/op_functions.hpp", "  /// Softmax along each row.\n", None),
    "traits": ("graph/op_traits.hpp", '    case op_kind::pointwise: return {.name = "pointwise"};\n', r"op_kind_without::traits"),
    "gradient_rule": ("graph/differentiate.hpp", "      case op_kind::attention: attention_rule", r"op_kind_without::gradient_rule"),
    "cost": ("graph/cost.hpp", "    case op_kind::concat:\n", r"op_kind_without::cost"),
    "host_kernel": ("backend/host/per_isa/norm.inl", "template <>\nstruct kernel_of<op_kind::norm> :",
                    r"host::portable::kernel_of<pp::op_kind::center>.* has incomplete type|incomplete type .*host::portable::kernel_of<pp::op_kind::center>"),
    "cuda_kernel": ("backend/cuda/rows/rowwise.hpp", "template <>\nstruct kernel_of<op_kind::norm> :",
                    r"incomplete type .*cuda::kernel_of<pp::op_kind::center>"),
}
# A host kernel without facts says nothing of its workspace.
NO_FACTS = ("backend/host/per_isa/norm.inl", "struct kernel_of<op_kind::center> : row_facts {", "struct kernel_of<op_kind::center> {")
# A builder that gives attributes which the row of the kind does not name.
MORE_ATTRIBUTES = ("graph/op_functions.hpp", "push(op_kind::center, x, x.form, {})",
                   "push(op_kind::center, x, x.form, {}, lookup_attributes{2})")

PROGRAM = """#include "cuda/on_host.hpp"
#include <pipe/infer/decoder.hpp>
#include <pipe/train/check_gradients.hpp>

using namespace pp;

template class pp::detail::new_rows<float>;  // -Wswitch-enum looks at what is instantiated

struct Center {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (b.needs_numbers()) b.set(b.center(b.current()));
  }
};
struct Net : Model<Input<3>, Linear<4>, Center, Linear<2>, MSE> {};
template <class Backend>
double trained() {
  using Trainer = Pipeline<Net, SGD, Backend>;
  float const x[] = {0.5f, -1, 2}, y[] = {1, -1};
  Trainer trainer;
  trainer.step({x, y});
  return trainer.step({x, y}).loss;
}

int main() {
  double const host = trained<PortableHost>(), device = trained<on_host::Kernels>();
  bool const agree = host - device < 1e-6 && device - host < 1e-6;
  return agree && check_gradients<Center, Input<5>>().ok() ? 0 : 1;
}
"""


def replace_once(include, file, old, new):
    path = include / "pipe" / file
    source = path.read_text(encoding="utf-8")
    if source.count(old) != 1:
        raise SystemExit(f"{file}: {source.count(old)} times {old!r}, expected once")
    path.write_text(source.replace(old, new), encoding="utf-8")


def compile_with(root, compiler, parts, replaced=None, runs=False):
    """Exit code and output of the compiler, and of the program if it runs."""
    texts = (root / "tests/fail/new_kind.txt").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        include, source, program = Path(folder) / "include", Path(folder) / "program.cpp", Path(folder) / "program"
        shutil.copytree(root / "include", include)
        for name in parts:
            file, before, _ = PARTS[name]
            text = re.search(rf" *// \[{name}\]\n(.*?) *// \[/{name}\]\n", texts, re.DOTALL)[1]
            replace_once(include, file, before, f"{text}\n{before}")
        if replaced:
            replace_once(include, *replaced)
        source.write_text(PROGRAM, encoding="utf-8")
        result = subprocess.run([compiler, "-std=c++20", "-pthread", f"-I{include}", f"-I{root}/tests",
                                 "-DPIPE_SHOWS_WARNINGS", "-Wswitch-enum", "-Werror", source,
                                 *(["-DPIPE_DEBUG_KERNELS", "-DPIPE_INSTRUCTION_SETS=", "-o", program] if runs else ["-fsyntax-only"])],
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if result.returncode == 0 and runs:
            return subprocess.run([program]).returncode, "its gradient is wrong, or its backends differ"
        return result.returncode, result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("compiler", nargs="?", default="g++")
    arguments = parser.parse_args()
    problems = []
    if len({file for file, _, _ in PARTS.values()}) > MOST_FILES:
        problems.append(f"a kind of op takes more than {MOST_FILES} files")
    code, output = compile_with(arguments.root, arguments.compiler, PARTS, runs=True)
    if code != 0:
        problems.append(f"with all its parts:\n{output}")
    cases = [(missing, [name for name in PARTS if name != missing], None, PARTS[missing][2]) for missing in PARTS if PARTS[missing][2]]
    cases.append(("workspace", list(PARTS), NO_FACTS, r"workspace_bytes"))
    cases.append(("attributes in its row", list(PARTS), MORE_ATTRIBUTES, r"op_kind_without::attributes"))
    for missing, kept, replaced, says in cases:
        code, output = compile_with(arguments.root, arguments.compiler, kept, replaced)
        if code == 0:
            problems.append(f"without {missing}: it compiles, and must not")
        elif not re.search(says, output):
            problems.append(f"without {missing}: no line says {says!r}\n{output}")
    print("\n".join(problems) if problems else "every part is asked for")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
