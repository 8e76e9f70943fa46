#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the example `images` prints and draws, of files of MNIST and CIFAR that are written here and of the fonts that are installed."""
import base64
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

PROGRAM = str(Path(sys.argv.pop(1)).resolve())
NUMBERS = re.compile(r"images_error (\d+\.\d+) % of (\d+) pictures kept back, loss (\d+\.\d+), after (\d+) steps")


# A shell's background jobs are started to ignore it, and so would be what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def mnist(folder, name, count, side=28):
    """Two files: pictures of a bright bar, whose length is the class."""
    labels = [i * 7 % 10 for i in range(count)]
    pictures = b"".join(bytes(200 if 9 < y < 16 and x < 2 + 2 * label else 0 for y in range(side) for x in range(side)) for label in labels)
    Path(folder, f"{name}-images").write_bytes(struct.pack(">4i", 0x803, count, side, side) + pictures)
    Path(folder, f"{name}-labels").write_bytes(struct.pack(">2i", 0x801, count) + bytes(labels))
    return [f"{name}-images", f"{name}-labels"]


def cifar(folder, name, count):
    """Red, green and blue planes of one brightness each."""
    record = lambda i: bytes([i % 10]) + b"".join(bytes([(i * 9 + c * 80) % 256]) * 1024 for c in range(3))
    Path(folder, name).write_bytes(b"".join(map(record, range(count))))
    return name


class Images(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def numbers(self, done):
        """Error, pictures, steps; the page beside them says the same."""
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        error, count, _, steps = NUMBERS.search(done.stdout).groups()
        page = xml.fromstring(Path(self.folder, "images.html").read_text().split("\n", 1)[1])
        counts = [tuple(map(int, c.find("span").text.split("/"))) for c in page.iter("div") if c.get("class") == "class"]
        wrong = sum(w for w, _ in counts)
        self.assertEqual(sum(n for _, n in counts), int(count))
        self.assertAlmostEqual(float(error), 100 * wrong / int(count), delta=0.005)
        pictures = [p.get("src").removeprefix("data:image/bmp;base64,") for p in page.iter("img")]
        self.assertEqual(len(pictures), min(wrong, 240))
        for picture in pictures:
            data = base64.b64decode(picture, validate=True)
            self.assertEqual((data[:2], *struct.unpack("<iiiiii", data[2:26])), (b"BM", 54 + 96 * 32, 0, 54, 40, 32, 32))
            self.assertEqual(len(data), 54 + 96 * 32)
        return float(error), int(count), int(steps)

    def test_lengths_are_learned(self):
        files = mnist(self.folder, "train", 640) + mnist(self.folder, "test", 50)
        before = self.numbers(self.run_program("--mnist", *files, "--steps", 1))
        after = self.numbers(self.run_program("--mnist", *files, "--epochs", 12, "--save", "bars.safetensors"))
        self.assertEqual((before[1:], after[1:]), ((50, 1), (50, 60)))
        self.assertLess(after[0], before[0])
        self.assertLess(after[0], 50)
        self.assertGreater(Path(self.folder, "bars.safetensors").stat().st_size, 100000)

    def test_a_run_that_is_stopped_is_judged_and_saved(self):
        files = mnist(self.folder, "train", 640) + mnist(self.folder, "test", 10)
        process = subprocess.Popen([PROGRAM, "--mnist", *files, "--epochs", "100000", "--save", "bars"], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line.startswith("step"):
                break
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, errors)
        steps = NUMBERS.search(output).group(4)
        self.assertEqual(errors, f"images: stopped by SIGINT after {steps} of 500000 steps\n")
        self.assertTrue(Path(self.folder, "images.html").exists() and Path(self.folder, "bars").exists())

    def test_what_cannot_be_saved_costs_nothing(self):
        files = mnist(self.folder, "train", 64) + mnist(self.folder, "test", 10)
        for option in "--save", "--out":
            done = self.run_program("--mnist", *files, option, "no/where")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "images: cannot write 'no/where': No such file or directory\n"))
        # A place that goes while the network learns: what it gets wrong is shown all the same.
        Path(self.folder, "place").mkdir()
        process = subprocess.Popen([PROGRAM, "--mnist", *files, "--epochs", "100000", "--save", "place/bars"], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line.startswith("step"):
                break
        Path(self.folder, "place").rmdir()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, errors)
        self.assertRegex(output, NUMBERS)
        self.assertIn("images: cannot write 'place/bars': No such file or directory\n", errors)
        self.assertTrue(Path(self.folder, "images.html").exists())

    def test_a_run_repeats_to_the_byte(self):
        files = [cifar(self.folder, "data.bin", 200), cifar(self.folder, "test.bin", 30)]
        pages = []
        for _ in range(2):
            done = self.run_program("--cifar", *files, "--steps", 2)
            self.assertEqual(self.numbers(done)[1:], (30, 2))
            pages.append(Path(self.folder, "images.html").read_text())
        self.assertEqual(*pages)

    def test_fonts_of_the_test_are_of_other_families(self):
        done = self.run_program("--steps", 1)
        if done.returncode == 1 and "families of fonts" in done.stderr:
            self.assertRegex(done.stderr, r"^images: found \d+ families of fonts with all letters and digits, at least 16 are needed: install some")
            return
        _, count, _ = self.numbers(done)
        self.assertEqual(count % 62, 0)
        fonts, families = map(int, re.search(r"digits of (\d+) fonts in (\d+) families", done.stdout).groups())
        self.assertLess(count // 62, fonts)
        self.assertGreaterEqual(count // 62, families // 8)

    def test_what_is_wrong_is_said(self):
        good = mnist(self.folder, "a", 3)
        none = mnist(self.folder, "none", 0)
        large = mnist(self.folder, "large", 2, side=40)
        Path(self.folder, "cut").write_bytes(Path(self.folder, good[0]).read_bytes()[:-1])
        for arguments, code, words in (
            (("--mnist", *good), 2, "images: --mnist"),
            (("--mnist", *good, *large), 1, "images: large-images: images of 40 x 40 cells, at most 32 x 32 are taken"),
            (("--mnist", "cut", good[1], *good), 1, "images: 'cut': expected"),
            (("--mnist", *good, *good, "--out", good[0]), 1, "images: "),
            (("--mnist", *none, *good), 1, "images: 'none-images' has no images"),
            (("--mnist", *good, *none), 1, "images: 'none-images' has no images"),
            (("--fonts", "nowhere"), 2, "images: --fonts"),
            (("--fonts", "."), 1, "images: found 0 families of fonts"),
            (("--epochs", 0), 2, "images: --epochs"),
            (("--steps", 0), 2, "images: --steps: needs a whole number of at least 1 and at most 9223372036854775807, got '0' ("),
            (("--lr", 0), 2, "images: --lr: needs a number above 0, got '0' ("),
            (("--seed", -1), 2, "images: --seed: needs a whole number of at least 0 and at most 18446744073709551615, got '-1' ("),
        ):
            with self.subTest(arguments=arguments):
                done = self.run_program(*arguments)
                self.assertEqual((done.returncode, done.stdout), (code, ""))
                self.assertTrue(done.stderr.startswith(words), done.stderr)


if __name__ == "__main__":
    unittest.main()
