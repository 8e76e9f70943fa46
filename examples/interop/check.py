#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The nets of nets.hpp in PyTorch: checks what `interop` made, and makes the same files of its own for `interop check`.

    check.py [check | make | both] [--folder interop]

Needs torch, and nothing else: the format of the files is simple enough to read it by hand.
"""
import argparse
import json
import sys
from collections import OrderedDict
from pathlib import Path

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(f"check.py: {sys.executable} has no torch")

TYPES = {"F32": torch.float32, "I32": torch.int32}


def read(path):
    """safetensors.torch.load_file, for two types."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(bytearray(data[begin + t["data_offsets"][0]:begin + t["data_offsets"][1]]),
                                   dtype=TYPES[t["dtype"]]).reshape(t["shape"]) for name, t in header.items()}


def write(path, tensors):
    """safetensors.torch.save_file, for two types."""
    header, data, names = {}, b"", {of: name for name, of in TYPES.items()}
    for name, tensor in tensors.items():
        values = bytes(tensor.detach().contiguous().flatten().view(torch.uint8).tolist())
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


# [torch]
class Residual(nn.Sequential):
    def forward(self, x):
        return x + super().forward(x)


class Attention(nn.MultiheadAttention):
    def __init__(self, width, heads):
        super().__init__(width, heads, batch_first=True)

    def forward(self, x):
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return super().forward(x, x, x, attn_mask=later, need_weights=False)[0]


class Positions(nn.Module):
    def __init__(self, context, width):
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(context, width))

    def forward(self, x):
        return x + self.weight


class Gpt(nn.Sequential):
    def __init__(self):
        def block():
            return nn.Sequential(Residual(nn.LayerNorm(24), Attention(24, 3)),
                                 Residual(nn.LayerNorm(24), nn.Linear(24, 48), nn.GELU("tanh"), nn.Linear(48, 24)))

        super().__init__(OrderedDict([("tokens", nn.Embedding(16, 24)), ("1", Positions(12, 24)),
                                      ("2", nn.Sequential(block(), block())), ("3", nn.LayerNorm(24))]))

    def forward(self, ids):
        return super().forward(ids) @ self.tokens.weight.T


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 32), nn.GELU("tanh"), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4))
# [/torch]


def check(net, folder, name):
    """Whether the outputs here are those in the file, but for 1e-5 of the largest."""
    net.load_state_dict(read(folder / f"{name}.safetensors"))
    run = read(folder / f"{name}_run.safetensors")
    outputs = net(run["inputs"]).reshape(run["outputs"].shape)
    difference = ((outputs - run["outputs"]).abs().max() / run["outputs"].abs().max().clamp(min=1)).item()
    fine = difference <= 1e-5
    print(f"checked {name}: outputs of {len(outputs)} samples differ by {difference:.1e} of the largest" +
          ("" if fine else ": too much"))
    return fine


def make(net, inputs, folder, name):
    write(folder / f"{name}.safetensors", net.state_dict())
    write(folder / f"{name}_run.safetensors", {"inputs": inputs, "outputs": net(inputs).flatten(1)})
    print(f"made {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", nargs="?", choices=["check", "make", "both"], default="both")
    parser.add_argument("--folder", type=Path, default="interop", help="where the files are (default: interop)")
    arguments = parser.parse_args()
    torch.manual_seed(3)
    nets = {"mlp": (Mlp, torch.randn(64, 4)), "gpt": (Gpt, torch.randint(16, (64, 12), dtype=torch.int32))}
    fine = True
    with torch.no_grad():
        if arguments.task != "make":
            fine = all([check(net(), arguments.folder, name) for name, (net, _) in nets.items()])
        if arguments.task != "check":
            arguments.folder.mkdir(parents=True, exist_ok=True)
            for name, (net, inputs) in nets.items():
                make(net(), inputs, arguments.folder, name)
    return 0 if fine else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as e:
        sys.exit(f"check.py: {e}")
