#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Games last longer the more has been learned, and an action has a time."""
import re
import subprocess
import sys

output = subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE, text=True).stdout
games = [float(turns) for turns in re.findall(r"^ *\d+ turns: +(\d+\.\d) in a game$", output, re.M)]
print(output)
timed = re.search(r"^an action takes \d+\.\d us \(median; 99th percentile \d+\.\d us\)$", output, re.M)
sys.exit(0 if len(games) == 20 and games[0] < 40 and games[-1] > 300 and timed else 1)
