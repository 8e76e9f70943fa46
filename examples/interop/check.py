#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The nets of nets.hpp in PyTorch: goes on with what `interop` made, and makes the same files of its own for `interop check`.

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
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict
except ImportError:
    sys.exit(f"check.py: {sys.executable} has no torch")

SAMPLES, LATER = 64, 20  # of a mini-batch; steps after those that made the files
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


def optimizer_of(net):
    """Weights decay; biases and scales do not."""
    weights = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() == 1]
    return torch.optim.AdamW([{"params": weights}, {"params": others, "weight_decay": 0}], lr=0.01)


# [state]
FLAT = StateDictOptions(flatten_optimizer_state_dict=True)


def save_state(path, net, optimizer):
    state = get_optimizer_state_dict(net, optimizer, options=FLAT)
    write(path, {name: value for name, value in state.items() if torch.is_tensor(value)})


def load_state(path, net, optimizer):
    """needs: no gradients yet, with which PyTorch would not prepare the optimizer's state"""
    settings = get_optimizer_state_dict(net, optimizer, options=FLAT)
    set_optimizer_state_dict(net, optimizer, {**settings, **read(path)}, options=FLAT)
# [/state]


def step(net, optimizer, inputs, labels):
    loss = nn.functional.cross_entropy(net(inputs).flatten(0, -2), labels.flatten().long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def computed(net, folder, name, inputs, labels):
    """Of the files of a run: outputs of the first mini-batch, and the losses of the steps that follow; in float64."""
    net = net.double()
    net.load_state_dict(read(folder / f"{name}.safetensors"))
    optimizer = optimizer_of(net)
    load_state(folder / f"{name}_optimizer.safetensors", net, optimizer)
    with torch.no_grad():
        outputs = net(inputs[0]).flatten(1)
    losses = [step(net, optimizer, x, y) for x, y in zip(inputs, labels)]
    return outputs.float(), torch.tensor(losses)


def check(net, folder, name):
    """Whether outputs are those in the file, but for 1e-5 of the largest, and losses, but for 1e-5 of each."""
    run = read(folder / f"{name}_run.safetensors")
    batches = [run[key].double() if run[key].is_floating_point() else run[key] for key in ("inputs", "labels")]
    outputs, losses = computed(net, folder, name, *(of.unflatten(0, (-1, SAMPLES)) for of in batches))
    of_outputs = ((outputs - run["outputs"]).abs().max() / run["outputs"].abs().max().clamp(min=1)).item()
    expected = run["losses"].flatten()
    of_losses = ((losses - expected) / expected).abs().max().item()
    fine = of_outputs <= 1e-5 and of_losses <= 1e-5
    print(f"checked {name}: outputs of {SAMPLES} samples differ by {of_outputs:.1e} of the largest, "
          f"losses of {len(losses)} steps by {of_losses:.1e}" + ("" if fine else ": too much"))
    return fine


def make(net, data, folder, name, steps):
    optimizer = optimizer_of(net)
    for i in range(steps):
        step(net, optimizer, *data())
    write(folder / f"{name}.safetensors", net.state_dict())
    save_state(folder / f"{name}_optimizer.safetensors", net, optimizer)
    inputs, labels = (torch.stack(of) for of in zip(*(data() for i in range(LATER))))
    exact = inputs.double() if inputs.is_floating_point() else inputs
    outputs, losses = computed(type(net)(), folder, name, exact, labels)
    write(folder / f"{name}_run.safetensors", {"inputs": inputs.flatten(0, 1).flatten(1), "labels": labels.flatten(0, 1),
                                               "outputs": outputs, "losses": losses[:, None]})
    print(f"made {name}, of {steps} steps")


def draw_points():
    """In which quarter of two planes a point lies."""
    x = 2 * torch.rand(SAMPLES, 4) - 1
    return x, (2 * (x[:, 0] * x[:, 1] > 0) + (x[:, 2] * x[:, 3] > 0)).int()[:, None]


def draw_sequences():
    """What comes next in a sequence that grows by the same number, modulo 16."""
    first, difference = torch.randint(16, (2, SAMPLES, 1))
    sequence = ((first + torch.arange(13) * difference) % 16).int()
    return sequence[:, :-1], sequence[:, 1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", nargs="?", choices=["check", "make", "both"], default="both")
    parser.add_argument("--folder", type=Path, default="interop", help="where the files are (default: interop)")
    parser.add_argument("--steps", type=int, default=100, help="steps before files are made here (default: 100)")
    arguments = parser.parse_args()
    torch.manual_seed(3)
    torch.set_num_threads(1)  # for nets of this size more take longer
    nets = {"mlp": (Mlp, draw_points), "gpt": (Gpt, draw_sequences)}
    fine = True
    if arguments.task != "make":
        fine = all([check(net(), arguments.folder, name) for name, (net, _) in nets.items()])
    if arguments.task != "check":
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for name, (net, data) in nets.items():
            make(net(), data, arguments.folder, name, arguments.steps)
    return 0 if fine else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as e:
        sys.exit(f"check.py: {e}")
