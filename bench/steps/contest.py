# SPDX-License-Identifier: BSL-1.0
"""Our training step against PyTorch's on the CPU: the same weights and mini-batches, first compared, then timed in turns.

All sides live for the whole run and only one works at a time: ours is a C++ program (program.hpp), PyTorch is two
processes that differ in how its idle OpenMP threads wait, as spinning is faster on a quiet machine and far slower on a
busy one. Every round times each variant once; a figure is a ratio of medians, with the fastest of PyTorch's: one in
fp32, one where PyTorch computes in bf16, and one where both do."""

import argparse
import dataclasses
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

# What our side has, too: memory in huge pages that is not given back, and threads bound to cores.
TUNED = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=8589934592",
         "OMP_PROC_BIND": "true"}
WAITING = {"spins": TUNED, "parks": TUNED | {"OMP_WAIT_POLICY": "passive"}}  # by default threads spin, then park
LARGEST_BF16_DIFFERENCE = 0.05  # of the first loss to that in fp32


@dataclasses.dataclass
class Contest:
    """A benchmark. `mine` are names of our pipelines, the first is the one that counts, and the one in bf16 that ends so; `variants` the ways to run PyTorch,
    the first is the one that is compared; `allowed` the relative difference of their numbers. If `reads`, a step is
    PyTorch's model.read() and nothing is trained."""
    model: object  # makes the model
    inputs: object  # makes all inputs and labels
    batches: int
    mine: list
    variants: dict
    rate: float = 1e-4
    clip: float | None = None
    rounds: int = 20
    steps: int = 2
    allowed: float = 1e-4
    reads: bool = False


class Ours:
    """The C++ program NAME.cpp."""

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
        return tuple(float(x) for x in self.ask(f"run {name} {steps}").split())

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
                 channels_last=False, bf16=False):
        if channels_last:
            model = model.to(memory_format=torch.channels_last)
        self.model, self.batches, self.clip, self.threads, self.micro_batches = model, batches, clip, threads, micro_batches
        self.bf16 = bf16
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
            with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):  # parameters stay in fp32
                loss = self.loss_of(x, y) / self.micro_batches
            loss.backward()
            total += loss.detach()
        if measures_norm:  # in fp64: of millions of numbers PyTorch's own, which clips, is 4e-5 off
            norm = sum(p.grad.double().square().sum() for p in self.model.parameters()).sqrt()
        if self.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return total, norm

    def run(self, steps, measures_norm=False):
        torch.set_num_threads(self.threads)
        start = time.perf_counter()
        for _ in range(steps):
            loss, norm = self.step(measures_norm)
        return time.perf_counter() - start, float(loss), None if norm is None else float(norm)


class Reading(Variant):
    """A way to read a prompt: model.read() returns the logits of the next token. The loss is that token's, and the norm that of its logits."""

    def __init__(self, model, batches, threads, compiled=False, bf16=False):
        self.model, self.batches, self.threads = model.bfloat16() if bf16 else model, batches, threads
        self.read = torch.compile(model.read) if compiled else model.read
        self.next = 0

    def step(self, measures_norm):
        inputs, labels = self.batches[self.next % len(self.batches)]
        self.next += 1
        with torch.inference_mode():
            logits = self.read(inputs).float()
            return torch.nn.functional.cross_entropy(logits, labels[:, -1]), logits.norm()


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


def serve(pipe, contest, parameters, inputs, labels):
    """A PyTorch process: answers (variant, steps, measures_norm) with what Variant.run returns, until it is asked None."""
    logging.disable(logging.WARNING)
    batches = [(torch.from_numpy(x.astype(numpy.int64) if x.dtype == numpy.int32 else x), torch.from_numpy(y).long())
               for x, y in zip(numpy.split(inputs, contest.batches), numpy.split(labels, contest.batches))]
    made = {}
    while (question := pipe.recv()) is not None:
        name, *rest = question
        if name not in made:
            model = contest.model()
            load(model, parameters)
            if contest.reads:
                made[name] = Reading(model, batches, **contest.variants[name])
            else:
                made[name] = Variant(model, batches, contest.rate, contest.clip, **contest.variants[name])
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


def compare(ours, peer, in_bf16, contest, steps=3):
    """Some steps of both, from the same weights: exits if losses or norms differ by more than is allowed. in_bf16: PyTorch's way in bf16, and ours if
    there is one."""
    largest = 0.0
    for step in range(1, steps + 1):
        _, loss, norm = ours(1)
        _, peer_loss, peer_norm = peer(1, True)
        largest = max(largest, abs(loss / peer_loss - 1), abs(norm / peer_norm - 1))
        print(f"step {step}: loss {loss:.7f} (PyTorch {peer_loss:.7f}), {'logits' if contest.reads else 'gradient'} norm {norm:.7f} ({peer_norm:.7f})")
        if step == 1:
            rounded = [way(1)[1] / loss - 1 for way in in_bf16]
    print(f"largest relative difference {largest:.1e}, allowed {contest.allowed:.0e}; of PyTorch's first loss in bf16, and of ours: "
          f"{', '.join(f'{r:.1e}' for r in rounded)}", flush=True)
    if not (largest <= contest.allowed and max(map(abs, rounded)) <= LARGEST_BF16_DIFFERENCE):
        sys.exit("the two do not compute the same: no timing")


def race(ours, leagues, steps, rounds):
    """Times every variant once a round, in turns; prints a table and returns the median seconds of a step by name. After
    a quarter of the rounds only the two fastest peers of each league go on."""
    runs = ours | {name: run for league in leagues for name, run in league.items()}
    seconds = {name: [] for name in runs}
    for round_number in range(rounds + 1):
        if round_number == max(1, rounds // 4) + 1:
            runs = dict(ours)
            for league in leagues:
                fastest_first = sorted(league, key=lambda name: statistics.median(seconds[name]))
                runs |= {name: league[name] for name in fastest_first[:2]}
        for name, run in runs.items():
            time.sleep(0.02)  # threads of the one before may still spin
            once = run(steps)[0] / steps
            if round_number > 0:  # the first warms up
                seconds[name].append(once)
    print(f"{'milliseconds of a step':60}  median     quartiles         best  rounds")
    for name, s in seconds.items():
        low, middle, high = (1e3 * q for q in (statistics.quantiles(s, n=4) if len(s) > 1 else 3 * s))
        print(f"{name:60} {middle:7.2f}  {low:7.2f} {high:7.2f}  {1e3 * min(s):7.2f}  {len(s):6}")
    return {name: statistics.median(seconds[name]) for name in runs}


def run(name, contest, rounds, steps):
    """The whole benchmark."""
    contest.variants |= {f"{variant}, bf16": how | {"bf16": True} for variant, how in contest.variants.items()}
    inputs, labels = contest.inputs()
    ours = Ours(name, inputs, labels)
    print(f"pipe: {ours.ask('about')}, fp32; PyTorch {torch.__version__}, fp32 and bf16")
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} at the start")
    print(f"{rounds} rounds in turns, {steps} steps of each variant in a round", flush=True)
    parameters = ours.parameters(contest.mine[0])
    peers = {waiting: Peer(environment, contest, parameters, inputs, labels) for waiting, environment in WAITING.items()}

    def run_ours(variant):
        return lambda *arguments: ours.run(variant, *arguments)

    def run_peer(waiting, variant):
        return lambda *arguments: peers[waiting].run(variant, *arguments)

    first, *_ = contest.variants
    narrow = [name for name in contest.mine if name.endswith("_bf16")]
    compare(run_ours(contest.mine[0]), run_peer("spins", first), [run_peer("spins", f"{first}, bf16"), *map(run_ours, narrow)], contest)
    leagues = [{f"PyTorch {variant}, {waiting}": run_peer(waiting, variant) for variant, how in contest.variants.items()
                for waiting in (peers if how["threads"] > 1 else ["spins"]) if how.get("bf16", False) == bf16}
               for bf16 in (False, True)]
    medians = race({f"pipe {variant}": run_ours(variant) for variant in contest.mine}, leagues, steps, rounds)
    for peer in peers.values():
        peer.pipe.send(None)
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    counts = contest.mine[0]
    for mine, league, figure in [(counts, leagues[0], "over_pytorch"), (counts, leagues[1], "over_pytorch_bf16"),
                                 *((way, leagues[1], "bf16_over_pytorch_bf16") for way in narrow)]:
        fastest = min((peer for peer in league if peer in medians), key=medians.get)
        print(f"pipe {mine} against {fastest}")
        print(f"figure {name}_{figure} {medians[fastest] / medians[f'pipe {mine}']:.3f}", flush=True)


def main(contests):
    options = argparse.ArgumentParser()
    options.add_argument("name", choices=contests)
    options.add_argument("--rounds", type=int, help="at least 8")
    options.add_argument("--steps", type=int, help="of each variant in a round")
    options = options.parse_args()
    contest = contests[options.name]
    run(options.name, contest, options.rounds or contest.rounds, options.steps or contest.steps)
