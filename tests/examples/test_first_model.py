#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The loss falls and the classifier is right about points it has not seen."""
import re
import subprocess
import sys

output = subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE, text=True).stdout
losses = [float(loss) for loss in re.findall(r"^step +\d+: loss (\d+\.\d+)$", output, re.M)]
right, points = map(int, re.search(r"^(\d+) of (\d+) unseen points are on the right arm$", output, re.M).groups())
print(output)
sys.exit(0 if len(losses) == 7 and losses[-1] < 0.1 * losses[0] and right >= 0.98 * points else 1)
