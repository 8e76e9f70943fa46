#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes cute_layouts.hpp: descriptors of wgmma's operands, where their elements lie, and where its sums are, as CUTLASS's CuTe computes them.

    cute_layouts.py --include CUTLASS/include CUDA/include CUDA/include/cccl

Needs g++ and the headers of CUTLASS 3 or 4 and of CUDA, of which nothing is part of this repository. Run it by hand: tests read what it wrote.
"""
import argparse
import re
import subprocess
import tempfile
from pathlib import Path

ROWS, DEPTHS = (0, 1, 7, 8, 15, 31, 63), (0, 1, 7, 8, 15)
THREADS, SUMS = (0, 1, 5, 31, 32, 77, 127), (0, 1, 2, 3, 4, 7, 31)

PROGRAM = r"""
#include <cstdio>
#include <cute/tensor.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
using namespace cute;
namespace gmma = SM90::GMMA;
using number = cutlass::half_t;
alignas(1024) static number memory[256 * 64];

// The first 16 k of an operand in a tile 64 deep.
template <class Atom, gmma::Major Along, int Extent>
void print(char const* pattern, char const* along) {
  Tensor whole = make_tensor(make_smem_ptr(memory), tile_to_shape(Atom{}, Shape<Int<Extent>, Int<64>>{}));
  Tensor part = local_tile(whole, Shape<Int<Extent>, Int<16>>{}, make_coord(0, 0));
  std::printf("\noperand %s %s %d %llx", pattern, along, Extent, (unsigned long long)gmma::make_gmma_desc<Along>(part).desc_);
  for (int k : {DEPTHS})
    for (int m : {ROWS}) std::printf(" %d", int((char const*)&whole(m, k) - (char const*)memory));
  std::printf("\n");
}
template <class AlongK, class AlongMn>
void print_all(char const* pattern) {
  print<AlongK, gmma::Major::K, 64>(pattern, "k");
  print<AlongK, gmma::Major::K, 128>(pattern, "k");
  print<AlongMn, gmma::Major::MN, 64>(pattern, "mn");
  print<AlongMn, gmma::Major::MN, 128>(pattern, "mn");
}
int main() {
  print_all<gmma::Layout_K_INTER_Atom<number>, gmma::Layout_MN_INTER_Atom<number>>("none");
  print_all<gmma::Layout_K_SW32_Atom<number>, gmma::Layout_MN_SW32_Atom<number>>("bytes_32");
  print_all<gmma::Layout_K_SW64_Atom<number>, gmma::Layout_MN_SW64_Atom<number>>("bytes_64");
  print_all<gmma::Layout_K_SW128_Atom<number>, gmma::Layout_MN_SW128_Atom<number>>("bytes_128");
  for (int t : {THREADS})
    for (int i : {SUMS}) std::printf("\nsum %d %d %d %d", t, i, int(gmma::CLayout_64x64{}(t, i)) % 64, int(gmma::CLayout_64x64{}(t, i)) / 64);
  std::printf("\n");
}
"""

HEADER = """// SPDX-License-Identifier: BSL-1.0
//
// Operands and sums of wgmma as CUTLASS's CuTe lays them out: written by cute_layouts.py.
#pragma once

#include <cstdint>

namespace golden {{

/// Element (mn, k) of an operand of 16-bit numbers at address 0: bytes, for each k all of mn.
struct cute_operand {{
  int pattern_bytes;  ///< of a row; 16: no swizzle
  bool is_along_k;
  int extent;
  std::uint64_t descriptor;
  int places[{places}];
}};
inline constexpr int cute_mn[] = {{{rows}}}, cute_k[] = {{{depths}}};
inline constexpr cute_operand cute_operands[] = {{
{operands}
}};

/// Sum i of a thread.
struct cute_sum {{
  int thread, i, row, column;
}};
inline constexpr cute_sum cute_sums[] = {{
{sums}
}};

}}  // namespace golden
"""


def wrapped(items, indent, width=100):
    lines, line = [], " " * indent
    for item in items:
        if len(line) + len(item) + 2 > width:
            lines.append(line.rstrip())
            line = " " * indent
        line += item + ", "
    return "\n".join([*lines, line.rstrip().rstrip(",")])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", nargs="+", required=True)
    arguments = parser.parse_args()
    listed = {name: ", ".join(map(str, values)) for name, values in
              {"ROWS": ROWS, "DEPTHS": DEPTHS, "THREADS": THREADS, "SUMS": SUMS}.items()}
    source = re.sub("|".join(listed), lambda m: listed[m[0]], PROGRAM)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "layouts.cpp").write_text(source)
        program = Path(folder) / "layouts"
        subprocess.run(["g++", "-std=c++17", "-w", *(f"-I{i}" for i in arguments.include), "-o", program, Path(folder) / "layouts.cpp"], check=True)
        lines = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    operands, sums = [], []
    for line in lines:
        kind, *words = line.split() or [""]
        if kind == "operand":
            pattern, along, extent, descriptor, *places = words
            bytes_of = {"none": 16}.get(pattern) or int(pattern.removeprefix("bytes_"))
            operands.append(f"    {{{bytes_of}, {'true' if along == 'k' else 'false'}, {extent}, 0x{descriptor}u,\n     {{"
                            + wrapped(places, 6).lstrip() + "}}")
        elif kind == "sum":
            sums.append("{" + ", ".join(words) + "}")
    text = HEADER.format(places=len(ROWS) * len(DEPTHS), rows=listed["ROWS"], depths=listed["DEPTHS"], operands=",\n".join(operands),
                         sums=wrapped(sums, 4))
    Path(__file__).with_name("cute_layouts.hpp").write_text(text)


if __name__ == "__main__":
    main()
