# SPDX-License-Identifier: BSL-1.0
"""Forward and step (forward, backward, Adam) of one sample through a 32-64-64-4 network with tanh, in fp32 and one thread, against PyTorch (eager,
traced and compiled) and its C++ interface; forward of a trainer and of a network that only runs: median and 99th percentile, on an otherwise idle machine and with a spinning process for each core.

--rounds: turns in each of the two (default 7); --calls: of each in a turn (default 4000)"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from torch.utils import cpp_extension

HERE = Path(__file__).resolve().parent
INPUTS, OUTPUTS, SAMPLES = 32, 4, 64


def peer(calls):
    """Prints the times of PyTorch's variants: {name: {"forward": nanoseconds, "step": nanoseconds}}."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    x = [torch.sin(torch.arange(INPUTS) * 13.0 + i * 7).reshape(1, INPUTS) for i in range(SAMPLES)]
    y = [torch.sin(torch.arange(OUTPUTS) * 7.0 + i * 13).reshape(1, OUTPUTS) for i in range(SAMPLES)]

    def network():
        return torch.nn.Sequential(torch.nn.Linear(INPUTS, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, OUTPUTS))

    def times(call):
        for i in range(1 + calls // 4):
            call(i % SAMPLES)
        found = []
        for i in range(calls):
            begin = time.perf_counter_ns()
            call(i % SAMPLES)
            found.append(time.perf_counter_ns() - begin)
        return found

    def forward_of(net):
        def call(i):
            with torch.inference_mode():
                return net(x[i])

        return call

    def step_of(net, optimizer):
        def call(i):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(net(x[i]), y[i])
            loss.backward()
            optimizer.step()
            return loss.item()

        return call

    eager = network()
    variants = {"eager": {"forward": times(forward_of(eager)), "step": times(step_of(eager, torch.optim.Adam(eager.parameters(), fused=True)))}}
    with torch.inference_mode():
        traced = torch.jit.freeze(torch.jit.trace(network().eval(), x[0]))
    variants["traced"] = {"forward": times(forward_of(traced))}
    net = network()
    compiled = torch.compile(net)
    variants["compiled"] = {"forward": times(forward_of(compiled)), "step": times(step_of(compiled, torch.optim.Adam(net.parameters(), fused=True)))}
    json.dump(variants, sys.stdout)


def by_line(text):
    """{"forward": nanoseconds, "step": nanoseconds} of what a program of bench/latency printed."""
    return {line.split()[0]: [int(t) for t in line.split()[1:]] for line in text.splitlines()}


def libtorch(folder):
    """The program of libtorch.cpp."""
    program = folder / "libtorch"
    libraries = cpp_extension.library_paths()
    subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-O3", "-march=native", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
                    *[f"-I{p}" for p in cpp_extension.include_paths()], HERE / "latency" / "libtorch.cpp", "-o", program, *[f"-L{p}" for p in libraries],
                    *[f"-Wl,-rpath,{p}" for p in libraries], "-ltorch", "-ltorch_cpu", "-lc10"], check=True)
    return program


def turn(ours, theirs, calls):
    """{variant: {"forward": nanoseconds, "step": nanoseconds}}"""
    found = {"pipe": by_line(subprocess.run([ours, str(calls)], check=True, capture_output=True, text=True).stdout)}
    found["network"] = {"forward": found["pipe"].pop("network")}
    if theirs:
        found["libtorch"] = by_line(subprocess.run([theirs, str(calls)], check=True, capture_output=True, text=True).stdout)
    found |= json.loads(subprocess.run([sys.executable, __file__, "--peer", str(calls)], check=True, capture_output=True, text=True).stdout)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--peer", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return peer(options.peer)
    ours = Path(os.environ["PIPE_BUILD"]) / "bench" / "latency"
    with tempfile.TemporaryDirectory() as folder:
        try:
            theirs = libtorch(Path(folder))
        except subprocess.CalledProcessError:
            theirs = None
            print("libtorch is left out: it cannot be compiled here")
        print(f"PyTorch {torch.__version__}, one thread; {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} at the start", flush=True)
        for where in "quiet", "busy":
            neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)] if where == "busy" else []
            try:
                turns = [turn(ours, theirs, options.calls) for _ in range(options.rounds)]
            finally:
                for n in neighbours:
                    n.kill()
            report(where, turns)


def report(where, turns):
    def of(variant, what, share):
        """The median over turns of a quantile, in microseconds."""
        return median(sorted(t[variant][what])[int(share * (len(t[variant][what]) - 1))] for t in turns) / 1e3

    print(f"\n{where}: microseconds      median      99 %")
    for what in "forward", "step":
        for variant in turns[0]:
            if what in turns[0][variant]:
                print(f"{what:8} {variant:10}   {of(variant, what, .5):12.2f} {of(variant, what, .99):9.2f}")
    for what in "forward", "step":
        peers = [v for v in turns[0] if v not in ("pipe", "network", "libtorch") and what in turns[0][v]]
        for kind, others in ("pytorch", peers), ("libtorch", ["libtorch"] if "libtorch" in turns[0] else []):
            if others:
                best = min(of(v, what, .5) for v in others)
                print(f"figure latency_{what}_{where}_over_{kind} {best / of('pipe', what, .5):.1f}")
        if what == "forward":
            print(f"figure latency_network_{where}_us {of('network', what, .5):.2f}")
            print(f"figure latency_network_{where}_99_us {of('network', what, .99):.2f}")
        print(f"figure latency_{what}_{where}_us {of('pipe', what, .5):.2f}")
        print(f"figure latency_{what}_{where}_99_us {of('pipe', what, .99):.2f}")


if __name__ == "__main__":
    main()
