# SPDX-License-Identifier: BSL-1.0
"""Reads a listing of nvdisasm: the instructions of each kernel, and the loop in which it multiplies."""
import re

SECTION = re.compile(r"^\t\.section\t\.text\.(\w+),")
LABEL = re.compile(r"^(\.L_x_\d+):")
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)(.*);")
TARGET = re.compile(r"`\((\.L_x_\d+)\)")


def kernels(listing):
    """{name: ([opcode, ...], [(first, last) of each loop, ...])}. A loop is what lies between a branch and an earlier target of it."""
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
    return {name: (opcodes, [(labels[to], at) for at, to in branches if to in labels and labels[to] < at])
            for name, (opcodes, branches, labels) in found.items()}


def main_loop(opcodes, loops):
    """(instructions, HMMA) of the smallest loop that has the most products; (0, 0) if there is none."""
    counted = [(sum(o.startswith("HMMA") for o in opcodes[first:last + 1]), last + 1 - first) for first, last in loops]
    products, size = max(counted, key=lambda loop: (loop[0], -loop[1]), default=(0, 0))
    return (size, products) if products else (0, 0)
