# SPDX-License-Identifier: BSL-1.0
"""Training steps (forward, backward, clipping where a model has it, AdamW) and prompts against PyTorch on the CPU.

Our half of NAME is NAME.cpp. Ours has the micro-batches that stand there, PyTorch the whole mini-batch at once, or as many micro-batches too."""

import os
from functools import partial

import numpy
import torch
from torch import nn
from torch.nn import functional

import contest
from contest import Contest

CORES = len(os.sched_getaffinity(0))
VOCABULARY, CLASSES = 256, 10


class Attention(nn.Module):
    """Causal attention; with a base, heads are rotated by their positions, the halves of a head in pairs."""

    def __init__(self, width, heads, kv_heads=None, base=None, bias=True):
        super().__init__()
        self.heads, self.base = heads, base
        self.widths = [width, (kv_heads or heads) * width // heads, (kv_heads or heads) * width // heads]
        self.qkv = nn.Linear(width, sum(self.widths), bias=bias)
        self.mix = nn.Linear(width, width, bias=bias)

    def rotated(self, x):
        half = torch.arange(x.shape[-1] // 2, dtype=torch.float32) * -2 / x.shape[-1]
        angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float32), self.base ** half).repeat(1, 2)
        a, b = x.chunk(2, -1)
        return (x * angles.cos() + torch.cat([-b, a], -1) * angles.sin()).to(x.dtype)

    def forward(self, x):
        """Also returns the keys and values, which a decoder keeps."""
        q, k, v = (part.view(*x.shape[:2], -1, x.shape[-1] // self.heads).transpose(1, 2) for part in self.qkv(x).split(self.widths, -1))
        if self.base is not None:
            q, k = self.rotated(q), self.rotated(k)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=k.shape[1] != q.shape[1])
        return self.mix(y.transpose(1, 2).flatten(2)), k, v


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        y, *cache = self.attention(self.norm1(x))
        x = x + y
        return x + self.narrow(functional.gelu(self.widen(self.norm2(x)), approximate="tanh")), cache


class LlamaBlock(nn.Module):
    def __init__(self, width, hidden, heads, kv_heads):
        super().__init__()
        self.norm1 = nn.RMSNorm(width, eps=1e-5)
        self.attention = Attention(width, heads, kv_heads, base=10000.0, bias=False)
        self.norm2 = nn.RMSNorm(width, eps=1e-5)
        self.widen = nn.Linear(width, 2 * hidden, bias=False)
        self.narrow = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        y, *cache = self.attention(self.norm1(x))
        x = x + y
        gate, value = self.widen(self.norm2(x)).chunk(2, -1)
        return x + self.narrow(functional.silu(gate) * value), cache


class Transformer(nn.Module):
    def __init__(self, width, block, blocks, norm, positions=0, bias=True):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(positions, width) if positions else None
        self.blocks = nn.ModuleList(block() for _ in range(blocks))
        self.norm = norm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=bias)

    def hidden(self, tokens):
        x, caches = self.embedding(tokens), []
        if self.positions is not None:
            x = x + self.positions.weight
        for block in self.blocks:
            x, cache = block(x)
            caches.append(cache)
        return self.norm(x), caches

    def forward(self, tokens, labels):
        return functional.cross_entropy(self.head(self.hidden(tokens)[0]).flatten(0, 1), labels.flatten())

    def read(self, tokens):
        x, self.caches = self.hidden(tokens)
        return self.head(x[:, -1])


def gpt(width, heads, blocks, context):
    return Transformer(width, partial(Block, width, heads), blocks, nn.LayerNorm, context)


def llama(width, hidden, heads, kv_heads, blocks):
    return Transformer(width, partial(LlamaBlock, width, hidden, heads, kv_heads), blocks, partial(nn.RMSNorm, eps=1e-5), bias=False)


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(784, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, CLASSES)

    def forward(self, x, labels):
        hidden = functional.relu(self.second(functional.relu(self.first(x))))
        return functional.cross_entropy(self.third(hidden), labels)


class ResidualBlock(nn.Module):
    """Two convolutions; a projection where channels change."""

    def __init__(self, before, channels):
        super().__init__()
        stride = 1 if before == channels else 2
        self.conv1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        if stride == 2:
            self.downsample = nn.Sequential(nn.Conv2d(before, channels, 1, 2, bias=False), nn.BatchNorm2d(channels))
        else:
            self.downsample = nn.Identity()

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + self.downsample(x))


class ResNet(nn.Module):
    """`stem`: the size of the first convolution's kernel; the 7 x 7 one halves the image and is followed by max pooling."""

    def __init__(self, stem, widths, classes):
        super().__init__()
        self.pools = stem == 7
        self.conv1 = nn.Conv2d(3, widths[0], stem, 2 if self.pools else 1, stem // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.blocks = nn.Sequential(*(ResidualBlock(a, b) for a, b in zip(widths, widths[1:])))
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x, labels):
        layout = torch.channels_last if self.conv1.weight.is_contiguous(memory_format=torch.channels_last) else torch.contiguous_format
        x = functional.relu(self.bn1(self.conv1(x.permute(0, 3, 1, 2).contiguous(memory_format=layout))))
        if self.pools:
            x = functional.max_pool2d(x, 3, 2, 1)
        return functional.cross_entropy(self.fc(self.blocks(x).mean((2, 3))), labels)


def text(sequences, context):
    """Sequences that a model can learn a part of: half of all tokens follow from the one before."""
    random = numpy.random.default_rng(1)
    tokens = random.integers(0, VOCABULARY, (sequences, context + 1), numpy.int32)
    for t in range(1, context + 1):
        tokens[:, t] = numpy.where(random.random(sequences) < 0.5, (5 * tokens[:, t - 1] + 17) % VOCABULARY, tokens[:, t])
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def noise(samples, shape, classes=CLASSES):
    random = numpy.random.default_rng(1)
    return random.standard_normal((samples, *shape), numpy.float32), random.integers(0, classes, samples, numpy.int32)


def ways(threads=(CORES,), **also):
    """Eager and compiled, AdamW fused and foreach, and what `also` says in each."""
    return {f"{how}{''.join(f', {what} {value}' for what, value in also.items())}, {n} threads": {"threads": n} | settings | also
            for n in threads
            for how, settings in {"eager": {}, "eager, foreach AdamW": {"optimizer": "foreach"}, "compiled": {"compiled": True}}.items()}


ONE_OR_ALL = sorted({1, CORES}, reverse=True)
PIPELINES = ["threads_2", "stages_2", "stages_1", "threads_2_bf16"]
CONTESTS = {
    "gpt_step": Contest(partial(gpt, 96, 3, 8, 128), partial(text, 64 * 16, 128), 64, ["stages_4", "stages_4_gpipe", "stages_1", "stages_2", "threads_2"],
                        ways() | ways(micro_batches=8), rate=1e-3, clip=1.0),
    "gpt_768_step": Contest(partial(gpt, 768, 12, 2, 512), partial(text, 16 * 4, 512), 16, PIPELINES, ways(), rate=1e-3, clip=1.0, rounds=12, steps=1),
    "llama_step": Contest(partial(llama, 256, 704, 8, 2, 4), partial(text, 16 * 8, 256), 16, PIPELINES, ways(), rate=1e-3, clip=1.0, rounds=16),
    "mlp_step": Contest(partial(MLP, 512), partial(noise, 64 * 64, (784,)), 64, ["stages_2", "threads_2", "stages_1"], ways(ONE_OR_ALL),
                        rounds=40, steps=30),
    "mlp_512_step": Contest(partial(MLP, 512), partial(noise, 64 * 256, (784,)), 64, PIPELINES, ways(), steps=10),
    "mlp_1024_step": Contest(partial(MLP, 1024), partial(noise, 64 * 256, (784,)), 64, PIPELINES, ways(), steps=5),
    # Rounding shows in the statistics of batch norms: at the first step of ResNet-18 the norm of the gradients is 2.5e-5 of its size from that in fp64,
    # PyTorch's 8.6e-5 (one machine), and AdamW's first steps are as large for small gradients as for others.
    "resnet18_step": Contest(partial(ResNet, 7, [64, 64, 64, 128, 128, 256, 256, 512, 512], 1000), partial(noise, 2 * 8, (224, 224, 3), 1000), 2,
                             ["threads_2", "threads_1"], ways(ONE_OR_ALL) | ways(ONE_OR_ALL, channels_last=True), rounds=12, steps=1, allowed=5e-3),
    "resnet20_step": Contest(partial(ResNet, 3, [16] * 4 + [32] * 3 + [64] * 3, CLASSES), partial(noise, 16 * 32, (32, 32, 3)), 16,
                             ["threads_2", "stages_1", "threads_2_bf16"], ways(ONE_OR_ALL) | ways(ONE_OR_ALL, channels_last=True), rounds=16, allowed=5e-3),
    "prompt_512": Contest(partial(gpt, 768, 12, 12, 512), partial(text, 16, 512), 16, ["one_thread"],
                          {f"{how}, {n} threads": settings | {"threads": n} for n in ONE_OR_ALL for how, settings in
                           {"eager": {}, "compiled": {"compiled": True}}.items()}, rounds=10, steps=1, reads=True),
}

if __name__ == "__main__":
    contest.main(CONTESTS)
