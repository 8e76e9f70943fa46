#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What BF16 means, written with PyTorch's functions: values and their gradients are rounded to bfloat16 after each op, a linear layer adds its bias before
it rounds, kernels read rounded copies of parameters, and everything else is wide (here fp64). Not what `model.bfloat16()` does, whose gradients of parameters
and sums over micro-batches are bfloat16, too. Writes bf16.safetensors; wide/ has the same without rounding, by which bf16.cpp tells how much the
rounding changes.

    python3 tests/golden/bf16.py      # needs torch and numpy
"""
import torch
from torch import nn
from torch.nn import functional

from layers import Attention, Embedding, Model, Positions, Residual
from write_golden import HERE, Draw, stored, write_safetensors


def rounded(x):
    return x.float().bfloat16().double()


class Rounded(torch.autograd.Function):
    """A value in memory, and its gradient."""

    @staticmethod
    def forward(ctx, x):
        return rounded(x)

    @staticmethod
    def backward(ctx, slope):
        return rounded(slope)


class Copied(torch.autograd.Function):
    """What a kernel reads of a parameter, whose gradient is not rounded."""

    @staticmethod
    def forward(ctx, x):
        return rounded(x)

    @staticmethod
    def backward(ctx, slope):
        return slope


class AttentionByAMX(torch.autograd.Function):
    """Causal attention whose products have bfloat16 factors, as in FlashAttention: e^(score - largest), probabilities and gradients of scores are rounded where
    they are multiplied, and nowhere else."""

    @staticmethod
    def forward(ctx, q, k, v):
        scale = q.shape[-1] ** -0.5
        hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
        scores = (q @ k.mT * scale).masked_fill(hidden, -torch.inf)
        weights = torch.exp(scores - scores.amax(-1, keepdim=True))
        out = rounded(weights) @ v / weights.sum(-1, keepdim=True)
        ctx.scale = scale
        ctx.save_for_backward(q, k, v, torch.softmax(scores, -1), out)
        return out

    @staticmethod
    def backward(ctx, slope):
        q, k, v, p, out = ctx.saved_tensors
        mean = (rounded(out) * slope).sum(-1, keepdim=True)
        of_scores = rounded(p * (slope @ v.mT - mean) * ctx.scale)
        return of_scores @ k, of_scores.mT @ q, rounded(p).mT @ slope


class Rules:
    """value(x): a result of an op. Each op reads a result through a value of its own, as gradients are rounded before they are added up."""

    def __init__(self, rounds, by_amx):
        self.value = Rounded.apply if rounds else lambda x: x
        self.copy = Copied.apply if rounds else lambda x: x
        self.attend = AttentionByAMX.apply if rounds and by_amx else \
            lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def linear(self, x, weight, bias):
        return self.value(functional.linear(self.value(x), self.copy(weight), self.copy(bias)))

    def norm(self, x, layer):
        return self.value(functional.layer_norm(self.value(x), layer.normalized_shape, self.copy(layer.weight),
                                                self.copy(layer.bias), layer.eps))

    def map(self, x, function):
        return self.value(function(self.value(x)))

    def add(self, x, y):
        return self.value(self.value(x) + self.value(y))

    def attention(self, x, layer):
        qkv = self.linear(x, layer.in_proj_weight, layer.in_proj_bias)
        q, k, v = (z.unflatten(-1, (layer.num_heads, -1)).transpose(1, 2) for z in self.value(qkv).chunk(3, -1))
        y = self.value(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return self.linear(y, layer.out_proj.weight, layer.out_proj.bias)


def perceptron():
    model = Model(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 33), nn.GELU(), nn.Linear(33, 5))

    def run(r, x):
        x = r.map(r.linear(x, model[0].weight, model[0].bias), torch.relu)
        x = r.map(r.linear(x, model[2].weight, model[2].bias), functional.gelu)
        return r.linear(x, model[4].weight, model[4].bias)

    return model, run


def transformer():
    model = Model(Embedding(17, 16), Positions(8, 16), Residual(nn.LayerNorm(16), Attention(16, 2)),
                  Residual(nn.LayerNorm(16), nn.Linear(16, 40), nn.GELU(), nn.Linear(40, 16)), nn.LayerNorm(16), nn.Linear(16, 17))

    def run(r, x):
        (table,), (positions,) = model[0].parameters(), model[1].parameters()
        x = r.value(r.value(functional.embedding(x, r.copy(table))) + r.copy(positions))
        x = r.add(x, r.attention(r.norm(x, model[2][0]), model[2][1]))
        y = r.linear(r.norm(x, model[3][0]), model[3][1].weight, model[3][1].bias)
        y = r.linear(r.map(y, functional.gelu), model[3][3].weight, model[3][3].bias)
        return r.linear(r.norm(r.add(x, y), model[4]), model[5].weight, model[5].bias)

    return model, run


def case(name, make, samples, draw_input, loss, by_amx=False):
    """All that bf16.cpp compares: of the model with rounding, and, under wide/, without."""
    draw = Draw("bf16 " + name)
    model, run = make()
    model.double()
    draw.parameters(model)
    x, label = draw_input(draw, samples)
    all_of = {f"{name}/input": x.float() if x.is_floating_point() else x, f"{name}/label": label.float() if label.is_floating_point() else label}
    for parameter, p in model.named_parameters():
        all_of[f"{name}/weight/{parameter}"] = p.float()
    for rounds in (True, False):
        prefix = name if rounds else f"{name}/wide"
        rules = Rules(rounds, by_amx)
        model.zero_grad()
        output = run(rules, rules.value(x) if x.is_floating_point() else x)
        value = loss(rules.value(output), label)
        value.backward()
        all_of[f"{prefix}/output"] = output.float()
        all_of[f"{prefix}/loss"] = value.reshape(1)
        for parameter, p in model.named_parameters():
            all_of[f"{prefix}/gradient/{parameter}"] = p.grad.float()
    return all_of


def main():
    tensors = case("perceptron", perceptron, 32, lambda d, n: (d.numbers(n, 20), d.numbers(n, 5)),
                   lambda y, label: ((y - label) ** 2).mean())
    for name, by_amx in (("transformer", False), ("transformer_by_amx", True)):
        tensors |= case(name, transformer, 8, lambda d, n: (d.ids(17, n, 8), d.ids(17, n, 8)),
                        lambda y, label: functional.cross_entropy(y.flatten(0, 1), label.flatten()), by_amx)
    write_safetensors(HERE / "bf16.safetensors", tensors)


if __name__ == "__main__":
    main()
