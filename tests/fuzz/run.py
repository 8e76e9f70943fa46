#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Builds a fuzz target, gives it seeds and lets it look for input that breaks a law, until a time or a number of inputs is reached.

    run.py tests/fuzz/NAME.cpp --compiler clang++ --include include [--seconds 60] [--inputs 10000000] [--all-inputs]
           [--corpus FOLDER] [--libraries FILE ...]

It runs in a folder in memory, where there is one, for its files. The result is 77 (skipped) where the compiler has no libFuzzer. An input that breaks a law is printed in hexadecimal, so that it
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
    yield b"0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\r1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0\r"
    yield b'"0F0";"0F1";"(1F0; 0B1)OVERLAP_F_B";1F1\t"1B0"\t1B1;"";0B0\n;;\n'
    yield b"65535F65535"
    yield b"1048575F0,0F16777215"
    yield b"0F0,0B0,0F16777215,1048575F16777215"


def problem_file_seeds():
    """A problem with all members, one by hand, and numbers that are too large."""
    cost = {"forward": 3, "backward_input": 2, "backward_weight": 1, "recompute": 3, "memory": [5, -3, -2, 4], "bytes": 8, "hidden": 1, "hop": 2,
            "bandwidth": 4}
    whole = {"problem": "Net, 1f1b", "unit_of_time": "FLOP", "unit_of_memory": "B", "ranks": 2, "chunks": 2, "micro_batches": 3, "hop": 1, "bandwidth": 2,
             "limit": 10, "rooms": [12, 9], "costs": [cost, cost]}
    yield json.dumps(whole).encode()
    yield b'{"costs":[{"memory":[1,0,-1,0],"backward_weight":1,"backward_input":1,"forward":1,"by":[{}]}],"chunks":1,"ranks":1,"micro_batches":1}'
    for number in (2**59, 2**62, 2**63, -2**63, 0, -1):
        yield json.dumps(whole | {"costs": [cost | {"memory": [number, 0, -number, 0]}] * 2}).encode()
        yield json.dumps(whole | {"costs": [cost | {"forward": number}] * 2}).encode()
        yield json.dumps(whole | {"micro_batches": number, "hop": number, "rooms": [number]}).encode()


def checkpoint_seeds():
    """One change of each kind, of a tensor or of a byte: see change(), write_bytes() and refuse_one_byte() in the target."""
    for which in (0, 2):
        for kind in range(9):
            yield bytes([which, 0, 5, 0, 6, kind, 1, 2, 3, 4, 5, 6, 7, 8])
            yield bytes([which, 0, 2, 0, 0, kind, 0, 0, 0x3F, 0xF0])
        for at in range(0, 1500, 50):
            yield bytes([which + 1, at // 256, at % 256, at % 8 * 32 + at // 50 % 4, ord("1")])
            yield bytes([which + 128, at // 256, at % 256, at % 8])
    yield b"\0"


def token_shards_seeds():
    """Plain files of both widths, files with a header, and several of them; windows of several sizes."""
    def number(n):
        return bytes([n // 256, n % 256])

    def settings(context, vocabulary, wide):
        return number(context - 1) + number(2) + number(vocabulary) + bytes([wide])

    def header(magic, version, tokens):
        return struct.pack("<256I", magic, version, tokens, *[0] * 253)

    two, four = struct.pack("<50H", *range(50)), struct.pack("<50I", *range(50))
    for context in (1, 4, 40):
        yield settings(context, 1, 0) + number(len(two)) + two
        yield settings(context, 1, 1) + number(len(four)) + four
        for file in (header(20240520, 1, 50) + two, header(20240801, 7, 50) + four):
            yield settings(context, 1, 0) + number(len(file)) + file
            yield settings(context, 1, 0) + number(len(two)) + two + number(len(file)) + file + two
    yield settings(4, 0, 0) + number(100) + two


def data_files_seeds():
    """A good file of each format that data_files.cpp knows, after its number."""
    yield b"\0" + struct.pack(">4I", 0x803, 2, 1, 3) + b"abcdef"
    for major, width in ((1, "<H"), (2, "<I"), (3, "<I")):
        for order in (b"True", b"False"):
            text = b"{'descr': '>i2', 'fortran_order': " + order + b", 'shape': (2, 3), }\n"
            yield b"\1\x93NUMPY" + bytes([major, 0]) + struct.pack(width, len(text)) + text + bytes(12)
    yield b"\2" + bytes([9] * 3073)
    yield b"\7" + bytes([9] * 3074)
    yield b"\4" + (Path(__file__).resolve().parents[1] / "train/data/tokenizer.json").read_bytes()
    texts = [b"", b"one\0more", b"menu\x04Open",
             b"Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=n%10==1 ? 0 : !(n<2 || n/3>5 && n!=7);\n", b"eins\0mehr",
             b"Auf"]
    for order in "<>":
        tables, strings = b"", b""
        for text in texts:
            tables += struct.pack(order + "2I", len(text), 76 + len(strings))
            strings += text + b"\0"
        yield b"\3" + struct.pack(order + "7I", 0x950412de, 0, 3, 28, 52, 0, 76) + tables + strings


def pictures_seeds():
    """Bytes as they are, which begin with 0; and changes to good files: see changed_file() in the target."""
    yield b"\0\x89PNG\r\n\x1a\n" + struct.pack(">I4s2I5BI", 13, b"IHDR", 4, 4, 8, 2, 0, 0, 0, 0x26930929)
    yield b"\0\xff\xd8\xff\xc0\0\x11\x08\0\x10\0\x10\3\1\x22\0\2\x11\1\3\x11\1"
    for which in range(8):
        for changes in (b"\0\0", b"\0\1\0\x10\0\3\x80", b"\0\2\0\x30\0\0\4\0\x19\0\7\1"):
            for kind in (b"\0\0", b"\0\1"):
                yield b"\1" + kind + changes + bytes([0, which, 0, 9, 0, 17, 0, which]) + bytes(i * 37 % 256 for i in range(600))


def records_seeds():
    """What the writers write, cut and continued; the first byte says which reader reads it, two more after which step a run goes on."""
    metrics = b"step,loss,learning_rate,gradient_norm,samples_per_second,seconds,bubble,a\n"
    steps = b"step,loss,gradient_norm,parameters,runs_on\n"
    for step in (b"\0\0", b"\0\1", b"\0\2", b"\1\2"):
        yield b"\0" + step + metrics + b"1,2,3,4,5,6,7,8\n2,nan,3,4,5,6,7,\n3,1"
        yield b"\1" + step + b'{"step":1,"loss":2}\n{"step":2,"loss":null}\n{"st'
        yield b"\2" + step + steps + b"1,3ff8a3d70a3d70a4,4002666666666666,,AVX-512\n2,3ff7ae147ae147ae,4001eb851eb851ec,8c5f2d0b7a91e634,AVX-512\n3,3"
    yield b"\3" + b"step-20.safetensors 1.25\nstep-10.safetensors nan\nstep-0.safetensors inf\n"
    yield b"\3" + b"step-9223372036854775807.safetensors -1e-300\n"


def http_request_seeds():
    """Requests of browsers, and of others."""
    for host in (b"localhost:8080", b"127.0.0.1", b"[::1]:8080", b"here", b"NODE7.cluster:1", b"evil.example", b""):
        yield b"GET /data?version=3&points=200 HTTP/1.1\r\nHost: " + host + b"\r\nAccept: */*\r\n\r\n"
    yield b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nab"
    yield b"GET / HTTP/1.0\r\nhost:\there\t\r\nhost: here\r\n\r\n"
    yield b"GET / HTTP/1.1\r\n: here\r\n\r\n"
    yield b"GET / HTTP/1.1\r\nX: " + b"y" * 8192


def tcp_handshake_seeds():
    """Connections of a process with two channels, whole, changed, cut and too long; see shake_hands() in the target."""
    def part(changes=(), end=100):
        return bytes([len(changes), *[b for change in changes for b in change], end])

    def connection(process, channel, hello=part(), proof=part(), how=0, leaves=0):
        return bytes([1 - leaves, process, channel, 7]) + hello + bytes([how]) + proof

    whole = connection(1, 0) + connection(1, 1)
    yield whole
    yield connection(1, 0) * 2 + whole
    for at in range(0, 72, 4):
        yield connection(1, 0, part([(at, 1)])) + whole
        yield connection(1, 0, part(end=at)) + whole
    for at in range(0, 56, 4):
        yield connection(1, 0, proof=part([(at, 1)])) + whole
        yield connection(1, 0, proof=part(end=at)) + whole
    for how in range(1, 6):
        yield connection(1, 0, how=how) + whole
    yield connection(1, 0, part(end=255) + b"x") + whole
    yield connection(1, 0, proof=part(end=255) + b"x") + whole
    yield connection(1, 1, leaves=1) + whole


def weight_index_seeds():
    """Indices of the files that the target makes: right ones, and ones with one thing wrong."""
    for places in ({"w": "a", "b": "a", "v": "b"}, {"w": "a", "b": "a"}, {"v": "b"}, {"w": "b"}, {"x": "a"}, {"w": "c"}, {"w": "d"}, {"w": "../a"}, {"w": ""}, {}):
        index = {"metadata": {"total_size": 12}, "weight_map": {name: f"{file}.safetensors" for name, file in places.items()}}
        yield json.dumps(index).encode()
        yield json.dumps(index, indent=2).encode() + b"\n"
    yield b'{"weight_map": {"w": 1}}'
    yield b'{"weight_map": {"w": "a.safetensors", "w": "b.safetensors"}, "weight_map": {}}'
    yield b"[]"


SEEDS = {"safetensors": safetensors_seeds, "torch_csv": torch_csv_seeds, "problem_file": problem_file_seeds, "checkpoint": checkpoint_seeds, "token_shards": token_shards_seeds,
         "data_files": data_files_seeds, "pictures": pictures_seeds, "records": records_seeds,
         "http_request": http_request_seeds, "tcp_handshake": tcp_handshake_seeds, "weight_index": weight_index_seeds}
WORDS = {"safetensors": ['"dtype"', '"shape"', '"data_offsets"', '"__metadata__"', '"F32"', '"BF16"', '"\\\\u00e9"',
                         '"\\\\ud83d\\\\ude00"', '"9223372036854775807"', '"18446744073709551616"'],
         "torch_csv": ['"SEND_F"', '"WAIT_SEND_F"', '"WAIT_REDUCE_GRAD"', '"\\""', '"RECV_B"', '"UNSHARD"', '")OVERLAP_F_B"', '"0F0,"', '"1I1,"', '"0W1,"', '"\\x0a"', '"16777215"',
                       '"1048575"'],
         "problem_file": ['"\\"ranks\\":"', '"\\"rooms\\":"', '"\\"limit\\":"', '"\\"memory\\":["', '"\\"bandwidth\\":"', '"\\"hidden\\":"', '"\\"recompute\\":"',
                          '"1152921504606846975"'],
         "checkpoint": ['"run/steps"', '"run/accumulated"', '"optimizer"', '"accumulated/"', '"checksums"', '"0.weight"', '"F32"', '"U8"'],
         "token_shards": ['"\\x88\\xd8\\x34\\x01\\x01\\x00\\x00\\x00"', '"\\xa1\\xd9\\x34\\x01\\x07\\x00\\x00\\x00"'],
         "data_files": ['"(2, 3)"', '"<f8"', '"True"', '"nplurals="', '"plural="', '"charset="', '"&&"', '"n%10"'],
         "pictures": ['"IHDR"', '"PLTE"', '"tRNS"', '"gAMA"', '"IDAT"', '"iCCP"', '"\\xff\\xc4"', '"\\xff\\xda"', '"\\xff\\xee"'],
         "records": ['"step-"', '".safetensors "', '"\\x0a"', '"{\\"step\\":"', '"step,loss,"', '"nan"', '"0x1p-3"', '"AVX2"'],
         "tcp_handshake": ['"pipe/job"', '"\\x01\\x00\\x00\\x64"'],
         "weight_index": ['"weight_map"', '"metadata"', '"a.safetensors"', '"b.safetensors"', '"\\"w\\": "', '"\\\\u0000"'],
         "http_request": ['"GET /"', '" HTTP/1.1"', '"\\x0d\\x0a"', '"\\x0d\\x0a\\x0d\\x0a"', '"Host: "', '"localhost"', '"[::1]"']}


def run(command, folder=None):
    result = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
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
    parser.add_argument("--inputs", type=int, default=-1, help="end after this number of inputs, if that is earlier")
    parser.add_argument("--all-inputs", action="store_true", help="fail if the time is over before this number of inputs")
    parser.add_argument("--libraries", nargs="+", default=[], help="what the target is linked with")
    parser.add_argument("--corpus", type=Path, help="a folder that keeps what was found for the next run")
    arguments = parser.parse_args()
    if not has_fuzzer(arguments.compiler):
        print("skipped: there is no clang++ with libFuzzer")
        return SKIPPED

    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as files:
        folder = Path(name)
        target, seeds, words = folder / "target", folder / "seeds", folder / "words"
        includes = [f"-I{i}" for i in arguments.include]
        code, output = run([arguments.compiler, *FLAGS, *includes, str(arguments.source), *arguments.libraries, "-o", str(target)])
        if code:
            print(output)
            return 1
        seeds.mkdir()
        for number, seed in enumerate(SEEDS[arguments.source.stem]()):
            (seeds / f"{number:03}").write_bytes(seed)
        words.write_text("\n".join(WORDS[arguments.source.stem]) + "\n")
        corpus = (arguments.corpus or folder / "corpus").resolve()
        corpus.mkdir(parents=True, exist_ok=True)
        code, output = run([str(target), str(corpus), str(seeds), f"-max_total_time={arguments.seconds}", f"-runs={arguments.inputs}",
                            "-max_len=4096", "-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=256", f"-dict={words}",
                            f"-artifact_prefix={folder}/found-", "-print_final_stats=1",
                            *(["-entropic=0"] if arguments.all_inputs else [])], files)  # which costs more than the inputs themselves
        lines = output.splitlines()
        if code:
            said = [i for i, line in enumerate(lines) if "the law in line" in line or "ERROR: " in line or "runtime error: " in line]
            print("\n".join(lines[said[0]:][:SHOWN] if said else lines[-SHOWN:]))
            for found in sorted(folder.glob("found-*")):
                print(f"{found.name}: {found.read_bytes().hex()}")
            return 1
        executed = [line for line in lines if "number_of_executed_units" in line]
        count = int(executed[0].split()[-1]) if executed else 0
        print(f"{count} inputs, no law broken")
        return 1 if count < (arguments.inputs if arguments.all_inputs else 1) else 0


if __name__ == "__main__":
    sys.exit(main())
