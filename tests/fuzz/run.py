#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Builds a fuzz target, gives it seeds and lets it look for input that breaks a law, for some seconds.

    run.py tests/fuzz/NAME.cpp --compiler clang++ --include include [--seconds 60] [--corpus FOLDER]

The result is 77 (skipped) where the compiler has no libFuzzer. An input that breaks a law is printed in hexadecimal, so that it
can become a test.
"""
import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

FLAGS = ["-std=c++20", "-O1", "-g", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
SKIPPED = 77
SHOWN = 40  # lines of output worth reading after a failure


def safetensors_seeds():
    """Good files, their headers alone, and files with one thing wrong."""
    types = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2,
             "U8": 1, "BOOL": 1, "C64": 8, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1}

    def tensor(dtype, shape, begin):
        size = types[dtype]
        for extent in shape:
            size *= extent
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + size]}, begin + size

    def headers():
        yield {}, 0
        yield {"__metadata__": {"format": "pt", "é\n\"\\": "\U0001F600\u0000"}}, 0
        for dtype in types:
            one, size = tensor(dtype, [2, 3], 0)
            yield {"w": one}, size
        several, end = {"__metadata__": {"a": "b"}}, 0
        for name, dtype, shape in [("z", "F32", []), ("none", "F16", [0, 5]), ("a.b", "BF16", [4]), ("é", "U8", [1, 1, 3])]:
            several[name], end = tensor(dtype, shape, end)
        yield several, end
        wide = (1 << 32)
        yield {"w": {"dtype": "F32", "shape": [wide, wide], "data_offsets": [0, 0]}}, 0
        yield {"a": tensor("U8", [4], 0)[0], "b": tensor("U8", [4], 2)[0]}, 6
        yield {"a": tensor("U8", [4], 0)[0], "b": tensor("U8", [2], 6)[0]}, 8
        yield {"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 1.5]}}, 4
        yield {"w": {"dtype": "F4", "shape": [[[]]], "data_offsets": [8, 0]}}, 8

    for header, size in headers():
        for ascii_only in (True, False):
            text = json.dumps(header, ensure_ascii=ascii_only, separators=(",", ":")).encode()
            text += b" " * (-len(text) % 8)
            yield text
            yield struct.pack("<Q", len(text)) + text + bytes(i % 251 for i in range(size))
    yield struct.pack("<Q", 100_000_001) + b"{}"
    yield struct.pack("<Q", 2**64 - 1) + b"{}"
    yield b'{"a":' * 100


def torch_csv_seeds():
    """Right schedules of several placements, what PyTorch writes beside, and tables with numbers that are too large."""
    yield b"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
    yield b"0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n"
    yield b"0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n"
    yield b"0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n"
    yield b"0F0,1F1,1B1,0B0\n1F0,0F1,1B0,0B1\n"
    yield b"\xef\xbb\xbf0UNSHARD,0F0,0SEND_F0,,0RECV_B0,0B0,0REDUCE_GRAD\r\n1RECV_F0,(1F0;1B0)OVERLAP_F_B,1SEND_B0\r\n\n"
    yield b"65535F65535"
    yield b"1048575F0,0F16777215"
    yield b"0F0,0B0,0F16777215,1048575F16777215"


SEEDS = {"safetensors": safetensors_seeds, "torch_csv": torch_csv_seeds}
WORDS = {"safetensors": ['"dtype"', '"shape"', '"data_offsets"', '"__metadata__"', '"F32"', '"BF16"', '"\\\\u00e9"',
                         '"\\\\ud83d\\\\ude00"', '"9223372036854775807"', '"18446744073709551616"'],
         "torch_csv": ['"SEND_F"', '"RECV_B"', '"UNSHARD"', '")OVERLAP_F_B"', '"0F0,"', '"1I1,"', '"0W1,"', '"\\x0a"', '"16777215"',
                       '"1048575"']}


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return result.returncode, result.stdout


def has_fuzzer(compiler):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text('extern "C" int LLVMFuzzerTestOneInput(unsigned char const*, unsigned long) { return 0; }\n')
        try:
            return run([compiler, *FLAGS, str(source), "-o", str(Path(folder, "probe"))])[0] == 0
        except OSError:
            return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--compiler", default="")
    parser.add_argument("--include", nargs="+", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="a folder that keeps what was found for the next run")
    arguments = parser.parse_args()
    if not has_fuzzer(arguments.compiler):
        print("skipped: there is no clang++ with libFuzzer")
        return SKIPPED

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        target, seeds, words = folder / "target", folder / "seeds", folder / "words"
        includes = [f"-I{i}" for i in arguments.include]
        code, output = run([arguments.compiler, *FLAGS, *includes, str(arguments.source), "-o", str(target)])
        if code:
            print(output)
            return 1
        seeds.mkdir()
        for number, seed in enumerate(SEEDS[arguments.source.stem]()):
            (seeds / f"{number:03}").write_bytes(seed)
        words.write_text("\n".join(WORDS[arguments.source.stem]) + "\n")
        corpus = arguments.corpus or folder / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        code, output = run([str(target), str(corpus), str(seeds), f"-max_total_time={arguments.seconds}", "-max_len=4096",
                            "-timeout=10", "-rss_limit_mb=2048", f"-dict={words}", f"-artifact_prefix={folder}/found-",
                            "-print_final_stats=1"])
        lines = output.splitlines()
        if code:
            print("\n".join(lines[-SHOWN:]))
            for found in sorted(folder.glob("found-*")):
                print(f"{found.name}: {found.read_bytes().hex()}")
            return 1
        executed = [line for line in lines if "number_of_executed_units" in line]
        print(f"{executed[0].split()[-1] if executed else 'no'} inputs, no law broken")
        return 0 if executed else 1


if __name__ == "__main__":
    sys.exit(main())
