# SPDX-License-Identifier: BSL-1.0
"""A training step (forward, backward, AdamW) of a 784-512-512-10 ReLU network against PyTorch on the CPU.

Ours has 4 micro-batches of 16 samples; PyTorch gets all 64 at once, with 1 thread or one per core, whichever is faster."""

import os

import numpy
import torch
from torch.nn import functional

from peer.contest import contest

INPUTS, WIDTH, CLASSES = 784, 512, 10
SAMPLES, BATCHES = 64, 64


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(INPUTS, WIDTH)
        self.second = torch.nn.Linear(WIDTH, WIDTH)
        self.third = torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, x, labels):
        hidden = functional.relu(self.second(functional.relu(self.first(x))))
        return functional.cross_entropy(self.third(hidden), labels)


def main():
    random = numpy.random.default_rng(1)
    inputs = random.standard_normal((BATCHES * SAMPLES, INPUTS), numpy.float32)
    labels = random.integers(0, CLASSES, BATCHES * SAMPLES, numpy.int32)
    variants = {}
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        variants |= {
            f"eager, {threads} threads": {"threads": threads},
            f"eager, foreach AdamW, {threads} threads": {"threads": threads, "optimizer": "foreach"},
            f"compiled, {threads} threads": {"threads": threads, "compiled": True},
        }
    contest("mlp_step", MLP, inputs, labels, BATCHES, rate=1e-4, clip=None, mine=["stages_2", "threads_2", "stages_1"],
            variants=variants, rounds=40, steps=30)


if __name__ == "__main__":
    main()
