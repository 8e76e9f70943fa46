# SPDX-License-Identifier: BSL-1.0
"""Our training step against PyTorch's on the CPU: the same weights and mini-batches, first compared, then timed in turns.

Both sides live side by side for the whole run: ours is a C++ program behind a pipe (peer/program.hpp), PyTorch is this
process. Only one of them works at a time. Every round times each variant once; the figure is a ratio of medians."""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch

LARGEST_DIFFERENCE = 1e-4


class Ours:
    """The C++ program bench/NAME.cpp, on mini-batches of `inputs` and `labels` (first extent: all samples)."""

    def __init__(self, name, inputs, labels):
        self.folder = tempfile.TemporaryDirectory()
        inputs.tofile(f"{self.folder.name}/inputs")
        labels.tofile(f"{self.folder.name}/labels")
        program = pathlib.Path(os.environ["PIPE_BUILD"]) / "bench" / name
        self.process = subprocess.Popen([program, self.folder.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        if not answer:
            sys.exit(f"our program ended at: {line}")
        return answer

    def run(self, name, steps):
        """(seconds of all steps, loss and gradient norm of the last)"""
        return tuple(float(x) for x in self.ask(f"run {name} {steps}").split()[:3])

    def parameters(self, name):
        path = f"{self.folder.name}/parameters"
        self.ask(f"save {name} {path}")
        with open(path, "rb") as file:
            while (extents := numpy.fromfile(file, numpy.int32, 2)).size:
                yield numpy.fromfile(file, numpy.float32, extents.prod()).reshape(extents)


def load(model, parameters):
    """Gives a model the parameters of ours, which come in the same order; a Linear's weight is [inputs, outputs] there."""
    parameters = list(parameters)
    with torch.no_grad():
        for module in model.modules():
            for name, p in module.named_parameters(recurse=False):
                values = torch.from_numpy(parameters.pop(0))
                p.copy_(values.T if isinstance(module, torch.nn.Linear) and name == "weight" else values.reshape(p.shape))
    assert not parameters, "our model has more parameters"


class Torch:
    """A way to run the step in PyTorch. Decay applies to matrices only, as in ours; clip None: no clipping."""

    def __init__(self, model, batches, rate, clip, threads, compiled=False, micro_batches=1, optimizer="fused"):
        self.model, self.batches, self.clip, self.threads, self.micro_batches = model, batches, clip, threads, micro_batches
        self.loss_of = torch.compile(model) if compiled else model
        matrices = [p for p in model.parameters() if p.dim() > 1]
        vectors = [p for p in model.parameters() if p.dim() == 1]
        groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=rate, **{optimizer: True})
        self.next = 0

    def step(self):
        inputs, labels = self.batches[self.next % len(self.batches)]
        self.next += 1
        self.optimizer.zero_grad(set_to_none=True)
        total = 0
        for x, y in zip(inputs.chunk(self.micro_batches), labels.chunk(self.micro_batches)):
            loss = self.loss_of(x, y) / self.micro_batches
            loss.backward()
            total += loss.detach()
        if self.clip is not None:
            self.norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return total

    def run(self, steps):
        torch.set_num_threads(self.threads)
        start = time.perf_counter()
        for _ in range(steps):
            loss = self.step()
        return time.perf_counter() - start, float(loss)

    def compared_step(self):
        """(loss, gradient norm) of a step"""
        if self.clip is not None:
            return float(self.step()), float(self.norm)
        norms = []
        hook = self.optimizer.register_step_pre_hook(
            lambda *_: norms.append(torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters()])))
        loss = float(self.step())
        hook.remove()
        return loss, float(norms[0])


def compare(ours, name, peer, steps=3):
    """Steps of both from the same weights: exits if losses or gradient norms differ."""
    torch.set_num_threads(peer.threads)
    largest = 0.0
    for step in range(1, steps + 1):
        _, loss, norm = ours.run(name, 1)
        peer_loss, peer_norm = peer.compared_step()
        differences = abs(loss / peer_loss - 1), abs(norm / peer_norm - 1)
        largest = max(largest, *differences)
        print(f"step {step}: loss {loss:.7f} (PyTorch {peer_loss:.7f}), gradient norm {norm:.7f} ({peer_norm:.7f})")
    print(f"largest relative difference {largest:.1e}, allowed {LARGEST_DIFFERENCE:.0e}")
    if not largest <= LARGEST_DIFFERENCE:
        sys.exit("the two do not compute the same: no timing")


def race(ours, mine, peers, steps, rounds):
    """Times every variant once a round, in turns; prints the table and returns the median seconds of a step by name."""
    runs = {f"pipe {name}": lambda name=name: ours.run(name, steps)[0] for name in mine}
    runs |= {f"PyTorch {name}": lambda peer=peer: peer.run(steps)[0] for name, peer in peers.items()}
    seconds = {name: [] for name in runs}
    for round_ in range(rounds + 1):
        for name, run in runs.items():
            time.sleep(0.02)  # until the other side's threads have stopped spinning
            once = run() / steps
            if round_ > 0:  # the first warms up
                seconds[name].append(once)
    print(f"{'milliseconds of a step':42} median  quartiles      best")
    for name, s in seconds.items():
        low, middle, high = (1e3 * q for q in statistics.quantiles(s, n=4))
        print(f"{name:42} {middle:6.2f}  {low:6.2f} {high:6.2f}  {1e3 * min(s):6.2f}")
    return {name: statistics.median(s) for name, s in seconds.items()}


def settings(ours, steps, rounds):
    cores = len(os.sched_getaffinity(0))
    print(f"pipe: {ours.ask('about')}; PyTorch {torch.__version__}; {cores} cores, load {os.getloadavg()[0]:.1f}")
    print(f"fp32; {rounds} rounds in turns, {steps} steps of each variant a round")
    return cores
