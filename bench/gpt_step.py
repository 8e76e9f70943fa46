# SPDX-License-Identifier: BSL-1.0
"""A training step of a small GPT (forward, backward, clipping, AdamW) against PyTorch on the CPU, with as many threads."""

import argparse

import numpy
import torch
from torch.nn import functional

from peer import contest

VOCABULARY, CONTEXT, WIDTH, HEADS, BLOCKS = 256, 128, 96, 3, 8
SAMPLES, MICRO_BATCHES, BATCHES = 16, 8, 64


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
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=30)
    options.add_argument("--steps", type=int, default=2)
    options = options.parse_args()

    # Sequences that a model can learn a part of: half of all tokens follow from the one before.
    random = numpy.random.default_rng(1)
    text = random.integers(0, VOCABULARY, (BATCHES * SAMPLES, CONTEXT + 1), numpy.int32)
    for t in range(1, CONTEXT + 1):
        text[:, t] = numpy.where(random.random(len(text)) < 0.5, (5 * text[:, t - 1] + 17) % VOCABULARY, text[:, t])
    tokens, labels = text[:, :-1].copy(), text[:, 1:].copy()
    ours = contest.Ours("gpt_step", tokens, labels)
    batches = [(torch.from_numpy(t).long(), torch.from_numpy(l).long())
               for t, l in zip(numpy.split(tokens, BATCHES), numpy.split(labels, BATCHES))]
    cores = contest.settings(ours, options.steps, options.rounds)

    def peer(**how):
        model = GPT()
        contest.load(model, ours.parameters("stages_4"))
        return contest.Torch(model, batches, rate=1e-3, clip=1.0, threads=cores, **how)

    peers = {
        "eager, fused AdamW": peer(),
        "eager, foreach AdamW": peer(optimizer="foreach"),
        f"eager, {MICRO_BATCHES} micro-batches": peer(micro_batches=MICRO_BATCHES),
        "compiled, fused AdamW": peer(compiled=True),
        f"compiled, {MICRO_BATCHES} micro-batches": peer(compiled=True, micro_batches=MICRO_BATCHES),
    }
    contest.compare(ours, "stages_4", peers["eager, fused AdamW"])
    mine = ["stages_4", "stages_4_gpipe", "stages_2", "stages_1"]
    medians = contest.race(ours, mine, peers, options.steps, options.rounds)
    fastest = min((name for name in medians if name.startswith("PyTorch")), key=medians.get)
    print(f"pipe stages_4 (1F1B) against {fastest}")
    print(f"figure gpt_step_over_pytorch {medians[fastest] / medians['pipe stages_4']:.3f}")


if __name__ == "__main__":
    main()
