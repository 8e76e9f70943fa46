# SPDX-License-Identifier: BSL-1.0
"""A training step of a small GPT (forward, backward, clipping, AdamW) against PyTorch on the CPU, with as many threads.

Ours has 8 micro-batches of 2 samples; PyTorch gets all 16 at once, or 8 micro-batches too if that is faster."""

import os

import numpy
import torch
from torch.nn import functional

from peer.contest import contest

VOCABULARY, CONTEXT, WIDTH, HEADS, BLOCKS = 256, 128, 96, 3, 8
SAMPLES, BATCHES = 16, 64


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = torch.nn.Linear(WIDTH, WIDTH)
        self.norm2 = torch.nn.LayerNorm(WIDTH)
        self.widen = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        heads = self.qkv(self.norm1(x)).view(x.shape[0], CONTEXT, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
        x = x + self.mix(y.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(functional.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.positions = torch.nn.Embedding(CONTEXT, WIDTH)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens, labels):
        x = self.embedding(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


def main():
    # Sequences that a model can learn a part of: half of all tokens follow from the one before.
    random = numpy.random.default_rng(1)
    text = random.integers(0, VOCABULARY, (BATCHES * SAMPLES, CONTEXT + 1), numpy.int32)
    for t in range(1, CONTEXT + 1):
        text[:, t] = numpy.where(random.random(len(text)) < 0.5, (5 * text[:, t - 1] + 17) % VOCABULARY, text[:, t])

    cores = len(os.sched_getaffinity(0))
    variants = {
        f"eager, {cores} threads": {"threads": cores},
        f"eager, foreach AdamW, {cores} threads": {"threads": cores, "optimizer": "foreach"},
        f"eager, 8 micro-batches, {cores} threads": {"threads": cores, "micro_batches": 8},
        f"compiled, {cores} threads": {"threads": cores, "compiled": True},
        f"compiled, 8 micro-batches, {cores} threads": {"threads": cores, "compiled": True, "micro_batches": 8},
    }
    contest("gpt_step", GPT, text[:, :-1].copy(), text[:, 1:].copy(), BATCHES, rate=1e-3, clip=1.0,
            mine=["stages_4", "stages_4_gpipe", "stages_2", "threads_2", "stages_1"], variants=variants, rounds=20, steps=2)


if __name__ == "__main__":
    main()
