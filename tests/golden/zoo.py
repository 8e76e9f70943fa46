#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Files as the hubs have them, for zoo.cpp: models of torchvision and Hugging Face, and milesial's U-Net, narrowed until they are small. Writes
zoo/NAME.safetensors, the state_dict of each with random weights and running statistics, what it computes in eval mode into zoo.safetensors, and the
names and shapes of the published sizes, without their weights, into zoo/SIZE.names.

    python3 tests/golden/zoo.py      # needs torch, torchvision, transformers, safetensors and numpy
"""
import tempfile

import torch
import torchvision.models as vision
from safetensors.torch import load_file
from torch import nn
from transformers import (
    BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, GPT2Model, LlamaConfig, LlamaForCausalLM, ViTConfig,
    ViTForImageClassification)
from transformers.core_model_loading import revert_weight_conversion

from write_golden import HERE, Draw, stored, write_safetensors


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        layers = [[nn.Conv2d(i, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()] for i in (inputs, outputs)]
        self.double_conv = nn.Sequential(*layers[0], *layers[1])

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, outputs))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.up = nn.ConvTranspose2d(inputs, outputs, 2, 2)
        self.conv = DoubleConv(inputs, outputs)

    def forward(self, coarse, fine):
        return self.conv(torch.cat([fine, self.up(coarse)], 1))


class OutConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    """With the names of milesial's."""

    def __init__(self, width, classes):
        super().__init__()
        self.inc = DoubleConv(3, width)
        for i in range(1, 5):
            setattr(self, f"down{i}", Down(width << i - 1, width << i))
            setattr(self, f"up{i}", Up(width << 5 - i, width << 4 - i))
        self.outc = OutConv(width, classes)

    def forward(self, x):
        levels = [self.inc(x)]
        for i in range(1, 5):
            levels.append(getattr(self, f"down{i}")(levels[-1]))
        y = levels.pop()
        for i in range(1, 5):
            y = getattr(self, f"up{i}")(y, levels.pop())
        return self.outc(y)


def narrowed(model, width):
    """The same model with width(n) channels for each n."""
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, t in tensors.items():
                if t is not None and t.dim() > 0:
                    small = torch.zeros([width(n) for n in t.shape[:2]] + list(t.shape[2:]))
                    tensors[name] = nn.Parameter(small) if isinstance(t, nn.Parameter) else small
    return model


def by(factor):
    return lambda n: n // factor if n % factor == 0 else n


def alexnet_width(n):
    return 8 if n == 4096 else by(32)(n)


def bert():
    return BertForSequenceClassification(BertConfig(
        vocab_size=40, max_position_embeddings=7, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48,
        num_labels=3, attn_implementation="eager"))


def vit(kind):
    if kind == "torchvision":
        return vision.VisionTransformer(image_size=12, patch_size=4, num_layers=2, num_heads=3, hidden_dim=12, mlp_dim=48, num_classes=5)
    return ViTForImageClassification(ViTConfig(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48, image_size=12, patch_size=4, layer_norm_eps=1e-6,
        num_labels=5, attn_implementation="eager"))


def llama(layers, width, hidden, key_value_heads, vocabulary):
    return LlamaForCausalLM(LlamaConfig(
        num_hidden_layers=layers, hidden_size=width, intermediate_size=hidden, num_attention_heads=width // 128,
        num_key_value_heads=key_value_heads, vocab_size=vocabulary))


# name: the module, and the shape of a sample as PyTorch has it
CASES = {
    "alexnet": (lambda: narrowed(vision.alexnet(num_classes=5), alexnet_width), (3, 111, 63)),
    "resnet_basic": (lambda: narrowed(vision.resnet18(num_classes=5), by(32)), (3, 32, 48)),
    "resnet_bottleneck": (lambda: narrowed(vision.ResNet(vision.resnet.Bottleneck, [3, 2, 2, 3], num_classes=5), by(64)), (3, 32, 48)),
    "unet": (lambda: UNet(1, 2), (3, 16, 32)),
    "vit": (lambda: vit("torchvision"), (3, 12, 12)),
    "vit_huggingface": (lambda: vit("huggingface"), (3, 12, 12)),
    "bert": (bert, 7),
}
# The names of examples/models, and behind a dot the hub, where they have several.
SIZES = {
    "alexnet-one-tower": vision.alexnet, "resnet-18": vision.resnet18, "resnet-50": vision.resnet50, "resnet-152": vision.resnet152,
    "wide-resnet-50-2": vision.wide_resnet50_2, "resnext-50-32x4d": vision.resnext50_32x4d, "unet-carvana": lambda: UNet(64, 2),
    "vit-b-16": vision.vit_b_16, "vit-b-16.huggingface": lambda: ViTForImageClassification(ViTConfig(num_labels=1000)),
    "vit-l-16": vision.vit_l_16, "gpt2": lambda: GPT2Model(GPT2Config()),  # as the published file, without a prefix
    "gpt2-xl": lambda: GPT2LMHeadModel(GPT2Config(n_layer=48, n_embd=1600, n_head=25)),
    "bert-base": lambda: BertForSequenceClassification(BertConfig()),
    "bert-large": lambda: BertForSequenceClassification(BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)),
    "llama2-7b": lambda: llama(32, 4096, 11008, 32, 32000), "llama2-70b": lambda: llama(80, 8192, 28672, 8, 32000),
    "llama3-8b": lambda: llama(32, 4096, 14336, 8, 128256), "llama3-70b": lambda: llama(80, 8192, 28672, 8, 128256),
}


def fill(model, draw):
    with torch.no_grad():
        for name, t in model.state_dict().items():
            if name.endswith("running_var"):
                t.copy_((draw.shares(*t.shape) + 0.5).float())
            elif t.is_floating_point():
                fan_in = t[0].numel() if t.dim() > 1 else 10
                t.copy_((draw.numbers(*t.shape) / fan_in ** 0.5 + (t.dim() == 1 and name.endswith("weight"))).float())


def file_of(model):
    """What a file of the model has: transformers keeps the names there when it renames its modules."""
    if not hasattr(model, "save_pretrained"):
        return model.state_dict()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(folder + "/model.safetensors")


def run(name, make, form, samples=2):
    draw = Draw("hub " + name)
    model = make().double().eval()
    fill(model, draw)
    write_safetensors(HERE / "zoo" / f"{name}.safetensors", {k: stored("", t.clone()) for k, t in file_of(model).items()})
    if name == "bert":
        ids, types = draw.ids(40, samples, form), draw.ids(2, samples, form)
        yield "input", ids
        yield "input.types", types
        output = model(ids, token_type_ids=types).logits
    else:
        x = draw.numbers(samples, *form).half()
        yield "input", x.movedim(1, -1)
        output = model(x.double())
        output = output if torch.is_tensor(output) else output.logits
    if output.dim() > 2:
        output = output.movedim(1, -1)
    yield "output", stored("", output)
    yield "label", output.argmax(-1)


def write_size(size, make):
    with torch.device("meta"):
        model = make()
    tensors = model.state_dict()
    if hasattr(model, "save_pretrained"):
        tensors = revert_weight_conversion(model, tensors)  # as save_pretrained does, which takes no tensors without memory
    lines = [" ".join([name, *map(str, t.shape)]) for name, t in tensors.items()]
    (HERE / "zoo" / f"{size}.names").write_text("\n".join(lines) + "\n")


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    (HERE / "zoo").mkdir(exist_ok=True)
    write_safetensors(HERE / "zoo.safetensors", {f"{name}/{what}": t for name, case in CASES.items() for what, t in run(name, *case)})
    for size, make in SIZES.items():
        write_size(size, make)


if __name__ == "__main__":
    main()
