#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The candidates within the budget are trained, each is within it, and the best is the best of those printed."""
import re
import subprocess
import sys

output = subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE, text=True).stdout
print(output)
row = re.compile(r"^(\d of \d+, \w+) +(\d+) parameters, +(\d+) FLOPs a step, +(\d+) bytes: +(\d+\.\d) %$", re.M)
rows = [(name, *map(int, plan), float(right)) for name, *plan, right in row.findall(output)]
best = re.search(r"^best: (.*)$", output, re.M)[1]
right = {name: share for name, _, _, _, share in rows}
within = all(parameters <= 1000 and flops <= 1e6 and size <= 256 * 1024 for _, parameters, flops, size, _ in rows)
sys.exit(0 if len(rows) == 10 and within and right[best] == max(right.values()) >= 95 else 1)
