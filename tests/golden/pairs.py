#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Ten modules as PyTorch's users write them, for pairs.cpp and docs/howto/from_pytorch.md. Writes pairs/NAME.safetensors, the state_dict of each,
and what each computes: outputs in eval mode and the loss of a mini-batch in train mode into pairs.safetensors, its gradients and the running statistics after
it under the names of the state_dict into pairs/NAME.after.safetensors.

    python3 tests/golden/pairs.py      # needs torch and numpy
"""
import torch
from torch import nn
from torch.nn import functional

from write_golden import HERE, Draw, stored, write_safetensors


# [mlp]
def mlp():
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5))
# [/mlp]


# [convnet]
def convnet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 12, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 5))
# [/convnet]


# [resblock]
class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = BasicBlock(3, 8, 2)
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        return self.fc(self.block(x).mean((2, 3)))
# [/resblock]


# [mobile]
class InvertedResidual(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(width, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(),
            nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(),
            nn.Conv2d(hidden, width, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return x + self.conv(x)


def mobile():
    return nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1), InvertedResidual(6, 18), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))
# [/mobile]


# [unet]
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, padding=1)
        self.middle = nn.Conv2d(6, 10, 3, padding=1)
        self.up = nn.ConvTranspose2d(10, 6, 2, 2)
        self.out = nn.Conv2d(12, 4, 1)

    def forward(self, x):
        fine = torch.relu(self.down(x))
        coarse = torch.relu(self.middle(functional.max_pool2d(fine, 2)))
        return self.out(torch.cat([self.up(coarse), fine], 1))
# [/unet]


# [bag]
class BagOfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 12)
        self.hidden = nn.Linear(12, 16)
        self.out = nn.Linear(16, 5)

    def forward(self, ids):
        return self.out(functional.gelu(self.hidden(self.words(ids).mean(1))))
# [/bag]


# [encoder]
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 12)
        self.positions = nn.Parameter(torch.zeros(9, 12))
        layer = nn.TransformerEncoderLayer(12, 3, 24, dropout=0, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, nn.LayerNorm(12), enable_nested_tensor=False)
        self.out = nn.Linear(12, 5)

    def forward(self, ids):
        return self.out(self.blocks(self.words(ids) + self.positions).mean(1))
# [/encoder]


# [gpt]
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(12), nn.LayerNorm(12)
        self.attn = nn.MultiheadAttention(12, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(12, 48), nn.GELU(approximate="tanh"), nn.Linear(48, 12))

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50, 12), nn.Embedding(9, 12)
        self.h = nn.ModuleList([Block(), Block()])
        self.ln_f = nn.LayerNorm(12)
        self.head = nn.Linear(12, 50, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))
# [/gpt]


# [vit]
class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, 12, 4, 4)
        self.class_token = nn.Parameter(torch.zeros(1, 12))
        self.positions = nn.Parameter(torch.zeros(10, 12))
        self.block = nn.TransformerEncoderLayer(12, 3, 24, dropout=0, activation="gelu", batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(12, eps=1e-6)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        patches = self.conv_proj(x).flatten(2).transpose(1, 2)
        token = self.class_token.expand(len(x), 1, -1)
        y = self.block(torch.cat([token, patches], 1) + self.positions)
        return self.head(self.norm(y)[:, 0])
# [/vit]


# [signal]
def signal():
    return nn.Sequential(
        nn.Conv1d(2, 8, 5, stride=2, padding=2), nn.GroupNorm(2, 8), nn.SiLU(),
        nn.ConvTranspose1d(8, 4, 4, stride=2, padding=1), nn.LeakyReLU(), nn.Conv1d(4, 2, 1))
# [/signal]


# name: the module, the shape of a sample as PyTorch has it (or its tokens), and whether labels are classes
CASES = {
    "mlp": (mlp, (20,), "classes"), "convnet": (convnet, (3, 12, 12), "classes"), "resblock": (ResNet, (3, 8, 8), "classes"),
    "mobile": (mobile, (3, 8, 8), "classes"), "unet": (UNet, (3, 8, 8), "numbers"), "bag": (BagOfWords, 9, "classes"),
    "encoder": (Encoder, 9, "classes"), "gpt": (GPT, 9, "words"), "vit": (VisionTransformer, (3, 12, 12), "classes"),
    "signal": (signal, (2, 16), "numbers"),
}


def channels_last(x):
    return x.movedim(1, -1) if x.dim() > 2 else x


def run(name, make, form, kind, samples=4):
    draw = Draw("pair " + name)
    model = make()
    draw.parameters(model)
    for key, buffer in model.named_buffers():
        if key.endswith(("running_mean", "running_var")):
            buffer.copy_((draw.shares(*buffer.shape) + 0.5).float())
    write_safetensors(HERE / "pairs" / f"{name}.safetensors", {k: stored("", t.clone()) for k, t in model.state_dict().items()})
    x = draw.ids(50, samples, form) if isinstance(form, int) else draw.numbers(samples, *form)
    is_image = not isinstance(form, int) and len(form) > 1
    yield "input", channels_last(x) if is_image else x
    model.eval()
    output = model(x)
    has_places = kind == "numbers"
    yield "output", channels_last(output) if has_places else output
    model.train()
    output = model(x)
    if kind == "numbers":
        label = draw.numbers(*output.shape)
        yield "label", channels_last(label)
        loss = functional.mse_loss(output, label)
    else:
        label = draw.ids(output.shape[-1], *output.shape[:-1])
        yield "label", label
        loss = functional.cross_entropy(output.flatten(0, -2), label.flatten())
    loss.backward()
    yield "loss", loss
    after = {key: p.grad for key, p in model.named_parameters()}
    after.update((key, buffer) for key, buffer in model.named_buffers() if key.endswith(("running_mean", "running_var")))
    write_safetensors(HERE / "pairs" / f"{name}.after.safetensors", {k: stored("", t) for k, t in after.items()})


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    (HERE / "pairs").mkdir(exist_ok=True)
    tensors = {f"{name}/{what}": stored(what, t) for name, case in CASES.items() for what, t in run(name, *case)}
    write_safetensors(HERE / "pairs.safetensors", tensors)


if __name__ == "__main__":
    main()
