#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""A dry run of bench/gpu.sh: programs that print figures, fail, hang or are missing, on a machine made of scripts (nvidia-smi, nvcc,
compute-sanitizer, ncu, python3)."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
MEASURED = ["device", "gpt2", "gpt2_4x32", "products", "attention", "rows", "narrow_mlp", "optimizers", "gpt2_fp32", "gpt2_own", "gpt2_wgmma",
            "gpt2_cudnn", "gpt2_timed"]

# The machine. $LAB is the folder of the test; scripts write what they saw into files there.
TOOLS = {
    "nvidia-smi": """
case "$*" in
  *compute_cap*) echo "${CAPABILITY-9.0}" ;;
  *-lms*) for ((i = 0; i < 300; ++i)); do echo "1980, 512.5"; touch "$LAB/sampled"; sleep 0.05; done ;;
  *) echo "NVIDIA Fake, 580.1, 143771 MiB, 700.00 W, 1980 MHz, 3201 MHz" ;;
esac""",
    # Objects are their sources' names; a linked program prints a figure by its name.
    "nvcc": """
echo "$*" >>"$LAB/nvcc.log"
case "$*" in
  --version) echo "Cuda compilation tools, release 13.0, V13.0.48" ;;
  *-E*) [[ ! ${NO_CUBLASLT_H:-} ]] ;;
  *" -c "*)
    [[ $* != *"${BROKEN_SOURCE:-none}"* ]] || { echo "x.cu(1): error: it is broken"; exit 1; }
    while [[ $1 != -o ]]; do shift; done
    touch "$2" ;;
  *)
    while [[ $1 != -o ]]; do shift; done
    for object in "${@:3}"; do [[ $object != *.o || -e $object ]] || { echo "no $object"; exit 1; }; done
    printf '#!/bin/bash\\necho "figure built_%s 1"\\n' "${2##*/}" >"$2"
    chmod +x "$2" ;;
esac""",
    "compute-sanitizer": """
shift; tool=$1; shift 3
echo "$tool $*" >>"$LAB/sanitizer.log"
case $tool in
  memcheck) echo "========= Error: Device not supported"; exit 1 ;;
  synccheck) [[ ! ${REAL_PROGRAM:-} ]] || exec "$@" ;;
  racecheck) echo "========= RACECHECK SUMMARY: ${HAZARDS:-0} hazards displayed"; exit $((${HAZARDS:-0} ? 3 : 0)) ;;
esac""",
    "ncu": 'echo "==ERROR== ERR_NVGPUCTRPERM - no permission"; exit 1',
    # -c asks where Python's packages of CUDA are; else it is the peer.
    "python3": """
case "$*" in
  -c*libcudnn*) ls "$LAB"/site-packages/nvidia/cudnn/lib/libcudnn.so.9 2>/dev/null ;;
  -c*lib/*) ls "$LAB"/site-packages/nvidia/cu13/lib/libcublasLt.so.* 2>/dev/null ;;
  -c*include/*) ls "$LAB"/site-packages/nvidia/cu13/include/cublasLt.h 2>/dev/null ;;
  *--compile-only)
    [[ ! ${NO_TORCH:-} ]] || { echo "there is no PyTorch"; exit 77; }
    echo "$$" >"$LAB/peer.pid"
    echo "$TORCHINDUCTOR_CACHE_DIR" >"$LAB/peer.cache"
    for ((i = 0; i < ${PEER_TICKS:-10}; ++i)); do date +%s%N >"$LAB/tick"; sleep 0.02; done ;;
  *)
    [[ ! ${NO_TORCH:-} ]] || { echo "there is no PyTorch"; exit 77; }
    echo "figure torch_gpt2_tokens_per_second_bf16_by_default 400000"
    echo "figure torch_gpt2_tokens_per_second_bf16_by_graphs 500000"
    echo "figure torch_narrow_mlp_us_bf16_by_default 900"
    echo "figure torch_narrow_mlp_us_bf16_by_graphs 300" ;;
esac""",
}

# What a program prints if a test says nothing else.
PROGRAMS = {
    "device": 'echo "figure copy_GB_per_s 4000"; echo "figure cublaslt_tflops_bf16 800"',
    "gpt2": """
if [[ ${1:-} == --kernels ]]; then
  echo "  12.5 us    24 launches  a kernel"
else
  echo "figure gpt2_tokens_per_second_bf16 450000"; echo "figure gpt2_tflops_bf16 400"
fi""",
    "narrow_mlp": 'echo "figure narrow_mlp_us_bf16 150"',
}
TICKS = """
before=$(cat "$LAB/tick" 2>/dev/null); sleep 0.3; after=$(cat "$LAB/tick" 2>/dev/null)
[[ $before == "$after" ]] && echo "figure peer_was_still_{0} 1" || echo "figure peer_worked_{0} 1"
"""


# Until the clock was read once while the program ran.
SAMPLED = """
rm -f "$LAB/sampled"
for ((i = 0; i < 200; ++i)); do [[ -e $LAB/sampled ]] && break; sleep 0.05; done
"""


class GpuSh(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.lab = Path(self.folder.name).resolve()
        self.root = self.lab / "root"
        (self.root / "bench/gpu").mkdir(parents=True)
        shutil.copy(HERE / "bench/gpu.sh", self.root / "bench")
        shutil.copy(HERE / "bench/gpu/expected.txt", self.root / "bench/gpu")
        (self.root / "bench/gpu/torch_peer.py").touch()
        for name, text in TOOLS.items():
            self.script(self.lab / "bin" / name, text)
        for name in [*MEASURED, "atoms", "bodies", "laws", "options", "hopper", "small"]:
            self.program(name, PROGRAMS.get(name, f'echo "figure {name}_ran 1"'))
        (self.lab / "prebuilt/arch").write_text("sm_90a\n")

    def tearDown(self):
        self.folder.cleanup()

    def script(self, path, text):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def program(self, name, text):
        self.script(self.lab / "prebuilt" / name, text)

    def command(self, *arguments):
        return ["bash", str(self.root / "bench/gpu.sh"), "--out", str(self.lab / "report.md"), *arguments]

    def environment(self, **more):
        return {"PATH": f"{self.lab}/bin:/usr/bin:/bin", "LAB": str(self.lab), "CUDA_HOME": str(self.lab / "cuda"), "PIPE_JOBS": "1",
                "PIPE_GPU_PART_SECONDS": "15", "PIPE_GPU_SECONDS": "60", **more}

    def run_script(self, *arguments, **more):
        """Runs gpu.sh with the prebuilt programs, or with `arguments`. -> exit code, {row: outcome}, report"""
        arguments = arguments or ("--prebuilt", str(self.lab / "prebuilt"))
        result = subprocess.run(self.command(*arguments), env=self.environment(**more), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60 + int(more.get("PIPE_GPU_SECONDS", 0)))
        self.output = result.stdout
        report = self.lab / "report.md"
        text = report.read_text() if report.exists() else ""
        self.cells = {row[0]: row[1:] for row in re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", text, re.M)}
        return result.returncode, {name: row[0] for name, row in self.cells.items()}, text

    def test_all_is_well(self):
        (self.root / "bench/gpu/expected.txt").write_text("# a comment\ngpt2_tokens_per_second_bf16 430000\nnarrow_mlp_us_bf16 50\n")
        self.program("gpt2", SAMPLED + PROGRAMS["gpt2"])
        status, rows, text = self.run_script()
        self.assertEqual(0, status, self.output)
        self.assertIn("NVIDIA Fake, 580.1", text)
        self.assertIn("release 13.0", text)
        self.assertRegex(rows["GPT-2 124M, bf16, 2 x 8 samples"], r"^ok, \d+ s, up to 1980 MHz, 512 W$")
        self.assertIn("24 launches  a kernel", text)
        self.assertEqual("0.500", rows["gpt2_of_cublaslt_bf16"])
        # the best of the peer's ways: most tokens, fewest microseconds
        self.assertEqual("0.900", rows["gpt2_over_torch_compile_bf16"])
        self.assertEqual("2.000", rows["narrow_mlp_over_torch_compile_bf16"])
        self.assertEqual(("450000", "430000", "1.05"), self.cells["gpt2_tokens_per_second_bf16"])
        self.assertEqual(("150", "50", "**3.00**"), self.cells["narrow_mlp_us_bf16"])
        self.assertEqual(("4000", "", ""), self.cells["copy_GB_per_s"])
        order = [list(rows).index(name) for name in
                 ("copy_GB_per_s", "atoms_ran", "gpt2_tokens_per_second_bf16", "gpt2_4x32_ran", "products_ran", "attention_ran", "rows_ran",
                  "narrow_mlp_us_bf16", "optimizers_ran", "gpt2_fp32_ran", "bodies_ran", "options_ran", "hopper_ran", "racecheck of two small models",
                  "torch_gpt2_tokens_per_second_bf16", "gpt2_over_torch_compile_bf16")]
        self.assertEqual(sorted(order), order)
        self.assertEqual(f"{self.root}/build/torch", (self.lab / "peer.cache").read_text().strip())
        self.assertNotIn(" -c ", (self.lab / "nvcc.log").read_text())

    def test_what_was_printed_is_kept(self):
        self.program("gpt2_4x32", 'echo "figure before_the_hang 7"; sleep 60')
        self.program("products", 'echo "figure before_the_crash 8"; echo "last words"; kill -SEGV $$')
        self.program("rows", 'echo "why not"; exit 77')
        self.program("attention", 'cp "$LAB/report.md" "$LAB/then.md"')
        status, rows, text = self.run_script(PIPE_GPU_PART_SECONDS="3")
        self.assertEqual(0, status, self.output)  # no law is broken
        self.assertEqual("**stopped** after 3 s", rows["GPT-2 124M, bf16, 4 x 32 samples"])
        self.assertEqual("7", rows["before_the_hang"])
        self.assertEqual("**failed** (139): last words", rows["products over cuBLASLt"])
        self.assertEqual("8", rows["before_the_crash"])
        self.assertEqual("left out: why not", rows["rows and updates over a copy"])
        self.assertIn("## products over cuBLASLt\n\n```text\nfigure before_the_crash 8\nlast words\n", text)
        then = (self.lab / "then.md").read_text()  # the report is written after each part
        self.assertIn("| before_the_crash | 8 |", then)
        self.assertNotIn("narrow_mlp", then)

    def test_broken_laws_fail(self):
        self.program("bodies", 'echo "norms are wrong"; exit 1')
        self.program("laws", "sleep 60")  # a hang breaks a law
        status, rows, _ = self.run_script(HAZARDS="2", PIPE_GPU_PART_SECONDS="3")
        self.assertEqual(1, status)
        self.assertEqual("**failed** (1): norms are wrong", rows["laws: every kernel family against fp64"])
        self.assertIn("**failed** (3)", rows["racecheck of two small models"])
        for name in ("laws: every kernel family against fp64", "laws: the bits of one stage", "racecheck of two small models"):
            self.assertIn(f"failed: {name}", self.output)
        self.assertNotIn("failed: memcheck", self.output)

    def test_tools_that_cannot_run_are_left_out(self):
        status, rows, _ = self.run_script()
        self.assertEqual(0, status)
        self.assertEqual("left out: ========= Error: Device not supported", rows["memcheck of two small models"])
        self.assertEqual("left out: ==ERROR== ERR_NVGPUCTRPERM - no permission", rows[f"profile of kernels: {self.lab}/report.ncu-rep"])
        self.assertRegex(rows["synccheck of small kernels"], "^ok")
        self.assertRegex((self.lab / "sanitizer.log").read_text(), r"(?m)^racecheck .*/bodies \[small\]$")

    def test_time_is_over(self):
        for name in MEASURED:
            self.program(name, "sleep 8")  # one of them fits, also where the script takes seconds itself
        status, rows, _ = self.run_script(PIPE_GPU_SECONDS="16", NO_TORCH="1")
        self.assertEqual(0, status)
        self.assertRegex(rows["the device: a copy, a product by cuBLASLt"], "^ok")
        self.assertEqual("left out: no time is left", rows["laws: every kernel family against fp64"])
        self.assertEqual("left out: no time is left", rows["the peer: torch.compile"])

    def test_the_peer_is_still_while_others_are_measured(self):
        for name in ("gpt2", "gpt2_fp32", "bodies"):
            self.program(name, TICKS.format(name))
        status, rows, _ = self.run_script(PEER_TICKS="300")
        self.assertEqual(0, status, self.output)
        for name in ("peer_was_still_gpt2", "peer_was_still_gpt2_fp32", "peer_worked_bodies"):
            self.assertIn(name, rows)

    def test_no_peer_outlives_the_script(self):
        self.run_script(PEER_TICKS="10000", PIPE_GPU_SECONDS="12")
        peer = int((self.lab / "peer.pid").read_text())
        with self.assertRaises(ProcessLookupError):
            os.kill(peer, 0)

    def test_no_peer(self):
        status, rows, _ = self.run_script(NO_TORCH="1")
        self.assertEqual(0, status)
        self.assertEqual("left out: there is no PyTorch", rows["the peer: torch.compile"])
        self.assertNotIn("gpt2_over_torch_compile_bf16", rows)

    def test_only_what_cannot_start_is_built(self):
        (self.lab / "prebuilt/attention").unlink()
        status, rows, _ = self.run_script()
        self.assertEqual(0, status, self.output)
        self.assertEqual("1", rows["built_attention"])
        self.assertEqual(1, (self.lab / "nvcc.log").read_text().count(" -c "))
        self.assertRegex(rows["build of attention"], r"^\d+ s$")

    def test_prebuilt_for_another_gpu(self):
        status, rows, _ = self.run_script(CAPABILITY="8.6")
        self.assertEqual(0, status, self.output)
        self.assertEqual("1", rows["built_gpt2"])
        self.assertIn("-arch=native", (self.lab / "nvcc.log").read_text())
        self.assertNotIn("sm_90a", (self.lab / "nvcc.log").read_text())

    def test_prebuilt_for_an_unknown_gpu(self):
        status, rows, _ = self.run_script(CAPABILITY="")
        self.assertEqual(0, status, self.output)
        self.assertNotIn("built_gpt2", rows)

    def test_a_source_that_does_not_compile(self):
        status, rows, text = self.run_script("gpt2", "products", BROKEN_SOURCE="products.cu")
        self.assertEqual(1, status)
        self.assertEqual("**failed**", rows["build of products"])
        self.assertEqual("left out: not built", rows["products over cuBLASLt"])
        self.assertEqual("1", rows["built_gpt2"])
        self.assertIn("error: it is broken", text)
        self.assertNotIn("laws: every kernel family against fp64", rows)
        self.assertNotIn("the peer: torch.compile", rows)
        self.assertIn("failed: build of products", self.output)

    def test_build_only(self):
        status, _, text = self.run_script("--build-only")
        self.assertEqual((0, ""), (status, text), self.output)
        log = (self.lab / "nvcc.log").read_text()
        compiled = re.findall(r" -c (?:\S+/root/)(\S+)", log)
        self.assertEqual(len(set(compiled)), len(compiled))
        self.assertIn("tests/cuda/", compiled[0])  # the slowest first
        for source in compiled:
            self.assertTrue((HERE / source).is_file(), source)
        slow = re.search(r"\nslow=\((.*?)\)", (HERE / "bench/gpu.sh").read_text(), re.S)[1].split()
        self.assertEqual(slow, compiled[:len(slow)])
        self.assertTrue(all("arch=compute_90a,code=sm_90a" in line for line in log.splitlines() if " -o " in line))
        built = self.root / "build/gpu/programs"
        self.assertEqual("sm_90a", (built / "arch").read_text().strip())
        # which then runs as it is
        (self.lab / "nvcc.log").unlink()
        (built / "commit").write_text("abcdef0\n")
        status, rows, text = self.run_script("--prebuilt", str(built))
        self.assertEqual(0, status, self.output)
        self.assertIn("programs of commit abcdef0", text)
        self.assertEqual("1", rows["built_gpt2"])
        self.assertNotIn(" -o ", (self.lab / "nvcc.log").read_text())
        # and again from the script's own copy
        status, rows, _ = self.run_script("--prebuilt", str(built.parent) + ".prebuilt")
        self.assertEqual(0, status, self.output)
        self.assertEqual("1", rows["built_gpt2"])

    def test_cublaslt_of_pythons_packages(self):
        cuda = self.lab / "site-packages/nvidia/cu13"
        cudnn = self.lab / "site-packages/nvidia/cudnn"
        for path in (cudnn / "lib/libcudnn.so.9", cuda / "lib/libcublasLt.so.13", cuda / "include/cublasLt.h",
                     cuda / "include/cublas_api.h", cuda / "include/cuda_runtime.h"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        self.program("device", 'echo "figure path_$(tr -c "[:alnum:]\\n" _ <<<"$LD_LIBRARY_PATH") 1"')
        (self.lab / "prebuilt/products").unlink()
        status, rows, _ = self.run_script(NO_CUBLASLT_H="1", LD_LIBRARY_PATH="/other")
        self.assertEqual(0, status, self.output)
        self.assertEqual(f"{cuda}/lib/libcublasLt.so.13", rows["cuBLASLt"])
        self.assertIn("path_" + re.sub(r"\W|_", "_", f"{cuda}/lib:/other:{cudnn}/lib"), rows)
        include = self.root / "build/gpu/include"
        self.assertRegex((self.lab / "nvcc.log").read_text(), rf"-I{include} .*-c .*products\.cu")
        self.assertEqual(["cublasLt.h", "cublas_api.h"], sorted(path.name for path in include.iterdir()))
        # the toolkit's comes first
        (self.lab / "cuda/lib64").mkdir(parents=True)
        (self.lab / "cuda/lib64/libcublasLt.so.13").touch()
        _, rows, _ = self.run_script("device", NO_TORCH="1")
        self.assertEqual(f"{self.lab}/cuda/lib64/libcublasLt.so.13", rows["cuBLASLt"])

    @unittest.skipUnless(os.environ.get("PIPE_SMALL_PROGRAM"), "no program that runs without a GPU is named")
    def test_a_real_program(self):
        """bench/gpu/small.cu, whose PTX is executed on the CPU."""
        shutil.copy(os.environ["PIPE_SMALL_PROGRAM"], self.lab / "prebuilt/small")
        limits = {"PIPE_GPU_PART_SECONDS": "120", "PIPE_GPU_SECONDS": "200", "REAL_PROGRAM": "1"}
        status, rows, _ = self.run_script("--prebuilt", str(self.lab / "prebuilt"), "small", **limits)
        self.assertEqual(0, status, self.output)
        self.assertRegex(rows["synccheck of two small models"], "^ok")
        log = (self.root / "build/gpu/output").read_text()
        losses = [float(x) for x in re.findall(r"^loss (\S+)$", log, re.M)]
        self.assertEqual(5, len(losses), log)
        self.assertLess(losses[1], losses[0])
        self.assertLess(losses[4], losses[3])

    @unittest.skipUnless(shutil.which("g++"), "there is no g++")
    def test_managed_memory_has_a_limit(self):
        (self.lab / "cuda_runtime.h").write_text("""#include <sys/mman.h>
enum cudaError_t { cudaSuccess };
inline cudaError_t cudaMallocManaged(void** to, unsigned long bytes) {
  *to = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return cudaSuccess;
}""")
        (self.lab / "main.cpp").write_text("""#include <cstdio>
#include <new>
int main() {
  for (;;) {
    if (::operator new(std::size_t(1) << 30) == nullptr) return 1;
    std::puts("a GiB");
    std::fflush(stdout);
  }
}""")
        program = self.lab / "program"
        subprocess.run(["g++", "-std=c++20", f"-I{self.lab}", self.lab / "main.cpp", HERE / "bench/gpu/managed_memory.cpp", "-o", program],
                       check=True)
        result = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(3, result.returncode)
        self.assertIn(result.stdout.count("a GiB"), (15, 16))
        self.assertIn("more than 16 GiB of managed memory", result.stderr)

    def test_wrong_arguments(self):
        for arguments in (["--nonsense"], ["gpt3"], ["--prebuilt"], ["--prebuilt", "/no/such/folder"]):
            with self.subTest(arguments=arguments):
                status, _, text = self.run_script(*arguments)
                self.assertEqual((2, ""), (status, text))
                self.assertIn(arguments[-1], self.output)


if __name__ == "__main__":
    sys.exit(unittest.main())
