#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The loss falls and the classifier is right about points it has not seen."""
import re
import subprocess
import sys

output = subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE, text=True).stdout
losses = [float(loss) for loss in re.findall(r"^step +\d+: loss (\d+\.\d+)$", output, re.M)]
right = float(re.search(r"^(\d+\.\d) % of unseen points are on the right arm$", output, re.M)[1])
print(output)
sys.exit(0 if len(losses) == 7 and losses[-1] < 0.1 * losses[0] and right >= 98 else 1)
