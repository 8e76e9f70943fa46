# SPDX-License-Identifier: BSL-1.0
"""A training step (forward, backward, AdamW) of ResNet-18 on eight images of 224 x 224 against PyTorch on the CPU.

The statistics of the batch norms are those of all eight images on both sides. Rounding in them shows: at the first step the norm of the gradients
is 2.5e-5 of its size from that in fp64, PyTorch's 8.6e-5 (one machine), and AdamW's first steps are as large for small gradients as for others. So
losses and norms of three steps may differ by 5e-3, where other comparisons allow 1e-4. Images have their channels last in memory; PyTorch runs in both layouts,
with 1 thread or one per core, and the fastest counts."""

import os

import numpy
import torch
from torch import nn
from torch.nn import functional

from peer.contest import contest

SIZE, CLASSES = 224, 1000
SAMPLES, BATCHES = 8, 2


class Block(nn.Module):
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


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
        self.blocks = nn.Sequential(*(Block(a, b) for a, b in zip(widths, widths[1:])))
        self.fc = nn.Linear(512, CLASSES)

    def forward(self, x, labels):
        layout = torch.channels_last if self.conv1.weight.is_contiguous(memory_format=torch.channels_last) else torch.contiguous_format
        x = x.permute(0, 3, 1, 2).contiguous(memory_format=layout)
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return functional.cross_entropy(self.fc(self.blocks(x).mean((2, 3))), labels)


def main():
    random = numpy.random.default_rng(1)
    inputs = random.standard_normal((BATCHES * SAMPLES, SIZE, SIZE, 3), numpy.float32)
    labels = random.integers(0, CLASSES, BATCHES * SAMPLES, numpy.int32)
    variants = {}
    for threads in sorted({1, len(os.sched_getaffinity(0))}, reverse=True):
        variants |= {
            f"eager, {threads} threads": {"threads": threads},
            f"eager, channels last, {threads} threads": {"threads": threads, "channels_last": True},
            f"compiled, channels last, {threads} threads": {"threads": threads, "channels_last": True, "compiled": True},
        }
    contest("resnet18_step", ResNet18, inputs, labels, BATCHES, rate=1e-4, clip=None, mine=["threads_2", "threads_1"],
            variants=variants, rounds=12, steps=1, allowed=5e-3)


if __name__ == "__main__":
    main()
