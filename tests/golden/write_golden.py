#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes the golden files of this folder: what PyTorch computes, for tests/golden/*.cpp to hold pipe to.

    python3 tests/golden/write_golden.py         # needs torch and numpy, nothing else; a few seconds

The files in the repository were written by PyTorch 2.15.0 on a CPU; the tests read them and need no Python. Run this again
after adding a case, and commit what changed: a case's numbers depend on its name only, so the others stay byte for byte
(on another machine, or with another version of PyTorch, the last digit of a number may differ).

Everything is computed in float64 from weights and inputs that are floats, so the only rounding in a golden number is that
to float32 when it is written; losses, norms, settings and all of fp64 are written as float64. The files are safetensors, tensors are
called CASE/WHAT or CASE/WHAT/PARAMETER, and parameters have the names of pipe/weights/names.hpp:

    layers, attention, losses, fp64
        input, input.NAME, label    a mini-batch, of real numbers or of ids
        weight/...                  the model's parameters
        output, loss, gradient/...  the model's output before the loss, the loss, its gradients by every trained parameter
        input_gradient              of fp64: the gradient of the loss by real inputs
        buffer/...                  running statistics after one step
    optimizers
        start/...                   a model's parameters and ten mini-batches
        CASE/setting.NAME           what differs from the optimizer's defaults
        CASE/loss, CASE/norm        of each step: the loss, the global norm of the gradients before clipping
        CASE/step_1/..., CASE/step_10/...           the parameters
        CASE/average_1/..., CASE/average_10/...     their moving averages
        CASE/step_5/..., CASE/state_5/...           of PyTorch's own optimizers: the parameters, and the optimizer's state dict, flattened
    adapted
        input, label, weight/...    as above, with a mini-batch for each of ten steps
        output, gradient/...        of the first mini-batch
        loss, norm                  of each step
        step_10/...                 the trained parameters
    packed
        input, label, lengths       documents one behind the other, and how many ids each has
        weight/..., output, loss, gradient/...      as above, where a block-diagonal mask hides other documents
    gpt, translator
        input, label, weight/...    as above, with a mini-batch for each of 50 steps
        loss, norm, gradient/...    of each step; the gradients of the first
"""
import json
import struct
import zlib
from pathlib import Path

import torch
from torch import nn, optim
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict
from torch.nn import functional

import optimizers
from layers import (AdaptedAttention, Attention, BatchNorm, Beside, Branches, Conv1d, Conv2d, ConvTranspose1d,
                    ConvTranspose2d, CrossAttention, Documents, Embedding, EmbeddingBag, FlattenChannelsFirst,
                    FurtherInput, Gate, GroupedAttention, GroupNorm, Image, InstanceNorm, LocalResponseNorm, LoRA,
                    Model, Normalize, Pool, Pop, Positions, PReLU, Repeat, Residual, Reversible, ScoredAttention, Seq,
                    SinusoidalPositions, Stash, Tied, concat, cosine, distance, dot)

HERE = Path(__file__).parent
SAMPLES = 4  # of a mini-batch


def write_safetensors(path, tensors):
    """tensors: name -> tensor; float64 stays, int64 becomes I32. Wider types come first, as alignment wants it."""
    types = {torch.float64: "F64", torch.float32: "F32", torch.int32: "I32"}
    header = {"__metadata__": {"written_by": "tests/golden/write_golden.py", "torch": torch.__version__}}
    data = b""
    narrowed = {n: t.int() if t.dtype == torch.int64 else t for n, t in tensors.items()}
    for name, tensor in sorted(narrowed.items(), key=lambda item: -item[1].element_size()):
        here = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": types[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(here)]}
        data += here
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    print(f"{path.name}: {len(narrowed)} tensors, {path.stat().st_size} bytes")


class Draw:
    """Random numbers that depend on a name only. Real ones are floats, whatever type computes with them."""

    def __init__(self, name):
        self.generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def numbers(self, *shape):
        return torch.randn(shape, generator=self.generator).float().double()

    def shares(self, *shape):
        return torch.rand(shape, generator=self.generator).float().double()

    def ids(self, count, *shape):
        return torch.randint(count, shape, generator=self.generator)

    def parameters(self, model, spread=0.3):
        """Matrices and tables that keep the size of what they multiply; scales around 1, other vectors around 0."""
        with torch.no_grad():
            for name, p in model.named_parameters():
                x = self.numbers(*p.shape)
                x = x / p.shape[1] ** 0.5 if p.dim() > 1 else spread * x
                p.copy_((x + (p.dim() == 1 and name.endswith("weight"))).float())


# ---- what enters a model, and what it is trained for ----


def Input(*form, samples=SAMPLES):
    return lambda draw: draw.numbers(samples, *form)


def Tokens(vocabulary, length):
    return lambda draw: draw.ids(vocabulary, SAMPLES, length)


def Padded(vocabulary, length):
    """Samples that end in 0, 1, 2 ... ids of -1, with one more inside each."""

    def make(draw):
        ids = draw.ids(vocabulary, SAMPLES, length)
        for s in range(SAMPLES):
            ids[s, 1] = -1
            ids[s, length - s:] = -1
        return ids

    return make


def MSE(draw, output):
    label = draw.numbers(*output.shape)
    return label, lambda y: functional.mse_loss(y, label)


def BCE(draw, output):
    label = draw.shares(*output.shape)
    return label, lambda y: functional.binary_cross_entropy_with_logits(y, label)


def Huber(delta):
    def make(draw, output):
        label = draw.numbers(*output.shape)
        return label, lambda y: functional.huber_loss(y, label, delta=delta)

    return make


def L1(draw, output):
    label = draw.numbers(*output.shape)
    return label, lambda y: functional.l1_loss(y, label)


def Focal(alpha, gamma):
    """torchvision.ops.sigmoid_focal_loss: Lin et al., 2017."""

    def make(draw, output):
        label = draw.shares(*output.shape)

        def loss(y):
            p = torch.sigmoid(y)
            hit = p * label + (1 - p) * (1 - label)
            weight = alpha * label + (1 - alpha) * (1 - label)
            return (weight * (1 - hit)**gamma * functional.binary_cross_entropy_with_logits(y, label, reduction="none")).mean()

        return label, loss

    return make


def Distribution(draw, output):
    """Shares of each row, of which the first is 0."""
    label = draw.shares(*output.shape)
    label[..., 0] = 0
    return label / label.sum(-1, keepdim=True)


def SoftCrossEntropy(draw, output):
    label = Distribution(draw, output)
    return label, lambda y: functional.cross_entropy(y.flatten(0, -2), label.flatten(0, -2))


def KLDivergence(draw, output):
    label = Distribution(draw, output)
    return label, lambda y: functional.kl_div(functional.log_softmax(y, -1).flatten(0, -2), label.flatten(0, -2), reduction="batchmean")


def TripletMargin(margin):
    def make(draw, output):
        def loss(y):
            return functional.triplet_margin_loss(*y.flatten(0, -2).chunk(3, -1), margin=margin)

        return torch.zeros(0), loss

    return make


def InfoNCE(temperature, symmetric=False, samples=2):
    """samples: of a micro-batch, whose rows of halves are compared. Symmetric: Radford et al., CLIP, 2021, figure 3."""

    def make(draw, output):
        def one(y):
            a, b = y.flatten(0, -2).chunk(2, -1)
            scores, own = a @ b.T / temperature, torch.arange(len(a))
            forth = functional.cross_entropy(scores, own, reduction="sum")
            return (forth + functional.cross_entropy(scores.T, own, reduction="sum")) / 2 if symmetric else forth

        return torch.zeros(0), lambda y: sum(one(part) for part in y.split(samples)) / y.flatten(0, -2).shape[0]

    return make


def CrossEntropy(smoothing=0.0, z=0.0, ignored=False):
    """z: Chowdhery et al., PaLM, 2022, section 5."""

    def make(draw, output):
        label = draw.ids(output.shape[-1], *output.shape[:-1])
        if ignored:
            label.view(-1)[::3] = -1

        def loss(y):
            counted = y.flatten(0, -2).logsumexp(-1)[label.flatten() >= 0]
            return functional.cross_entropy(y.flatten(0, -2), label.flatten(), ignore_index=-1,
                                            label_smoothing=smoothing) + z * (counted**2).mean()

        return label, loss

    return make


CLASS_WEIGHTS = [1, 5, 2, 0, 3, 1, 4, 2, 1, 6, 2]


def Weighted(row_loss):
    """A loss terms(output, weight) with a weight for each row, where row_loss(draw, output) is (label, terms)."""

    def make(draw, output):
        weight = draw.shares(*output.shape[:-1])
        label, terms = row_loss(draw, output)
        return label, lambda y: terms(y, weight), {"weight": weight}

    return make


def weighted_cross_entropy(draw, output):
    label = draw.ids(output.shape[-1], *output.shape[:-1])
    label.view(-1)[::3] = -1

    def terms(y, weight):
        each = functional.cross_entropy(y.flatten(0, -2), label.flatten(), ignore_index=-1, reduction="none")
        return (each * weight.flatten()).sum() / weight.flatten()[label.flatten() >= 0].sum()

    return label, terms


def weighted_mse(draw, output):
    label = draw.numbers(*output.shape)
    return label, lambda y, weight: functional.mse_loss(y, label, weight=weight.unsqueeze(-1).expand_as(y))


def WeightedClasses(smoothing=0.0, reduction="mean"):
    def make(draw, output):
        label = draw.ids(output.shape[-1], *output.shape[:-1])
        label.view(-1)[::3] = -1
        weight = torch.tensor(CLASS_WEIGHTS, dtype=output.dtype)
        return label, lambda y: functional.cross_entropy(y.flatten(0, -2), label.flatten(), weight, ignore_index=-1,
                                                         label_smoothing=smoothing, reduction=reduction)

    return make


def PositiveBCE(weight, reduction="sum"):
    def make(draw, output):
        label = draw.shares(*output.shape)
        return label, lambda y: functional.binary_cross_entropy_with_logits(y, label, pos_weight=torch.tensor(weight),
                                                                            reduction=reduction)

    return make


def Clipped(draw, output):
    """Schulman et al., Proximal policy optimization algorithms, 2017, equation 7."""
    label = draw.ids(output.shape[-1], *output.shape[:-1])
    old, advantage = draw.numbers(*label.shape) - 2, draw.numbers(*label.shape)

    def loss(y):
        l = y.log_softmax(-1).gather(-1, label.unsqueeze(-1)).squeeze(-1)
        ratio = (l - old).exp()
        return -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()

    return label, loss, {"old": old, "advantage": advantage}


def Losses(first, *further):
    """further: the name of its labels, its weight, its layers, and its loss."""

    def make(draw, output):
        label, loss = first(draw, output)
        terms = [(name, weight, layers, *make_one(draw, layers.result)) for name, weight, layers, make_one in further]
        return (label, lambda y: loss(y) + sum(weight * one(layers.result) for _, weight, layers, _, one in terms),
                {name: own for name, _, _, own, _ in terms})

    return make


# ---- cases: name, input, model, loss; further inputs by name ----

Linear, LayerNorm = nn.Linear, nn.LayerNorm


def RMSNorm(width):
    return nn.RMSNorm(width, eps=torch.finfo(torch.float32).eps)  # PyTorch's default for float32


class SoftCap(nn.Module):
    def __init__(self, cap):
        super().__init__()
        self.cap = cap

    def forward(self, x):
        return self.cap * torch.tanh(x / self.cap)


def GELUTanh():
    return nn.GELU(approximate="tanh")


def frozen(layer):
    return layer.requires_grad_(False)


def layer_cases():
    yield "linear", Input(5), Model(Linear(5, 7), Linear(7, 4, bias=False), Linear(4, 3)), MSE
    for name, activation in {"relu": nn.ReLU(), "tanh": nn.Tanh(), "sigmoid": nn.Sigmoid(), "silu": nn.SiLU(),
                             "gelu": GELUTanh(), "gelu_erf": nn.GELU(), "clip_logits": nn.Hardtanh(-0.75, 0.75),
                             "soft_cap": SoftCap(1.5)}.items():
        yield name, Input(5), Model(Linear(5, 9), activation, Linear(9, 3)), MSE
    yield "prelu", Input(5), Model(Linear(5, 9), nn.PReLU(), Linear(9, 3)), MSE
    yield "prelu.channels", Input(3, 5), Model(Linear(5, 9), PReLU(9), Linear(9, 2), nn.PReLU()), MSE
    yield "prelu.image", Input(4, 5, 3), Model(PReLU(3), Linear(3, 2), PReLU(2), nn.Flatten(), Linear(40, 3)), MSE
    yield "layer_norm", Input(3, 5), Model(Linear(5, 9), LayerNorm(9), Linear(9, 2)), MSE
    yield "rms_norm", Input(3, 5), Model(Linear(5, 9), RMSNorm(9), Linear(9, 2)), MSE
    yield "softmax", Input(3, 5), Model(Linear(5, 9), nn.Softmax(-1), Linear(9, 2)), MSE
    for name, gate in {"swiglu": Gate(functional.silu), "geglu": Gate(GELUTanh()), "glu": nn.GLU()}.items():
        yield name, Input(3, 5), Model(Linear(5, 14), gate, Linear(7, 2)), MSE
    yield "embedding", Padded(11, 6), Model(Embedding(11, 5), Linear(5, 3)), MSE
    for mode in "mean", "sum":
        yield f"embedding_bag.{mode}", Tokens(11, 6), Model(nn.EmbeddingBag(11, 5, mode=mode), Linear(5, 3)), MSE
        bag = nn.EmbeddingBag(11, 5, mode=mode, padding_idx=3)
        yield f"embedding_bag.{mode}.padding_idx", Tokens(11, 6), Model(bag, Linear(5, 3)), MSE
        yield f"embedding_bag.{mode}.padded", Padded(11, 6), Model(EmbeddingBag(11, 5, mode=mode), Linear(5, 3)), MSE
    for which in "mean", "first", "last":
        yield f"pool.{which}", Padded(11, 6), Model(Embedding(11, 5), nn.Tanh(), Pool(which), Linear(5, 3)), CrossEntropy()
    epsilon = LayerNorm(9, eps=0.5), nn.RMSNorm(9, eps=1e-3)
    yield "epsilon", Input(3, 5), Model(Linear(5, 9), epsilon[0], Linear(9, 9), epsilon[1], Linear(9, 2)), MSE
    yield "batch_norm", Input(3, 5), Model(
        Linear(5, 7, bias=False), BatchNorm(7), nn.ReLU(), Linear(7, 6, bias=False), BatchNorm(6, eps=0.25, momentum=0.5),
        Linear(6, 2)), MSE
    yield "sample_norms", Input(3, 5), Model(
        Linear(5, 6), GroupNorm(2, 6), nn.Tanh(), Linear(6, 4, bias=False), InstanceNorm(4), nn.SiLU(), Linear(4, 7),
        LocalResponseNorm(5, alpha=0.5, k=2), Linear(7, 2)), MSE
    yield "positions", Tokens(11, 6), Model(Embedding(11, 5), Positions(6, 5), Linear(5, 3)), MSE
    yield "sinusoidal", Tokens(11, 6), Model(Embedding(11, 5), SinusoidalPositions(), Linear(5, 3)), MSE
    yield "residual", Input(3, 5), Model(
        Linear(5, 6), Residual(LayerNorm(6), Linear(6, 9), GELUTanh(), Linear(9, 6)), Residual(Residual(nn.Tanh()), Linear(6, 6)),
        Linear(6, 2)), MSE
    yield "flatten", Input(2, 3, 2), Model(Linear(2, 4), nn.Tanh(), nn.Flatten(), Linear(24, 3)), MSE
    yield "frozen", Input(5), Model(Linear(5, 7), nn.Tanh(), frozen(Linear(7, 6)), nn.Tanh(), Linear(6, 3)), MSE
    yield "skips", Input(4), Model(
        Linear(4, 6), Stash("outer"), nn.ReLU(), Linear(6, 5), Stash("inner"), GELUTanh(), Linear(5, 5), Pop("inner"),
        Linear(5, 4), Pop("outer", concat), LayerNorm(10), Linear(10, 5), Pop("inner"), Linear(5, 3)), MSE
    yield "inputs", Input(4, 3), Model(
        Linear(3, 5), nn.Tanh(), Stash("left"), FurtherInput("second"), Embedding(9, 5), Pop("left"), Stash("both"),
        FurtherInput("third"), Pop("both"), Linear(5, 2)), MSE, {"second": Tokens(9, 4), "third": Input(4, 5)}

    yield "joins", Input(3, 4), Model(
        Linear(4, 6), Stash("first"), Branches(torch.mul, Seq(Linear(6, 5), nn.Sigmoid()), Linear(6, 5, bias=False), Linear(6, 5)),
        Stash("second"), Branches(torch.sub, nn.Tanh(), Linear(5, 5)), Linear(5, 6), Pop("first", torch.mul), Linear(6, 5),
        Pop("second", torch.sub), Branches(concat, nn.Tanh(), Branches(torch.add, Linear(5, 3), Linear(5, 3))), Linear(8, 2)), MSE

    for name, compare in {"dot": dot, "cosine": cosine, "distance": distance}.items():
        yield name, Input(3, 4), Model(
            Linear(4, 6), Stash("first"), Linear(6, 6), Pop("first", compare), nn.Flatten(), Linear(3, 5),
            Branches(concat, nn.Identity(), FurtherInput("more")), Linear(8, 6),
            Branches(compare, Seq(Linear(6, 7), nn.Tanh()), Seq(FurtherInput("other"), Linear(4, 7)))), MSE, {"more": Input(3), "other": Input(4)}

    table = Embedding(11, 6)
    yield "tied_table", Tokens(11, 4), Model(
        ("table", table), Positions(4, 6), Stash("left"), FurtherInput("right"), Tied(table), Pop("left"), LayerNorm(6),
        Tied(table)), CrossEntropy(), {"right": Tokens(11, 4)}
    block = Seq(Residual(LayerNorm(6), Attention(6, 2)), Linear(6, 6))
    yield "tied_block", Input(3, 6), Model(("block", block), nn.Tanh(), Repeat(2, lambda: [Tied(block)]), Linear(6, 4)), MSE


def convolution_cases():
    yield "images", Input(7, 6, 4), Model(
        Conv2d(4, 6, (3, 2), stride=2, padding=1, dilation=2, groups=2), nn.ReLU(),
        ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1, groups=2), GELUTanh(),
        Conv2d(4, 4, 3, stride=(2, 1), padding=1, groups=4), nn.Tanh(), ConvTranspose2d(4, 4, 2, stride=2, groups=4),
        Conv2d(4, 5, 1), Conv2d(5, 3, 3, padding=(1, 0), bias=False), nn.Flatten(), Linear(180, 2)), MSE
    yield "sequence", Input(9, 3), Model(
        Conv1d(3, 4, 3, stride=2, padding=1), nn.Tanh(), ConvTranspose1d(4, 3, 4, stride=3), nn.Flatten(), Linear(48, 2)), MSE


def resampling_cases():
    def between(*modules):
        return [Image(m) for m in modules]

    yield "images", Input(7, 6, 3), Model(
        Linear(3, 4), *between(nn.MaxPool2d(3, 2, 1, ceil_mode=True)), Linear(4, 4),
        *between(nn.Upsample(scale_factor=2, mode="bilinear"), nn.ReflectionPad2d((2, 1, 1, 2)),
                 nn.AvgPool2d((3, 2), 2, 1, ceil_mode=True)), Linear(4, 5),
        *between(nn.AdaptiveMaxPool2d((4, 5)), nn.ReplicationPad2d(1),
                 nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
                 nn.Upsample((6, 9), mode="bilinear", align_corners=True), nn.Upsample(scale_factor=2),
                 nn.ZeroPad2d((0, 2, 1, -1)), nn.MaxPool2d(3, (2, 3), 1, 2), nn.AdaptiveAvgPool2d((3, 4))),
        FlattenChannelsFirst(), Linear(60, 3)), MSE
    yield "sequences", Input(17, 3), Model(
        Linear(3, 4), *between(nn.MaxPool1d(3, 2, 1, 2)), Linear(4, 4),
        *between(nn.Upsample(scale_factor=3, mode="linear", align_corners=True), nn.AvgPool1d(4, 3, 2)), Linear(4, 4),
        *between(nn.ReflectionPad1d((1, 2)), nn.AdaptiveMaxPool1d(9), nn.ReplicationPad1d((2, 0)),
                 nn.Upsample(scale_factor=2), nn.ZeroPad1d((1, -1)), nn.AvgPool1d(3, 2, 1, True, False),
                 nn.Upsample(scale_factor=2, mode="linear"), nn.AdaptiveAvgPool1d(5)), Linear(4, 2)), MSE


def rectifier_cases():
    layers = [nn.LeakyReLU(), nn.ELU(), nn.Softplus(), nn.Mish(), nn.ReLU6(), nn.LeakyReLU(0.2), nn.ELU(1.5)]
    yield "rectifiers", Input(5), Model(
        Linear(5, 9), *(item for layer in layers for item in (layer, Linear(9, 9))), Linear(9, 3)), MSE


def attention_cases():
    kinds = {
        "causal": lambda: Attention(12, 3),
        "grouped": lambda: GroupedAttention(12, 6, kv_heads=2),
        "multi_query": lambda: GroupedAttention(12, 3, kv_heads=1, causal=False, bias=False),
        "rope_grouped": lambda: GroupedAttention(12, 6, kv_heads=3, base=500000.0, causal=False),
        "window": lambda: ScoredAttention(12, 3, kv_heads=1, size=6, base=10000.0, window=3),
        "alibi": lambda: ScoredAttention(12, 6, alibi=True),
        "capped_prefix": lambda: ScoredAttention(12, 2, prefix=3, cap=0.5),
        "normed_heads": lambda: ScoredAttention(12, 4, kv_heads=2, size=4, base=10000.0, normed=True),
    }
    for name, attention in kinds.items():
        for kind, tokens in {"": Tokens, ".padded": Padded}.items():
            yield name + kind, tokens(13, 7), Model(Embedding(13, 12), Linear(12, 12), attention(), Linear(12, 5)), MSE

    def cross(*options, **named):
        memory = named.get("memory_width", 12)
        return Model(Embedding(13, memory), Linear(memory, memory), Stash("memory"), FurtherInput("target"),
                     Embedding(9, 12), Linear(12, 12), CrossAttention(12, 3, "memory", *options, **named), Linear(12, 5))

    kinds = {
        "cross": {},
        "cross_no_bias": {"memory_width": 8, "bias": False},
        "cross_scored": {"kv_heads": 1, "size": 5, "cap": 0.5, "mask": lambda i, j: (i - j) % 3 != 0},
    }
    for name, settings in kinds.items():
        for kind, tokens in {"": Tokens, ".padded": Padded}.items():
            yield name + kind, tokens(13, 7), cross(**settings), MSE, {"target": Tokens(9, 4)}


def loss_cases():
    losses = {
        "cross_entropy": CrossEntropy(),
        "ignored": CrossEntropy(ignored=True),
        "all_terms": CrossEntropy(smoothing=0.25, z=0.125, ignored=True),
        "mse": MSE,
        "bce": BCE,
        "huber": Huber(1.0),
        "l1": L1,
        "focal": Focal(0.25, 2),
        "focal_0": Focal(0.75, 0),
        "soft_cross_entropy": SoftCrossEntropy,
        "kl_divergence": KLDivergence,
        "class_weights.smoothing": WeightedClasses(smoothing=0.25),
        "class_weights.sum": WeightedClasses(smoothing=0.25, reduction="sum"),
        "weights": Weighted(weighted_cross_entropy),
        "weights.mse": Weighted(weighted_mse),
        "positive_weight": PositiveBCE(3.5),
        "clipped": Clipped,
    }
    for name, loss in losses.items():
        yield name, Input(3, 5), Model(Linear(5, 8), nn.Tanh(), Linear(8, 11)), loss
    for name, margin in {"triplet": 1.0, "triplet_half": 0.5}.items():
        yield name, Input(3, 5), Model(Linear(5, 8), nn.Tanh(), Linear(8, 12)), TripletMargin(margin)
    yield "info_nce", Input(3, 5), Model(Linear(5, 8), nn.Tanh(), Linear(8, 12)), InfoNCE(0.25)
    for name, samples in {"info_nce.symmetric": SAMPLES, "info_nce.three_samples": 3}.items():
        yield name, Input(3, 5, samples=samples), Model(
            Linear(5, 8), nn.Tanh(), Branches(concat, *[Seq(Linear(8, 6), Normalize()) for _ in range(2)])), InfoNCE(0.07, symmetric=True)
    short = {"three_samples": (3, CrossEntropy(ignored=True)), "one_sample": (1, CrossEntropy()), "three_samples.mse": (3, MSE)}
    for name, (samples, loss) in short.items():
        yield name, Input(3, 5, samples=samples), Model(Linear(5, 8), nn.Tanh(), Linear(8, 11)), loss
    kind, size = Beside("early", Linear(8, 4), nn.ReLU(), Linear(4, 4)), Beside("late", nn.Flatten(), Linear(33, 2))
    yield "several", Input(3, 5), Model(
        Linear(5, 8), nn.Tanh(), Stash("early"), Linear(8, 11), Stash("late"), ("kind", kind), ("size", size)), Losses(
            CrossEntropy(ignored=True), ("kind", 0.5, kind, CrossEntropy(smoothing=0.1, ignored=True)), ("size", 2.0, size, MSE))


def fp64_cases():
    """Each layer and loss with constants that are no floats."""
    def between(*modules):
        return Model(Linear(5, 9), *(item for module in modules for item in (module, Linear(9, 9))), Linear(9, 2))

    yield "norms", Input(3, 5), between(LayerNorm(9), LayerNorm(9, eps=0.1), nn.RMSNorm(9, eps=0.1), nn.RMSNorm(9, eps=1 / 3)), MSE
    yield "group_norms", Input(3, 5), Model(
        Linear(5, 6), GroupNorm(2, 6), nn.Tanh(), Linear(6, 6), GroupNorm(3, 6, eps=0.1), nn.Tanh(), Linear(6, 6, bias=False),
        InstanceNorm(6), Linear(6, 2)), MSE
    yield "batch_norm", Input(3, 5), Model(
        Linear(5, 9, bias=False), BatchNorm(9), nn.Tanh(), Linear(9, 9, bias=False), BatchNorm(9, eps=0.1, momentum=1 / 3),
        Linear(9, 2)), MSE
    yield "response_norm", Input(3, 5), between(LocalResponseNorm(3), LocalResponseNorm(3, alpha=1 / 3, beta=2 / 3, k=1.1)), MSE
    yield "functions", Input(5), between(nn.LeakyReLU(), nn.LeakyReLU(0.2), nn.ELU(1 / 3), SoftCap(1 / 3),
                                         nn.Hardtanh(-1 / 3, 1 / 3)), MSE
    yield "lora", Input(3, 5), Model(LoRA(Linear(5, 9), 3, alpha=1), nn.Tanh(), LoRA(Linear(9, 2), 3, alpha=2)), MSE
    scored = ScoredAttention(12, 4, kv_heads=2, size=4, base=10000.0, cap=1 / 3, normed=True)
    yield "attention", Tokens(13, 7), Model(Embedding(13, 12), Linear(12, 12), scored, Linear(12, 5)), MSE
    losses = {
        "all_terms": CrossEntropy(smoothing=0.1, z=1 / 3, ignored=True),
        "class_weights": WeightedClasses(smoothing=0.1),
        "huber": Huber(1 / 3),
        "positive_weight": PositiveBCE(1 / 3, "mean"),
    }
    for name, loss in losses.items():
        yield name, Input(3, 5), Model(Linear(5, 8), nn.Tanh(), Linear(8, 11)), loss
    kind = Beside("early", Linear(8, 4))
    yield "loss_weight", Input(3, 5), Model(Linear(5, 8), nn.Tanh(), Stash("early"), Linear(8, 11), ("kind", kind)), Losses(
        CrossEntropy(), ("kind", 0.1, kind, CrossEntropy()))


def run_case(name, first, model, make_loss, further=None, of_inputs=False):
    draw = Draw(name)
    draw.parameters(model)
    x = first(draw)
    inputs = {key: make(draw) for key, make in (further or {}).items()}
    buffers = {b_name: b for b_name, b in model.named_buffers() if b.is_floating_point()}
    for b in buffers.values():
        b.copy_(draw.shares(*b.shape) + 0.5)
    start = {b_name: b.clone() for b_name, b in buffers.items()}
    output = model.eval()(x, inputs)
    label, loss_of, *of_loss = make_loss(draw, output)
    for more in of_loss:
        inputs |= more
    of_inputs = of_inputs and x.is_floating_point()
    loss = loss_of(model.train()(x.requires_grad_(of_inputs), inputs))
    loss.backward()
    yield "input", x
    if of_inputs:
        yield "input_gradient", x.grad
    for key, value in inputs.items():
        yield f"input.{key}", value
    yield "label", label
    for p_name, p in model.named_parameters():
        yield f"weight/{p_name}", p
    for b_name, b in start.items():
        yield f"weight/{b_name}", b
    for b_name, b in buffers.items():
        yield f"buffer/{b_name}", b
    yield "output", output
    yield "loss", loss
    for p_name, p in model.named_parameters():
        if p.requires_grad:
            yield f"gradient/{p_name}", p.grad


def packed_cases():
    kinds = {
        "causal": lambda: Attention(12, 3),
        "encoder": lambda: Attention(12, 2, causal=False),
        "rope_grouped": lambda: GroupedAttention(12, 6, kv_heads=3, base=500000.0),
        "window": lambda: ScoredAttention(12, 3, kv_heads=1, size=6, base=10000.0, window=3),
        "alibi": lambda: ScoredAttention(12, 6, alibi=True),
        "capped_prefix": lambda: ScoredAttention(12, 2, prefix=3, cap=0.5),
    }
    for name, attention in kinds.items():
        yield name, Model(Embedding(13, 12), Positions(8, 12), Residual(LayerNorm(12), attention()), Linear(12, 13))


def run_packed(name, model):
    """One sequence of all documents, whose labels are their next tokens."""
    draw = Draw("packed." + name)
    draw.parameters(model)
    lengths = [8, 7, 5, 3, 1]
    x = draw.ids(13, sum(lengths))
    label = torch.cat([functional.pad(document[1:], (0, 1), value=-1) for document in x.split(lengths)])
    output = model(x[None], documents=Documents(lengths))[0]
    loss = functional.cross_entropy(output, label, ignore_index=-1)
    loss.backward()
    yield from {"input": x, "label": label, "lengths": torch.tensor(lengths), "output": output, "loss": loss}.items()
    for p_name, p in model.named_parameters():
        yield f"weight/{p_name}", p
        yield f"gradient/{p_name}", p.grad


# ---- optimizers ----

STEPS, TABLES = 10, ["0.weight", "1.weight"]
HALF, WITH_STATE = 5, {"sgd.momentum", "adam", "adamw", "nadam.decay", "adamax", "rmsprop", "rmsprop.momentum", "centered_rmsprop.momentum",
                       "adagrad.decay", "adafactor", "muon"}
OPTIMIZERS = {  # case: optimizer, settings by pipe's names
    "sgd": ("SGD", {"learning_rate": 0.6}),
    "sgd.momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    "sgd.nesterov": ("SGD", {"learning_rate": 0.1, "momentum": 0.8, "weight_decay": 0.1, "nesterov": 1}),
    "adam": ("Adam", {"learning_rate": 0.05}),
    "adam.decay": ("Adam", {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "weight_decay": 0.1}),
    "adamw": ("AdamW", {"learning_rate": 0.05}),
    "adamw.decay": ("AdamW", {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "weight_decay": 0.5}),
    "nadam": ("NAdam", {"learning_rate": 0.05}),
    "nadam.decay": ("NAdam", {"learning_rate": 0.05, "beta1": 0.99, "beta2": 0.95, "momentum_decay": 0.2, "epsilon": 1e-3,
                              "weight_decay": 0.5}),
    "adamax": ("Adamax", {"learning_rate": 0.05}),
    "adamax.decay": ("Adamax", {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.7, "epsilon": 1e-2, "weight_decay": 0.1}),
    "rmsprop": ("RMSprop", {"learning_rate": 0.01}),
    "rmsprop.momentum": ("RMSprop", {"learning_rate": 0.01, "alpha": 0.9, "epsilon": 1e-2, "weight_decay": 0.1, "momentum": 0.8}),
    "centered_rmsprop": ("CenteredRMSprop", {"learning_rate": 0.01}),
    "centered_rmsprop.momentum": ("CenteredRMSprop", {"learning_rate": 0.01, "alpha": 0.9, "epsilon": 1e-2, "weight_decay": 0.1,
                                                      "momentum": 0.8}),
    "adagrad": ("Adagrad", {"learning_rate": 0.05}),
    "adagrad.decay": ("Adagrad", {"learning_rate": 0.2, "learning_rate_decay": 0.1, "weight_decay": 0.1,
                                  "initial_accumulator_value": 0.01, "epsilon": 1e-3}),
    "adafactor": ("Adafactor", {"learning_rate": 0.1}),
    "adafactor.decay": ("Adafactor", {"learning_rate": 0.1, "beta2_decay": -0.5, "epsilon1": 1e-4, "epsilon2": 0.5,
                                      "threshold": 1.25, "weight_decay": 0.5}),
    "lion": ("Lion", {"learning_rate": 0.02}),
    "lion.decay": ("Lion", {"learning_rate": 0.02, "beta1": 0.8, "beta2": 0.95, "weight_decay": 1.0}),
    "lamb": ("LAMB", {"learning_rate": 0.05}),
    "lamb.decay": ("LAMB", {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "weight_decay": 0.5}),
    "muon": ("Muon", {"learning_rate": 0.05, "others.learning_rate": 0.05}),
    "muon.adamw_rate": ("Muon", {"learning_rate": 0.1, "momentum": 0.8, "nesterov": 0, "weight_decay": 0.5, "adjust": 1,
                                 "others.learning_rate": 0.05, "others.weight_decay": 0.5}),
    "muon.spectral": ("Muon", {"learning_rate": 0.05, "newton_schulz_steps": 3, "a": 3.0, "b": -3.2, "c": 1.2, "adjust": 2,
                               "others.learning_rate": 0.05, "others.epsilon": 1e-3}),
    "muon.bfloat16": ("MuonInBfloat16", {"learning_rate": 0.05, "others.learning_rate": 0.05}),
    "clip_norm": ("SGD", {"learning_rate": 1.0, "clip_norm": 1.0}),
    "clip_value": ("SGD", {"learning_rate": 1.0, "clip_value": 0.05}),
    "clip_both": ("SGD", {"learning_rate": 1.0, "clip_value": 0.1, "clip_norm": 0.4}),
    "averages": ("AdamW", {"learning_rate": 0.05, "decay": 0.9}),
}


def optimizer_model():
    """The first step's gradients are zero for some rows of the table: ids that do not come up."""
    return Model(Embedding(7, 6), Positions(3, 6), Linear(6, 9), LayerNorm(9), nn.Tanh(), Linear(9, 5, bias=False),
                 Linear(5, 4))


def optimizer_cases():
    draw, model = Draw("optimizers"), optimizer_model()
    draw.parameters(model)
    x, label = draw.ids(7, STEPS, SAMPLES, 3), draw.numbers(STEPS, SAMPLES, 3, 4)
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    yield "start/input", x
    yield "start/label", label
    for name, p in start.items():
        yield f"start/weight/{name}", p
    for case, (kind, settings) in OPTIMIZERS.items():
        model.load_state_dict(start)
        for name, value in settings.items():
            yield f"{case}/setting.{name}", torch.tensor(float(value))
        ran = run_optimizer(kind, settings, model, x, label, case in WITH_STATE)
        yield from ((f"{case}/{what}", tensor) for what, tensor in ran)


def state_of(model, optimizer):
    """The tensors of the flattened state dict."""
    all_of_it = [optimizer.matrices, optimizer.others] if isinstance(optimizer, optimizers.Muon) else optimizer
    state = get_optimizer_state_dict(model, all_of_it, options=StateDictOptions(flatten_optimizer_state_dict=True))
    return {name: value.clone() for name, value in state.items() if torch.is_tensor(value)}


def run_optimizer(kind, settings, model, x, label, with_state):
    own = {"clip_norm", "clip_value", "decay"}
    optimizer = optimizers.make(kind, {k: v for k, v in settings.items() if k not in own}, model, TABLES)
    averaged = None
    if "decay" in settings:
        averaged = optim.swa_utils.AveragedModel(model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(settings["decay"]))
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    losses, norms = [], []
    for step in range(STEPS):
        loss = functional.mse_loss(model(x[step]), label[step])
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.detach())
        norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]))
        if "clip_value" in settings:
            nn.utils.clip_grad_value_(model.parameters(), settings["clip_value"])
        if "clip_norm" in settings:
            nn.utils.clip_grad_norm_(model.parameters(), settings["clip_norm"])
        optimizer.step()
        if averaged is not None:
            averaged.update_parameters(model)
        if step + 1 in ((1, HALF, STEPS) if with_state else (1, STEPS)):
            for name, p in model.named_parameters():
                yield f"step_{step + 1}/{name}", p.detach().clone()
            for name, p in averaged.module.named_parameters() if averaged is not None else []:
                yield f"average_{step + 1}/{name}", p.detach().clone()
        if with_state and step + 1 == HALF:
            for name, value in state_of(model, optimizer).items():
                yield f"state_{HALF}/{name}", value
    yield "loss", torch.stack(losses)
    yield "norm", torch.stack(norms)
    for name, p in model.named_parameters():  # or parameters that agree would say little about how they moved
        assert (p - start[name]).norm() > 0.04 * start[name].norm(), (kind, settings, name)
    if kind == "Lion":  # or float32 could turn a sign
        assert optimizer.closest > 2e-5, optimizer.closest


# ---- layers around others ----


def adapted_cases():
    yield "lora", Input(3, 5), Model(
        LoRA(Linear(5, 7), 2, alpha=3), nn.Tanh(), LoRA(Linear(7, 6, bias=False), 3),
        AdaptedAttention(GroupedAttention(6, 3, kv_heads=1, base=10000.0), 2, alpha=5),
        Residual(frozen(LayerNorm(6)), LoRA(Linear(6, 9), 2), GELUTanh(), LoRA(Linear(9, 6), 2)), Linear(6, 2))
    yield "reversible", Input(3, 8), Model(
        Linear(8, 8), Reversible(Seq(LayerNorm(4), Attention(4, 2, bias=False)), Seq(Linear(4, 6), GELUTanh(), Linear(6, 4))),
        Reversible(Seq(RMSNorm(4), Linear(4, 4)), Seq(nn.Tanh())), Linear(8, 2))
    yield "lora.reversible", Input(3, 6), Model(
        Linear(6, 6), Reversible(
            Seq(frozen(LayerNorm(3)), LoRA(Linear(3, 5), 2, alpha=3), nn.Tanh(), LoRA(Linear(5, 3), 2, alpha=3)),
            Seq(LoRA(Linear(3, 3), 2, alpha=3))), Linear(6, 2))


def run_adapted(name, first, model):
    draw = Draw(name)
    draw.parameters(model)
    x = torch.stack([first(draw) for _ in range(STEPS)])
    label = draw.numbers(*x.shape[:-1], 2)
    trained = {p_name: p for p_name, p in model.named_parameters() if p.requires_grad}
    yield "input", x
    yield "label", label
    for p_name, p in model.named_parameters():
        yield f"weight/{p_name}", p.detach().clone()
    yield "output", model(x[0])
    optimizer = optimizers.make("AdamW", {"learning_rate": 0.05}, model, [])
    losses, norms = [], []
    for step in range(STEPS):
        loss = functional.mse_loss(model(x[step]), label[step])
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            for p_name, p in trained.items():
                yield f"gradient/{p_name}", p.grad.clone()
        losses.append(loss.detach())
        norms.append(nn.utils.get_total_norm([p.grad for p in trained.values()]))
        optimizer.step()
    yield "loss", torch.stack(losses)
    yield "norm", torch.stack(norms)
    for p_name, p in trained.items():
        yield f"step_{STEPS}/{p_name}", p


# ---- training ----

TRAINING_STEPS = 50


def gpt():
    def block():
        return [Residual(LayerNorm(32), Attention(32, 4)), Residual(LayerNorm(32), Linear(32, 128), GELUTanh(), Linear(128, 32))]

    draw = Draw("gpt")
    model = Model(Embedding(65, 32), Positions(16, 32), Repeat(2, block), LayerNorm(32), Linear(32, 65))
    draw.parameters(model, 0.1)
    text = followed(draw, 65, TRAINING_STEPS, 8, 17)
    yield from train(model, text[..., :-1], {}, text[..., 1:])


def translator():
    def reads():
        return [Residual(LayerNorm(24), Attention(24, 2, causal=False)),
                Residual(LayerNorm(24), Linear(24, 48), nn.GELU(), Linear(48, 24))]

    def writes():
        return [Residual(RMSNorm(24), GroupedAttention(24, 3, base=10000.0)),
                Residual(RMSNorm(24), CrossAttention(24, 3, "memory", kv_heads=1)),
                Residual(RMSNorm(24), Linear(24, 64), Gate(functional.silu), Linear(32, 24))]

    draw = Draw("translator")
    words = Embedding(23, 24)
    model = Model(Embedding(29, 24), SinusoidalPositions(), Repeat(2, reads), LayerNorm(24), Stash("memory"),
                  FurtherInput("target"), ("words", words), Positions(8, 24), Repeat(2, writes), LayerNorm(24), Tied(words))
    draw.parameters(model, 0.1)
    source = draw.ids(29, TRAINING_STEPS, 8, 10)
    target = torch.cat([draw.ids(23, TRAINING_STEPS, 8, 1), (3 * source[..., :8] + 5) % 23], -1)
    for s in range(8):  # sources and targets of all lengths
        source[:, s, 10 - s:] = -1
        target[:, s, 9 - s // 2:] = -1
    yield from train(model, source, {"target": target[..., :-1]}, target[..., 1:])


def followed(draw, vocabulary, *shape):
    """Sequences that a model can learn a part of: most ids follow from the one before."""
    ids, surprise = draw.ids(vocabulary, *shape), draw.shares(*shape) < 0.2
    for t in range(1, shape[-1]):
        ids[..., t] = torch.where(surprise[..., t], ids[..., t], (5 * ids[..., t - 1] + 17) % vocabulary)
    return ids


def train(model, x, inputs, label):
    yield "input", x
    for key, value in inputs.items():
        yield f"input.{key}", value
    yield "label", label
    for name, p in model.named_parameters():
        yield f"weight/{name}", p.detach().clone()
    optimizer = optimizers.make("AdamW", {"learning_rate": 1e-3}, model, [])
    losses, norms = [], []
    for step in range(TRAINING_STEPS):
        output = model(x[step], {key: value[step] for key, value in inputs.items()})
        loss = functional.cross_entropy(output.flatten(0, 1), label[step].flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            for name, p in model.named_parameters():
                yield f"gradient/{name}", p.grad.clone()
        losses.append(loss.detach())
        norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]))
        optimizer.step()
    yield "loss", torch.stack(losses)
    yield "norm", torch.stack(norms)


def stored(what, tensor):
    """Losses, norms and settings keep their digits."""
    exact = not tensor.is_floating_point() or tensor.dim() == 0 or what in ("loss", "norm")
    return tensor.detach() if exact else tensor.detach().float()


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    files = {"layers": layer_cases, "convolutions": convolution_cases, "resampling": resampling_cases,
             "rectifiers": rectifier_cases, "attention": attention_cases, "losses": loss_cases}
    for file, cases in files.items():
        tensors = {f"{case[0]}/{what}": stored(what, t) for case in cases() for what, t in run_case(*case)}
        write_safetensors(HERE / f"{file}.safetensors", tensors)
    tensors = {f"{case[0]}/{what}": t.detach() for case in fp64_cases() for what, t in run_case(*case, of_inputs=True)}
    write_safetensors(HERE / "fp64.safetensors", tensors)
    tensors = {name: stored(name.split("/")[-1], t) for name, t in optimizer_cases()}
    write_safetensors(HERE / "optimizers.safetensors", tensors)
    tensors = {f"{case[0]}/{what}": stored(what, t) for case in adapted_cases() for what, t in run_adapted(*case)}
    write_safetensors(HERE / "adapted.safetensors", tensors)
    tensors = {f"{case[0]}/{what}": stored(what, t) for case in packed_cases() for what, t in run_packed(*case)}
    write_safetensors(HERE / "packed.safetensors", tensors)
    for run in gpt, translator:
        tensors = {f"{run.__name__}/{what}": stored(what, t) for what, t in run()}
        write_safetensors(HERE / f"{run.__name__}.safetensors", tensors)


if __name__ == "__main__":
    main()
