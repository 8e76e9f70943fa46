# SPDX-License-Identifier: BSL-1.0
"""Our training step against PyTorch's on the CPU: the same weights and mini-batches, first compared, then timed in turns.

All sides live for the whole run and only one works at a time: ours is a C++ program (peer/program.hpp), PyTorch is two
processes that differ in how its idle OpenMP threads wait, as spinning is faster on a quiet machine and far slower on a
busy one. Every round times each variant once; the figure is a ratio of medians, with the fastest of PyTorch's."""

import argparse
import logging
import multiprocessing
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
WAITING = {"spins": {}, "parks": {"OMP_WAIT_POLICY": "passive"}}  # by default threads spin, then park


class Ours:
    """The C++ program bench/NAME.cpp."""

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
        """Seconds of all steps together, loss and gradient norm of the last one."""
        return tuple(float(x) for x in self.ask(f"run {name} {steps}").split()[:3])

    def parameters(self, name):
        path = f"{self.folder.name}/parameters"
        self.ask(f"save {name} {path}")
        parameters = []
        with open(path, "rb") as file:
            while (extents := numpy.fromfile(file, numpy.int32, 2)).size:
                parameters.append(numpy.fromfile(file, numpy.float32, extents.prod()).reshape(extents))
        return parameters


class Variant:
    """A way to run the step in PyTorch. Decay applies to matrices only, as in ours; clip None: no clipping."""

    def __init__(self, model, batches, rate, clip, threads, compiled=False, micro_batches=1, optimizer="fused",
                 channels_last=False):
        if channels_last:
            model = model.to(memory_format=torch.channels_last)
        self.model, self.batches, self.clip, self.threads, self.micro_batches = model, batches, clip, threads, micro_batches
        self.loss_of = torch.compile(model) if compiled else model
        groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.01},
                  {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=rate, **{optimizer: True})
        self.next = 0

    def step(self, measures_norm):
        inputs, labels = self.batches[self.next % len(self.batches)]
        self.next += 1
        self.optimizer.zero_grad(set_to_none=True)
        total, norm = 0, None
        for x, y in zip(inputs.chunk(self.micro_batches), labels.chunk(self.micro_batches)):
            loss = self.loss_of(x, y) / self.micro_batches
            loss.backward()
            total += loss.detach()
        if self.clip is not None or measures_norm:
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip or float("inf"))
        self.optimizer.step()
        return total, norm

    def run(self, steps, measures_norm=False):
        torch.set_num_threads(self.threads)
        start = time.perf_counter()
        for _ in range(steps):
            loss, norm = self.step(measures_norm)
        return time.perf_counter() - start, float(loss), None if norm is None else float(norm)


def load(model, parameters):
    """Gives a model the parameters and running statistics of ours, which come in the same order. There a Linear's weight is [inputs, outputs], and a Conv2d's
    [height, width, channels, filters]."""
    left = list(parameters)
    with torch.no_grad():
        for module in model.modules():
            statistics_of = [(name, b) for name, b in module.named_buffers(recurse=False) if name.startswith("running_")]
            for name, p in [*module.named_parameters(recurse=False), *statistics_of]:
                values = torch.from_numpy(left.pop(0))
                if isinstance(module, torch.nn.Linear) and name == "weight":
                    values = values.T
                elif isinstance(module, torch.nn.Conv2d) and name == "weight":
                    values = values.reshape(*p.shape[2:], *p.shape[1::-1]).permute(3, 2, 0, 1)
                p.copy_(values.reshape(p.shape))
    assert not left, "our model has more parameters"


def serve(pipe, model_type, parameters, inputs, labels, count, rate, clip, variants):
    """A PyTorch process: answers (variant, steps, measures_norm) with what Variant.run returns, until it is asked None."""
    logging.disable(logging.WARNING)
    batches = [(torch.from_numpy(x.astype(numpy.int64) if x.dtype == numpy.int32 else x), torch.from_numpy(y).long())
               for x, y in zip(numpy.split(inputs, count), numpy.split(labels, count))]
    made = {}
    while (question := pipe.recv()) is not None:
        name, *rest = question
        if name not in made:
            model = model_type()
            load(model, parameters)
            made[name] = Variant(model, batches, rate, clip, **variants[name])
        pipe.send(made[name].run(*rest))


class Peer:
    """A PyTorch process, started with some environment variables."""

    def __init__(self, environment, *arguments):
        os.environ.update(environment)
        self.pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, *arguments), daemon=True)
        self.process.start()
        theirs.close()
        for name in environment:
            del os.environ[name]

    def run(self, variant, steps, measures_norm=False):
        self.pipe.send((variant, steps, measures_norm))
        return self.pipe.recv()


def compare(ours, peer, allowed, steps=3):
    """Some steps of both, from the same weights: exits if losses or gradient norms differ by more than `allowed` of their size."""
    largest = 0.0
    for step in range(1, steps + 1):
        _, loss, norm = ours(1)
        _, peer_loss, peer_norm = peer(1, True)
        largest = max(largest, abs(loss / peer_loss - 1), abs(norm / peer_norm - 1))
        print(f"step {step}: loss {loss:.7f} (PyTorch {peer_loss:.7f}), gradient norm {norm:.7f} ({peer_norm:.7f})")
    print(f"largest relative difference {largest:.1e}, allowed {allowed:.0e}")
    if not largest <= allowed:
        sys.exit("the two do not compute the same: no timing")


def race(ours, peers, steps, rounds):
    """Times every variant once a round, in turns; prints a table and returns the median seconds of a step by name. After
    a quarter of the rounds only the three fastest peers go on."""
    runs = ours | peers
    seconds = {name: [] for name in runs}
    for round_number in range(rounds + 1):
        if round_number == rounds // 4 + 1:
            slowest_last = sorted(peers, key=lambda name: statistics.median(seconds[name]))
            runs = ours | {name: peers[name] for name in slowest_last[:3]}
        for name, run in runs.items():
            time.sleep(0.02)  # threads of the one before may still spin
            once = run(steps)[0] / steps
            if round_number > 0:  # the first warms up
                seconds[name].append(once)
    print(f"{'milliseconds of a step':52}  median     quartiles         best  rounds")
    for name, s in seconds.items():
        low, middle, high = (1e3 * q for q in statistics.quantiles(s, n=4))
        print(f"{name:52} {middle:7.2f}  {low:7.2f} {high:7.2f}  {1e3 * min(s):7.2f}  {len(s):6}")
    return {name: statistics.median(seconds[name]) for name in runs}


def contest(name, model_type, inputs, labels, batches, rate, clip, mine, variants, rounds, steps, allowed=LARGEST_DIFFERENCE):
    """The whole benchmark: `mine` are names of our pipelines, the first is the one that counts; `variants` the ways to run
    PyTorch, the first is the one that is compared; `allowed` the relative difference of their numbers."""
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=rounds, help="at least 8")
    options.add_argument("--steps", type=int, default=steps, help="of each variant in a round")
    options = options.parse_args()

    ours = Ours(name, inputs, labels)
    print(f"pipe: {ours.ask('about')}; PyTorch {torch.__version__}; fp32")
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} at the start")
    print(f"{options.rounds} rounds in turns, {options.steps} steps of each variant in a round", flush=True)
    parameters = ours.parameters(mine[0])
    peers = {waiting: Peer(environment, model_type, parameters, inputs, labels, batches, rate, clip, variants)
             for waiting, environment in WAITING.items()}

    def run_ours(variant):
        return lambda *arguments: ours.run(variant, *arguments)

    def run_peer(waiting, variant):
        return lambda *arguments: peers[waiting].run(variant, *arguments)

    compare(run_ours(mine[0]), run_peer("spins", next(iter(variants))), allowed)
    our_runs = {f"pipe {variant}": run_ours(variant) for variant in mine}
    peer_runs = {f"PyTorch {variant}, {waiting}": run_peer(waiting, variant) for variant in variants
                 for waiting in (peers if variants[variant]["threads"] > 1 else ["spins"])}
    medians = race(our_runs, peer_runs, options.steps, options.rounds)
    for peer in peers.values():
        peer.pipe.send(None)
    fastest = min((name for name in peer_runs if name in medians), key=medians.get)
    print(f"pipe {mine[0]} against {fastest}; load {os.getloadavg()[0]:.1f} at the end")
    print(f"figure {name}_over_pytorch {medians[fastest] / medians[f'pipe {mine[0]}']:.3f}")
