#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""A program with strict warnings and global names of its own gets no warning from headers, and all of its own.

    test_warnings.py --root ROOT --compiler g++
"""
import argparse
import subprocess
import tempfile
import unittest
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--root", type=Path, required=True)
parser.add_argument("--compiler", required=True)
ARGUMENTS = parser.parse_args()
STRICT = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast".split()
PROGRAM = """
#include <pipe/pipe.hpp>
#include <pipe/schedule.hpp>
#include <pipe/weights/weights.hpp>
#include "names.hpp"
struct Net : pp::Model<pp::Tokens<16, 8>, pp::Embedding<16>, pp::Positions,
                       pp::Residual<pp::LayerNorm, pp::Attention<2>>, pp::Residual<pp::Linear<32>, pp::GELUTanh, pp::Linear<16>>,
                       pp::Dropout<1, 10>, pp::Linear<16>, pp::CrossEntropy> {};
using Trainer = pp::Pipeline<Net, pp::Stages<2>, pp::MicroBatches<2>, pp::PortableHost, pp::AdamW>;
double run(Trainer& trainer, Trainer::batch const& examples) {
  pp::save_weights(trainer, "weights.safetensors");
  return trainer.step(examples).loss + trainer.evaluate(examples) + double(pp::explain<Trainer>().size());
}
"""


def warnings(include, text=PROGRAM, more=()):
    """The lines of output that hold a warning or an error."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "program.cpp")
        source.write_text(text)
        consumer = ARGUMENTS.root / "tests/package/consumer"
        command = [ARGUMENTS.compiler, "-std=c++20", *STRICT, *more, include, str(ARGUMENTS.root / "include"), f"-I{consumer}",
                   "-fsyntax-only", str(source)]
        output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace").stdout
        return [line for line in output.splitlines() if "warning: " in line or "error: " in line]


class Warnings(unittest.TestCase):
    def test_headers_are_quiet(self):
        self.assertEqual([], warnings("-I"))
        last_first = PROGRAM.replace("#include <pipe/pipe.hpp>\n", "").replace("#include \"names", "#include <pipe/pipe.hpp>\n#include \"names")
        self.assertEqual([], warnings("-isystem", last_first))

    def test_the_program_is_not(self):
        own = PROGRAM + "inline unsigned own(int count) { return count; }\n"
        self.assertEqual(["[-Wshadow]", "[-Wsign-conversion]"], sorted(line.split()[-1] for line in warnings("-I", own)))

    @unittest.skipIf("clang" in ARGUMENTS.compiler, "clang++ does not warn of instantiated locals")
    def test_there_is_something_to_be_quiet_about(self):
        self.assertGreater(len(warnings("-I", more=["-DPIPE_SHOWS_WARNINGS"])), 100)


if __name__ == "__main__":
    unittest.main(argv=["test_warnings.py"])
