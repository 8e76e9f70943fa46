# SPDX-License-Identifier: BSL-1.0
"""What the compiler needs for a GPT of 2 to 96 blocks and for two networks of images in four stages, with and without pipe::compiled, what files add
to a classifier, to prove schedules, and to plan a model of 83.9 billion parameters: processor seconds, memory and object size.

nvcc compiles the GPT for a GPU, with all of its kernels, for one architecture.

    bench/run.sh compile [--only PROGRAM...]

--only: g++ alone, and of the programs of the first table those of these names."""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import typical

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 5

EMPTY = """#include <pipe/pipe.hpp>
int main() {}
"""
GPT = """#include <pipe/pipe.hpp>
#include <vector>
using namespace pp;
using Block = Seq<Residual<LayerNorm, Attention<3>>, Residual<LayerNorm, Linear<384>, GELUTanh, Linear<96>>>;
struct GPT : Model<Tokens<256, 128>, Embedding<96>, Positions, Repeat<BLOCKS, Block>, LayerNorm, Linear<256>,
                   CrossEntropy> {};
using Trainer = Pipeline<GPT, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, AdamW>;
int main() {
  Trainer trainer;
  std::vector<int> tokens(Trainer::samples * Trainer::inputs_per_sample);
  return trainer.step({tokens, tokens}).loss > 0 ? 0 : 1;
}
"""
IMAGES = """#include "HEADER"
#include <vector>
using namespace pp;
using Trainer = Pipeline<models::MODEL, Stages<4>, MicroBatches<4>, MicroBatchSize<2>, AdamW>;
int main() {
  Trainer trainer;
  std::vector<float> images(std::size_t(Trainer::samples) * Trainer::inputs_per_sample);
  std::vector<int> labels(Trainer::samples);
  return trainer.step({images, labels}).loss > 0 ? 0 : 1;
}
"""
RESNET = IMAGES.replace("HEADER", "resnet.hpp").replace("MODEL", "ResNet50")
AMOEBANET = IMAGES.replace("HEADER", "amoebanet.hpp").replace("MODEL", "AmoebaNet<18, 512>")
SCHEDULES = GPT.split("using Trainer")[0].replace("BLOCKS", "12") + """template <class Schedule>
bool trains() {
  using Trainer = Pipeline<GPT, Stages<4>, MicroBatches<8>, MicroBatchSize<2>, AdamW, Schedule>;
  Trainer trainer;
  std::vector<int> tokens(Trainer::samples * Trainer::inputs_per_sample);
  return trainer.step({tokens, tokens}).loss > 0;
}
int main() { return CALLS ? 0 : 1; }
"""
ONE_SCHEDULE = SCHEDULES.replace("CALLS", "trains<OneFOneB>()")
TWO_SCHEDULES = SCHEDULES.replace("CALLS", "trains<OneFOneB>() && trains<GPipe>()")
B_AND_W = SCHEDULES.replace("CALLS", "trains<OneFOneB>() && trains<ZeroBubbleH1>()")  # the second splits the backward pass
LIBRARY = "pipe::compiled"
PART = f", {LIBRARY}"  # ends the names of programs that only declare what the library compiles once
GPT_ON_GPU = GPT.replace("AdamW>", "AdamW, Cuda>")
FAMILIES = ["GPipe", "OneFOneB", "EagerOneFOneB", "Interleaved<2>", "GroupedInterleaved<2>", "LoopedBFS<2>", "ZeroBubbleH1",
            "ZeroBubbleH2", "ZeroBubbleV", "VHalf", "VMin", "Hanayo<>", "Chimera", "DualPipe", "DualPipeV", "ForwardOnly",
            "PipeDream<>", "PipeDream2BW<>"]
# The largest Transformer of GPipe's table 1, planned by the program: it is compiled, linked and run.
PLAN = """#include <cstdio>
#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>
using namespace pp;
using Layer = Seq<Residual<LayerNorm, Attention<32>>, Residual<LayerNorm, Linear<8192>, GELUTanh, Linear<2048>>>;
struct Large : Model<Tokens<32000, 1024>, Embedding<2048>, Positions, Repeat<1663, Layer>, LayerNorm, Linear<32000>,
                     CrossEntropy> {};
int main() { std::puts(explain<Planned<Large, Stages<128>, MicroBatches<512>, GPipe, RecomputeAll, AdamW>>().c_str()); }
"""
NO_PROOF = """#include <pipe/schedule.hpp>
int main() {}
"""
PROOF = """#include <pipe/schedule.hpp>
using namespace pp;
using namespace pp::schedules;
constexpr problem<> work{8, chunks_for(FAMILY::where, 8, FAMILY::chunks_per_rank), 32, 1, same_cost{{3, 2, 4}}};
constexpr auto table = make_table<FAMILY, 8, 32>(work);
constexpr verdict proof = validate(work, table);
static_assert(proof.ok());
int main() {}
"""
COMPILERS = {
    "g++": ["g++", "-O2", "-std=c++20"],
    "clang++": ["clang++", "-O2", "-std=c++20"],
    "nvcc": ["nvcc", "-O2", "-std=c++20", "-gencode", "arch=compute_90a,code=sm_90a", "-x", "cu"],
}


def version(compiler):
    lines = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout.splitlines()
    return next((line for line in lines if "release" in line), lines[0]).strip()


def compile_once(compiler, text, folder, options=()):
    """(processor seconds, peak megabytes of one of the compiler's processes, kilobytes of object code)"""
    source, target = folder / "program.cpp", folder / "program.o"
    source.write_text(text)
    process = subprocess.Popen([*COMPILERS[compiler], *options, "-I", ROOT / "include", "-I", ROOT / "examples/models", "-c", source,
                                "-o", target], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{compiler} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, target.stat().st_size / 1024


def plan_once(folder):
    """(seconds, peak megabytes of the compiler or the program) to compile and run PLAN"""
    source, program = folder / "plan.cpp", folder / "plan"
    source.write_text(PLAN)
    begin, most = time.monotonic(), 0
    for command in ([*COMPILERS["g++"], "-I", ROOT / "include", source, "-o", program], [program]):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{command[0]} failed")
        most = max(most, usage.ru_maxrss / 1024)
    return time.monotonic() - begin, most


def measure(compiler, texts, rounds, folder):
    """One row for each text, the texts in turns; returns the seconds of every round by text name."""
    runs = {name: [] for name in texts}
    for _ in range(rounds):
        for name, text in texts.items():
            options = ["-DPIPE_COMPILED=" + ("" if name == LIBRARY else "extern")] if name.endswith(LIBRARY) else []
            runs[name].append(compile_once(compiler, text, folder, options))
    for name, results in runs.items():
        seconds, megabytes, kilobytes = (statistics.median(column) for column in zip(*results))
        print(f"{compiler:8} {name:40} {seconds:8.2f} {megabytes:10.0f} {kilobytes:14.0f} {rounds:5}", flush=True)
    return {name: [result[0] for result in results] for name, results in runs.items()}


def ratio(seconds, name, over):
    """The median of the rounds' ratios: both of a round ran one after the other, so a machine that
    slows down slows both."""
    return statistics.median(a / b for a, b in zip(seconds[name], seconds[over]))


def print_ratios_of_part(seconds):
    for name, figure in ("first_model", "first_model"), ("12 blocks", "gpt_12"):
        if name in seconds and name + PART in seconds:
            print(f"figure compile_with_part_over_without_{figure} {ratio(seconds, name + PART, name):.3f}")


def print_seconds_of_files(seconds):
    """What saving and loading adds, each round's difference; without the library, and with it."""
    for part, figure in ("", ""), (PART, "_with_part"):
        for name in "checkpoint", "weights":
            with_files, without = f"classifier, {name}{part}", f"classifier{part}"
            if with_files in seconds and without in seconds:
                added = statistics.median(a - b for a, b in zip(seconds[with_files], seconds[without]))
                print(f"figure compile_{name}{figure}_s {added:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="PROGRAM")
    only = parser.parse_args().only
    compilers = [c for c in COMPILERS if shutil.which(c)]
    print("; ".join(version(c) for c in compilers))
    print("-O2, Stages<4>; seconds are user and system time of all the compiler's processes, medians")
    print(f"{'compiler':8} {'program':40} {'seconds':>8} {'peak MB':>10} {'object kB':>14} {'runs':>5}")
    programs = {"empty": EMPTY} | {f"{n} blocks": GPT.replace("BLOCKS", str(n)) for n in (2, 12, 48, 96)}
    programs |= {"12, one schedule": ONE_SCHEDULE, "12, two schedules": TWO_SCHEDULES, "12, and one of B and W": B_AND_W}
    programs |= {"first_model": (ROOT / "examples/first_model.cpp").read_text(), LIBRARY: EMPTY}
    programs |= {"classifier": typical.PROGRAMS["classifier without files"], "classifier, checkpoint": typical.PROGRAMS["classifier"],
                 "classifier, weights": typical.PROGRAMS["export"]}
    programs |= {name + PART: programs[name] for name in ("first_model", "12 blocks", "classifier", "classifier, checkpoint", "classifier, weights")}
    programs |= {"ResNet-50": RESNET, "AmoebaNet-D(18, 512)": AMOEBANET}
    if only:
        if unknown := [name for name in only if name not in programs]:
            parser.error(f"no program is called {', '.join(unknown)}; there are {', '.join(programs)}")
        with tempfile.TemporaryDirectory() as folder:
            seconds = measure("g++", {name: programs[name] for name in only}, ROUNDS, pathlib.Path(folder))
            print_ratios_of_part(seconds)
            print_seconds_of_files(seconds)
        return
    on_gpu = {"empty": EMPTY} | {f"{n} blocks": GPT_ON_GPU.replace("BLOCKS", str(n)) for n in (12, 96)}
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure("g++", programs, ROUNDS, pathlib.Path(folder))
        if "clang++" in compilers:
            some = {name: programs[name] for name in ("empty", "12 blocks", "96 blocks")}
            measure("clang++", some, 1, pathlib.Path(folder))
        if "nvcc" in compilers:
            by_nvcc = measure("nvcc", on_gpu, ROUNDS, pathlib.Path(folder))
        print("the proof of a schedule, P = 8, M = 32; `headers`: none")
        proofs = {"headers": NO_PROOF} | {name: PROOF.replace("FAMILY", name) for name in FAMILIES}
        slowest = {}
        for compiler in compilers:
            proved = measure(compiler, proofs, ROUNDS if compiler == "g++" else 1, pathlib.Path(folder))
            slowest[compiler] = max(statistics.median(proved[name]) for name in FAMILIES) - statistics.median(proved["headers"])
    with tempfile.TemporaryDirectory() as folder:
        plans = [plan_once(pathlib.Path(folder)) for _ in range(ROUNDS)]
    plan_seconds, plan_megabytes = (statistics.median(column) for column in zip(*plans))
    print(f"a plan of 83.9 billion parameters on 128 stages, compiled and run: {plan_seconds:.2f} s, {plan_megabytes:.0f} MB")
    print(f"figure compile_proof_s {slowest['g++']:.2f}")
    print(f"figure plan_83b_s {plan_seconds:.2f}")
    print(f"figure compile_gpt_12_s {statistics.median(seconds['12 blocks']):.2f}")
    print_ratios_of_part(seconds)
    print_seconds_of_files(seconds)
    print(f"figure compile_gpt_96_over_12 {ratio(seconds, '96 blocks', '12 blocks'):.3f}")
    print(f"figure compile_second_schedule_over_first {ratio(seconds, '12, two schedules', '12, one schedule'):.3f}")
    print(f"figure compile_split_schedule_over_first {ratio(seconds, '12, and one of B and W', '12, one schedule'):.3f}")
    print(f"figure compile_resnet_50_s {statistics.median(seconds['ResNet-50']):.2f}")
    print(f"figure compile_amoebanet_18_512_s {statistics.median(seconds['AmoebaNet-D(18, 512)']):.2f}")
    if "nvcc" in compilers:
        print(f"figure compile_gpt_12_nvcc_s {statistics.median(by_nvcc['12 blocks']):.1f}")
        print(f"figure compile_gpt_96_over_12_nvcc {ratio(by_nvcc, '96 blocks', '12 blocks'):.3f}")


if __name__ == "__main__":
    main()
