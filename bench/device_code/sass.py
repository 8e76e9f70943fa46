# SPDX-License-Identifier: BSL-1.0
"""Reads a listing of nvdisasm: the instructions of each kernel, and the loop in which it multiplies."""
import re

SECTION = re.compile(r"^\t\.section\t\.text\.(\w+),")
LABEL = re.compile(r"^(\.L_x_\d+):")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)(.*);")
TARGET = re.compile(r"`\((\.L_x_\d+)\)")


def kernels(listing):
    """{name: ([opcode, ...], [(from, to) of each branch, ...])}."""
    found, name = {}, None
    for line in listing.splitlines():
        if section := SECTION.match(line):
            name, labels, branches = section[1], {}, []
            found[name] = ([], branches, labels)
        elif name is None:
            continue
        elif label := LABEL.match(line):
            labels[label[1]] = len(found[name][0])
        elif instruction := INSTRUCTION.match(line):
            opcode, rest = instruction.groups()
            if opcode.startswith("BRA") and (target := TARGET.search(rest)):
                branches.append((len(found[name][0]), target[1]))
            found[name][0].append(opcode)
    return {name: (opcodes, [(at, labels[to]) for at, to in branches if to in labels])
            for name, (opcodes, branches, labels) in found.items()}


def main_loop(opcodes, branches):
    """(instructions, HMMA) of the smallest loop that has the most products; (0, 0) if there is none. A loop is what lies between a branch and
    an earlier target of it. What a branch forward in it leaves out is not counted if there is no product, copy, load of operands or store in it: masks of the last
    tiles, sums for a bias in the first row of tiles, what follows a new maximum."""
    def products_of(first, last):
        return sum(o.startswith("HMMA") for o in opcodes[first:last])

    def in_turn(first, last):
        skipped = set()
        for at, to in branches:
            if first <= at < to <= last and not any(o.startswith(("HMMA", "LDSM", "LDG", "STS", "STG")) for o in opcodes[at + 1:to]):
                skipped.update(range(at + 1, to))
        return last - first - len(skipped)

    counted = [(products_of(to, at + 1), in_turn(to, at + 1)) for at, to in branches if to < at]
    products, size = max(counted, key=lambda loop: (loop[0], -loop[1]), default=(0, 0))
    return (size, products) if products else (0, 0)
