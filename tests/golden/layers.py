# SPDX-License-Identifier: BSL-1.0
"""The layers of pipe as PyTorch modules, made of PyTorch's own modules and functions wherever it has them.

A model is a `Seq` of its items after the first input, in pipe's order and with pipe's names for what they hold, so that
`model.named_parameters()` gives the names of pipe/train/names.hpp. Shapes: B samples, T positions, C channels.
"""
import functools
import math

import torch
from torch import nn
from torch.nn import functional


class Documents:
    """Documents that lie one behind the other in one sequence: the place of each position in its document, and a mask, bool
    (T, T), that hides all other documents: block-diagonal."""

    def __init__(self, lengths):
        self.places = torch.cat([torch.arange(n) for n in lengths])
        number = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
        self.hidden = number[:, None] != number[None, :]


class Around:
    """What a layer may read besides its input: further inputs, stashed values, where the current sequence is padded, and which
    documents it consists of."""

    def __init__(self, inputs, documents=None):
        self.inputs = inputs
        self.stashed = {}
        self.documents = documents  # Documents, or None: one in each sample
        self.padding = None  # bool (B, T): trailing positions that are no tokens
        self.tokens = None  # bool (B, T): positions that are tokens


class Layer(nn.Module):
    """A layer whose forward also takes an Around."""


class Seq(nn.Sequential, Layer):
    def forward(self, x, around=None):
        for layer in self:
            x = layer(x, around) if isinstance(layer, Layer) else layer(x)
        return x


class Residual(Seq):
    def forward(self, x, around=None):
        return x + super().forward(x, around)


class Reversible(Seq):
    """Gomez et al., The reversible residual network, 2017, equation 8: PyTorch stores what backward reads."""

    def forward(self, x, around=None):
        f, g = self
        x1, x2 = x.chunk(2, -1)
        y1 = x1 + f(x2, around)
        y2 = x2 + g(y1, around)
        return torch.cat([y1, y2], -1)


def Repeat(n, block):
    """n copies of what `block()` makes."""
    return Seq(*(Seq(*block()) for _ in range(n)))


class Model(Seq):
    """Items and, in the way of pipe's Named, names for some of them: Model(Linear(3, 4), ("head", Linear(4, 2)))."""

    def __init__(self, *items):
        super().__init__()
        for i, item in enumerate(items):
            name, layer = item if isinstance(item, tuple) else (str(i), item)
            self.add_module(name, layer)

    def forward(self, x, inputs=None, documents=None):
        return super().forward(x, Around(inputs or {}, documents))


def channels_last(kind):
    """A module of PyTorch whose channels come last."""

    class ChannelsLast(kind):
        def forward(self, x):
            return super().forward(x.movedim(-1, 1)).movedim(1, -1)

    return ChannelsLast


GroupNorm, InstanceNorm, LocalResponseNorm, PReLU = map(
    channels_last, (nn.GroupNorm, nn.InstanceNorm1d, nn.LocalResponseNorm, nn.PReLU))


class BatchNorm(nn.BatchNorm1d):
    """As in GPipe: normalises micro-batches of two samples by their own statistics; running ones are of the mini-batch."""

    def forward(self, x):
        whole = super().forward(x.flatten(0, -2))  # in training this moves the running statistics
        if not self.training:
            return whole.view_as(x)
        parts = (functional.batch_norm(part.flatten(0, -2), None, None, self.weight, self.bias, True, eps=self.eps)
                 for part in x.split(2))
        return torch.cat(list(parts)).view_as(x)


class Embedding(Layer):
    """nn.Embedding, but an id of -1 has no vector, and where a sample ends in such ids no attention looks."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))

    def forward(self, x, around):
        if x.is_floating_point():  # Tied: the output projection
            return functional.linear(x, self.weight)
        around.tokens = x >= 0
        around.padding = (x >= 0).flip(1).cumsum(1).flip(1) == 0
        return functional.embedding(x.clamp(min=0), self.weight) * (x >= 0).unsqueeze(-1)


class EmbeddingBag(nn.EmbeddingBag):
    """nn.EmbeddingBag, whose ids of -1 are padding: they have a further row of the table, which padding_idx leaves out."""

    def forward(self, x):
        vocabulary = len(self.weight)
        weight = functional.pad(self.weight, (0, 0, 0, 1))
        return functional.embedding_bag(torch.where(x < 0, vocabulary, x), weight, mode=self.mode, padding_idx=vocabulary)


class Pool(Layer):
    """The mean of the positions that are tokens, or the first or the last of them."""

    def __init__(self, which):
        super().__init__()
        self.which = which

    def forward(self, x, around):
        at = around.tokens.double()
        if self.which == "first":
            at = at * (at.cumsum(1) == 1)
        if self.which == "last":
            at = at * (at.flip(1).cumsum(1).flip(1) == 1)
        return (x * at.unsqueeze(-1)).sum(1) / at.sum(1, keepdim=True)


class Positions(Layer):
    def __init__(self, length, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(length, width))

    def forward(self, x, around):
        return x + (self.weight[around.documents.places] if around.documents else self.weight)


class SinusoidalPositions(nn.Module):
    """Vaswani et al., 2017, section 3.5, as PyTorch's tutorials write it."""

    def forward(self, x):
        length, width = x.shape[-2:]
        position = torch.arange(length).unsqueeze(1)
        frequency = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(length, width)
        table[:, 0::2] = torch.sin(position * frequency)
        table[:, 1::2] = torch.cos(position * frequency)[:, : width // 2]
        return x + table


class Image(nn.Module):
    """A module of PyTorch, which puts channels first, on a value (B, H, W, C) or (B, T, C)."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x.movedim(-1, 1)).movedim(1, -1)


class FlattenChannelsFirst(nn.Module):
    def forward(self, x):
        return x.movedim(-1, 1).flatten(1)


class Gate(nn.Module):
    """SwiGLU and GEGLU: the activated half comes first."""

    def __init__(self, activation):
        super().__init__()
        self.activation = activation

    def forward(self, x):
        a, b = x.chunk(2, -1)
        return self.activation(a) * b


def channels_last(convolution):
    """The same layer for images (B, H, W, C) and sequences (B, T, C)."""

    class Last(convolution):
        def forward(self, x):
            return super().forward(x.movedim(-1, 1)).movedim(1, -1)

    return Last


Conv1d, Conv2d = channels_last(nn.Conv1d), channels_last(nn.Conv2d)
ConvTranspose1d, ConvTranspose2d = channels_last(nn.ConvTranspose1d), channels_last(nn.ConvTranspose2d)


class Stash(Layer):
    def __init__(self, key):
        super().__init__()
        self.key = key

    def forward(self, x, around):
        around.stashed[self.key] = (x, around.padding)
        return x


def concat(x, y):
    return torch.cat([x, y], -1)


def dot(x, y):
    return torch.linalg.vecdot(x, y).unsqueeze(-1)


def cosine(x, y):
    return nn.CosineSimilarity(dim=-1)(x, y).unsqueeze(-1)


def distance(x, y):
    return nn.PairwiseDistance(keepdim=True)(x, y)


class Normalize(nn.Module):
    def forward(self, x):
        return nn.functional.normalize(x, dim=-1)


class Pop(Layer):
    """The current value and a stashed one, joined by a function of both."""

    def __init__(self, key, join=torch.add):
        super().__init__()
        self.key, self.join = key, join

    def forward(self, x, around):
        return self.join(x, around.stashed[self.key][0])


class Branches(Seq):
    """Layers on the same value, whose results are joined from left to right by a function of two."""

    def __init__(self, join, *branches):
        super().__init__(*branches)
        self.join = join

    def forward(self, x, around=None):
        return functools.reduce(self.join, (branch(x, around) if isinstance(branch, Layer) else branch(x) for branch in self))


class Beside(Seq):
    """The layers of a FurtherLoss over a stashed value: the value in the chain goes on, theirs is `result`."""

    def __init__(self, key, *items):
        super().__init__(*items)
        self.key = key

    def forward(self, x, around):
        self.result = super().forward(around.stashed[self.key][0], around)
        return x


class FurtherInput(Layer):
    """Named<"name", Tokens<...>> or Named<"name", Input<...>>."""

    def __init__(self, name):
        super().__init__()
        self.name = name

    def forward(self, x, around):
        around.padding = None
        return around.inputs[self.name]


class Tied(Layer):
    """The same module again; a function hides it from named_parameters()."""

    def __init__(self, layer):
        super().__init__()
        self.again = lambda: layer

    def forward(self, x, around):
        return self.again()(x, around)


class Attention(nn.MultiheadAttention, Layer):
    """PyTorch's own, of a sequence to itself."""

    def __init__(self, width, heads, causal=True, bias=True):
        super().__init__(width, heads, bias=bias, batch_first=True)
        self.causal = causal

    def forward(self, x, around):
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1) if self.causal else None
        if around.documents:
            hidden = around.documents.hidden if hidden is None else hidden | around.documents.hidden
        return super().forward(x, x, x, attn_mask=hidden, key_padding_mask=around.padding, need_weights=False)[0]


def rotate_half(x):
    """transformers.models.llama.modeling_llama.rotate_half"""
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def rotated(x, base, documents=None):
    """apply_rotary_pos_emb of the same file. x: (B, H, T, d)."""
    length, size = x.shape[-2:]
    frequency = 1.0 / base ** (torch.arange(0, size, 2) / size)
    places = documents.places if documents else torch.arange(length)
    angles = torch.outer(places.to(frequency), frequency)
    angles = torch.cat([angles, angles], -1)
    return x * angles.cos() + rotate_half(x) * angles.sin()


def attend(q, k, v, heads, kv_heads, causal, padding, base=None, documents=None):
    """scaled_dot_product_attention over (B, T, C), (B, S, K d), (B, S, K d). padding: bool (B, S), or None."""
    q = q.unflatten(-1, (heads, -1)).transpose(1, 2)
    k, v = (z.unflatten(-1, (kv_heads, -1)).transpose(1, 2) for z in (k, v))
    if base is not None:
        q, k = rotated(q, base, documents), rotated(k, base, documents)
    seen = torch.ones(q.shape[0], 1, q.shape[2], k.shape[2], dtype=torch.bool)
    if causal:
        seen = seen.tril()
    if documents:
        seen = seen & ~documents.hidden
    if padding is not None:
        seen = seen & ~padding[:, None, None, :]
    y = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=kv_heads != heads)
    return y.transpose(1, 2).flatten(2)


class GroupedAttention(Layer):
    """KeyValueHeads<K> and RoPE<base>: what nn.MultiheadAttention does not know."""

    def __init__(self, width, heads, kv_heads=None, base=None, causal=True, bias=True):
        super().__init__()
        self.heads, self.kv_heads, self.base, self.causal = heads, kv_heads or heads, base, causal
        self.shared = self.kv_heads * (width // heads)
        self.in_proj_weight = nn.Parameter(torch.empty(width + 2 * self.shared, width))
        self.in_proj_bias = nn.Parameter(torch.empty(width + 2 * self.shared)) if bias else None
        self.out_proj = nn.Linear(width, width, bias=bias)

    def forward(self, x, around):
        qkv = functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = qkv.split([x.shape[-1], self.shared, self.shared], -1)
        return self.out_proj(attend(q, k, v, self.heads, self.kv_heads, self.causal, around.padding, self.base,
                                    around.documents))


def alibi_slopes(heads):
    """transformers.models.bloom.modeling_bloom.build_alibi_tensor"""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    return torch.tensor(slopes + [2 ** (-4 * (2 * h + 1) / power) for h in range(heads - power)])


def attend_by_rules(q, k, v, seen, padding, cap=None, lowered=0.0):
    """Attention step by step over (B, H, T, d), (B, K, S, d), (B, K, S, d): a soft cap as in Gemma 2, what scores are lowered
    by, and a mask. Rows that see nothing give zeros."""
    shared = q.shape[1] // k.shape[1]
    k, v = (z.repeat_interleave(shared, 1) for z in (k, v))
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    scores = scores - lowered
    seen = seen.expand(scores.shape)
    if padding is not None:
        seen = seen & ~padding[:, None, None, :]
    p = scores.masked_fill(~seen, -1e30).softmax(-1) * seen
    return (p @ v).transpose(1, 2).flatten(2)


class ScoredAttention(Layer):
    """Attention with the rules of its scores: a window, a prefix, ALiBi, a soft cap, and heads normalised as in Qwen 3."""

    def __init__(self, width, heads, kv_heads=None, size=None, base=None, window=None, prefix=0, alibi=False, cap=None,
                 normed=False):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads or heads, size or width // heads
        self.base, self.window, self.prefix, self.alibi, self.cap, self.normed = base, window, prefix, alibi, cap, normed
        self.widths = [self.size * n for n in (self.heads, self.kv_heads, self.kv_heads)]
        if normed:
            self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, w) for w in self.widths)
            self.q_norm, self.k_norm = (nn.RMSNorm(self.size, eps=1e-6) for _ in "qk")
        else:
            self.in_proj_weight = nn.Parameter(torch.empty(sum(self.widths), width))
            self.in_proj_bias = nn.Parameter(torch.empty(sum(self.widths)))
        self.out_proj = nn.Linear(self.widths[0], width)

    def forward(self, x, around):
        if self.normed:
            q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        else:
            q, k, v = functional.linear(x, self.in_proj_weight, self.in_proj_bias).split(self.widths, -1)
        q, k, v = (z.unflatten(-1, (-1, self.size)).transpose(1, 2) for z in (q, k, v))
        if self.normed:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.base is not None:
            q, k = rotated(q, self.base, around.documents), rotated(k, self.base, around.documents)
        places = around.documents.places if around.documents else torch.arange(x.shape[1])
        i, j = torch.meshgrid(places, places, indexing="ij")
        lowered = alibi_slopes(self.heads).to(x)[:, None, None] * (i - j) if self.alibi else 0.0
        seen = (j <= i) | (j < self.prefix)
        if self.window is not None:
            seen = seen & (j > i - self.window)
        if around.documents:
            seen = seen & ~around.documents.hidden
        return self.out_proj(attend_by_rules(q, k, v, seen, around.padding, self.cap, lowered))


class CrossAttention(Layer):
    """size: of a head. cap, mask(i, j): rules of its scores."""

    def __init__(self, width, heads, key, memory_width=None, kv_heads=None, bias=True, size=None, cap=None, mask=None):
        super().__init__()
        self.heads, self.kv_heads, self.key, self.cap, self.mask = heads, kv_heads or heads, key, cap, mask
        size = size or width // heads
        own, shared = heads * size, 2 * self.kv_heads * size
        self.q_proj_weight = nn.Parameter(torch.empty(own, width))
        self.kv_proj_weight = nn.Parameter(torch.empty(shared, memory_width or width))
        self.q_proj_bias = nn.Parameter(torch.empty(own)) if bias else None
        self.kv_proj_bias = nn.Parameter(torch.empty(shared)) if bias else None
        self.out_proj = nn.Linear(own, width, bias=bias)

    def forward(self, x, around):
        memory, padding = around.stashed[self.key]
        q = functional.linear(x, self.q_proj_weight, self.q_proj_bias)
        k, v = functional.linear(memory, self.kv_proj_weight, self.kv_proj_bias).chunk(2, -1)
        if self.mask is None:
            return self.out_proj(attend(q, k, v, self.heads, self.kv_heads, False, padding))
        q, k, v = (z.unflatten(-1, (n, -1)).transpose(1, 2) for z, n in ((q, self.heads), (k, self.kv_heads), (v, self.kv_heads)))
        i, j = torch.meshgrid(torch.arange(x.shape[1]), torch.arange(memory.shape[1]), indexing="ij")
        return self.out_proj(attend_by_rules(q, k, v, self.mask(i, j), padding, self.cap))


class LoRA(nn.Module):
    """A Linear of the package peft with its adapter, and no dropout: Hu et al., LoRA, 2021. alpha: by default the rank."""

    def __init__(self, base_layer, rank, alpha=None):
        super().__init__()
        self.base_layer = base_layer.requires_grad_(False)
        self.lora_A = nn.Linear(base_layer.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base_layer.out_features, bias=False)
        self.scale = (alpha or rank) / rank

    def forward(self, x):
        return self.base_layer(x) + self.scale * (x @ self.lora_A.weight.T @ self.lora_B.weight.T)


class AdaptedAttention(Layer):
    """The same for both projections of an attention, under the names of peft for nn.MultiheadAttention. (peft 0.21 itself adds
    the term of the output projection twice there.)"""

    def __init__(self, base_layer, rank, alpha=None):
        super().__init__()
        self.base_layer = base_layer.requires_grad_(False)
        base_layer.out_proj = LoRA(base_layer.out_proj, rank, alpha)
        outputs, inputs = base_layer.in_proj_weight.shape
        self.lora_A, self.lora_B = nn.Linear(inputs, rank, bias=False), nn.Linear(rank, outputs, bias=False)
        self.scale = (alpha or rank) / rank

    def forward(self, x, around):
        weight = self.base_layer.in_proj_weight + self.scale * self.lora_B.weight @ self.lora_A.weight
        return torch.func.functional_call(self.base_layer, {"in_proj_weight": weight}, (x, around))
