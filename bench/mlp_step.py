# SPDX-License-Identifier: BSL-1.0
"""A training step (forward, backward, AdamW) of a 784-512-512-10 ReLU network against PyTorch on the CPU."""

import argparse

import numpy
import torch
from torch.nn import functional

from peer import contest

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
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--steps", type=int, default=30)
    options = options.parse_args()

    random = numpy.random.default_rng(1)
    inputs = random.standard_normal((BATCHES * SAMPLES, INPUTS), numpy.float32)
    labels = random.integers(0, CLASSES, BATCHES * SAMPLES, numpy.int32)
    ours = contest.Ours("mlp_step", inputs, labels)
    batches = [(torch.from_numpy(x), torch.from_numpy(y).long())
               for x, y in zip(numpy.split(inputs, BATCHES), numpy.split(labels, BATCHES))]
    cores = contest.settings(ours, options.steps, options.rounds)

    def peer(**how):
        model = MLP()
        contest.load(model, ours.parameters("stages_2"))
        return contest.Torch(model, batches, rate=1e-4, clip=None, **how)

    peers = {}
    for threads in sorted({1, cores}):
        peers |= {
            f"eager, {threads} threads": peer(threads=threads),
            f"eager, foreach AdamW, {threads} threads": peer(threads=threads, optimizer="foreach"),
            f"compiled, {threads} threads": peer(threads=threads, compiled=True),
        }
    contest.compare(ours, "stages_2", peers["eager, 1 threads"])
    medians = contest.race(ours, ["stages_2", "stages_1"], peers, options.steps, options.rounds)
    fastest = min((name for name in medians if name.startswith("PyTorch")), key=medians.get)
    print(f"pipe stages_2 (1F1B, 4 micro-batches of {SAMPLES // 4}) against {fastest}")
    print(f"figure mlp_step_over_pytorch {medians[fastest] / medians['pipe stages_2']:.3f}")


if __name__ == "__main__":
    main()
