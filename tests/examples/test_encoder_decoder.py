#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The loss falls, and numbers that were kept back come out as English writes them."""
import re
import subprocess
import sys

ONES = ("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
        "nineteen").split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_words(n):
    """Written without the program's tables: what it prints must be right, not only what it trained on."""
    if n == 0:
        return []
    for unit, name in ((1000, "thousand"), (100, "hundred")):
        if n >= unit:
            return [*in_words(n // unit), name, *in_words(n % unit)]
    return [TENS[n // 10 - 2], *in_words(n % 10)] if n >= 20 else [ONES[n - 1]]


output = subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE, text=True).stdout
print(output)
losses = [float(loss) for loss in re.findall(r"^step +\d+: loss (\d+\.\d+)$", output, re.M)]
answers = re.findall(r"^ *(\d+) ([a-z ]+?)(  \(wrong\))?$", output, re.M)
right, numbers = map(int, re.search(r"^(\d+) of (\d+) unseen numbers are right$", output, re.M).groups())
judged = [(words.split() == in_words(int(number))) != bool(wrong) for number, words, wrong in answers]
sys.exit(0 if len(losses) == 4 and losses[-1] < 0.01 * losses[0] and len(judged) >= 8 and all(judged)
         and numbers == 128 and right >= 0.9 * numbers else 1)
