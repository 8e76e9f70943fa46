# SPDX-License-Identifier: BSL-1.0
"""What nvcc makes of GPT-2 124M in bf16 for sm_90a, without a GPU: instructions, conflicts, launches, and the speed that a cost model expects.

Instructions of loops are from SASS, by nvdisasm: on the PATH, or from Python's package index. Where it cannot be had they are from PTX, which
is said. What depends on data and shapes is counted by the executor of tests/ptx in two training steps; it runs 32 blocks of each launch,
spread over the grid, whose counts are scaled. cuBLASLt is a stand-in there: its calls cost the clocks that the plan of the program expects.

    --blocks N       blocks of each launch (32)
    --expected FILE  also writes the figures that bench/gpu.sh compares with what it measures
"""
import argparse
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench/device_code"), str(ROOT / "tests/cuda")]
sys.dont_write_bytecode = True
import cost_model  # noqa: E402
import device_code as families  # noqa: E402
import sass  # noqa: E402

BUILD = ROOT / "build/device_code"
SOURCE = ROOT / "bench/device_code/gpt2.cu"
INCLUDE = f"-I{ROOT / 'include'}"
LOGITS = 8192 * 50304  # of a micro-batch
ONCE = ("flat_kernel", "sum_squares_kernel", "add_up_kernel", "judge_kernel")  # of a step: its update


def run(*command, **more):
    """Its output; ends the program with it if the command fails."""
    result = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if result.returncode:
        sys.exit(f"{command[0]} failed:\n{result.stdout[-4000:]}")
    return result.stdout


def find_nvcc():
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def find_nvdisasm(nvcc):
    """Path of nvdisasm, or None."""
    for known in (shutil.which("nvdisasm"), Path(nvcc).with_name("nvdisasm")):
        if known and Path(known).is_file():
            return known
    environment = ROOT / "build/nvdisasm"
    try:
        if not environment.is_dir():
            subprocess.run([sys.executable, "-m", "venv", environment], check=True, capture_output=True)
            subprocess.run([environment / "bin/python", "-m", "pip", "install", "nvidia-cuda-nvdisasm"], check=True, capture_output=True)
    except (subprocess.CalledProcessError, OSError):
        shutil.rmtree(environment, ignore_errors=True)
    return next((path for path in environment.rglob("nvdisasm") if path.is_file()), None)


def build(nvcc):
    """The program on the executor, its PTX, and what ptxas reports of it."""
    toolkit = Path(nvcc).resolve().parent.parent
    host = ["g++", "-std=c++20", "-ffp-contract=off", INCLUDE, f"-I{ROOT / 'tests'}", f"-I{ROOT / 'tests/ptx'}", f"-I{toolkit / 'include'}"]
    sources = sorted((ROOT / "tests/ptx").glob("*.cpp"))
    objects = [BUILD / f"{source.stem}.o" for source in sources]
    (BUILD / "library").mkdir(parents=True, exist_ok=True)
    commands = [[nvcc, "-std=c++20", "-O1", "-gencode", "arch=compute_90a,code=compute_90a", "--no-compress", INCLUDE, "-c", SOURCE,
                 "-o", BUILD / "gpt2.o"],
                [nvcc, "-std=c++20", "-O2", "-ptx", "-arch=compute_90a", INCLUDE, SOURCE, "-o", BUILD / "gpt2.ptx"],
                [*host, "-O2", "-shared", "-fPIC", ROOT / "tests/ptx/stand_in/cublaslt.cpp", "-o",
                 BUILD / "library/libcublasLt.so.13"],
                *([*host, "-O3", "-c", source, "-o", to] for source, to in zip(sources, objects))]
    with ThreadPoolExecutor(int(os.environ.get("PIPE_JOBS", os.cpu_count()))) as pool:
        list(pool.map(lambda command: run(*command), commands))
    run("g++", "-rdynamic", BUILD / "gpt2.o", *objects, "-o", BUILD / "gpt2", "-ldl", "-pthread")
    report = run(Path(nvcc).with_name("ptxas"), "-v", "-arch=sm_90a", "-o", BUILD / "gpt2.cubin", BUILD / "gpt2.ptx")
    return (BUILD / "gpt2.ptx").read_text(), report


def execute(products, steps, blocks):
    """The counts of `steps` training steps with products by the library or by own kernels, and the program's output."""
    file = BUILD / f"{products}_{steps}.tsv"
    printed = run(BUILD / "gpt2", products, steps,
                  env=os.environ | {"PIPE_PTX_COUNTS": str(file), "PIPE_PTX_BLOCKS": str(blocks),
                                    "LD_LIBRARY_PATH": str(BUILD / "library")})
    return cost_model.read_counts(file.read_text().splitlines()), [line.split() for line in printed.splitlines()]


def per_product(listing, rows, wanted, counted):
    """Instructions for each mma of the families' kernels: of their loops where there is a listing; weighted with the products executed."""
    instructions = products = 0
    for row in rows:
        if families.family_of(row["kernel"]) in wanted:
            of_kernel = row["launches"] * row["product"]
            size, multiplied = sass.main_loop(*listing[row["kernel"]]) if listing else (counted(row), row["product"])
            instructions += of_kernel * size / multiplied
            products += of_kernel
    return instructions / products


def table(parts, total):
    yield f"{'part':28} {'launches':>8} {'ms':>8} {'share':>6}  {'limit'}"
    for name, part in sorted(parts.items(), key=lambda item: -item[1].microseconds):
        yield f"{name:28} {part.launches:8} {part.microseconds / 1e3:8.2f} {part.microseconds / total:6.1%}  {part.limit}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=32)
    parser.add_argument("--expected", type=Path)
    arguments = parser.parse_args()
    nvcc = find_nvcc()
    if not nvcc:
        print("skipped: there is no nvcc")
        return
    ptx, report = build(nvcc)
    spills = sum(int(stored) + int(loaded) for _, stored, loaded in families.SPILLS.findall(report))
    nvdisasm = find_nvdisasm(nvcc)
    listing = sass.kernels(run(nvdisasm, "-c", BUILD / "gpt2.cubin")) if nvdisasm else None
    print(run(nvcc, "--version").splitlines()[-2], "| instructions of loops and generic stores are those of",
          "SASS" if listing else "PTX: there is no nvdisasm")
    two, printed = execute("library", 2, arguments.blocks)
    rows = cost_model.per_step(two, execute("library", 1, arguments.blocks)[0])
    own = execute("own", 1, 4)[0]  # all products by own kernels: the plan may leave them none

    told = {line[0]: int(line[1]) for line in printed if line[0] in ("tokens", "micro_batches")}
    micro_batches = told["micro_batches"]
    products = [(int(line[2]) * micro_batches, int(line[7]), int(line[8])) for line in printed if line[0] == "product" and line[6] == "library"]
    parts = cost_model.expected(rows, products, families.family_of)
    total = sum(part.microseconds for part in parts.values())
    print(f"a step of {told['tokens']} tokens in {micro_batches} micro-batches, as the cost model expects it on an H200:")
    print(*table(parts, total), sep="\n")
    launches = sum(part.launches for name, part in parts.items() if name not in ONCE)

    def per_access(key):
        return sum(row["launches"] * row[key] for row in rows)

    loss = [row for row in rows if families.family_of(row["kernel"]) == "cross_entropy_kernel"]
    print("instructions of the cross-entropy are those of PTX that were executed, without moves and loads of arguments")
    attention = ("attention_key_gradients", "attention_query_gradients")
    figures = {
        "gpt2_launches_per_micro_batch": f"{launches / micro_batches:.0f}",
        "contraction_hmma_share": f"{1 / per_product(listing, own, ['contraction_tiles'], cost_model.issued):.3f}",
        "attention_forward_instructions_per_hmma": f"{per_product(listing, rows, ['attention_forward'], cost_model.issued):.2f}",
        "attention_backward_instructions_per_hmma": f"{per_product(listing, rows, attention, cost_model.issued):.2f}",
        "cross_entropy_instructions_per_element": f"{32 * sum(cost_model.issued(row) for row in loss) / LOGITS / len(loss):.1f}",
        "generic_stores": sum(opcode.startswith("ST.E") for opcodes, _ in listing.values() for opcode in opcodes) if listing else
                          len(families.re.findall(r"^\t(?:@!?%p\d+ )?st\.(?:v\d\.)?[bfus]\d+", ptx, families.re.M)),
        "spills": spills,
        "bank_conflicts_per_access":
            f"{(per_access('shared_wavefronts') - per_access('shared_least')) / per_access('shared_accesses'):.3f}",
        "expected_gpt2_tokens_per_second": f"{told['tokens'] / total * 1e6:.0f}",
    }
    for name, value in figures.items():
        print(f"figure {name} {value}")
    if arguments.expected:
        lines = [line for line in arguments.expected.read_text().splitlines() if not line.startswith("gpt2_tokens_per_second_bf16 ")]
        lines.append(f"gpt2_tokens_per_second_bf16 {figures['expected_gpt2_tokens_per_second']}")
        arguments.expected.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
