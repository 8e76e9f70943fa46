#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Translates between three small languages of catalogues that this test writes: what is printed, what is kept back, and that a run goes on."""
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()
NOUNS = {"file": ("Datei", "fichier"), "disk": ("Platte", "disque"), "line": ("Zeile", "ligne"), "name": ("Name", "nom"), "user": ("Nutzer", "usager")}
VERBS = {"open": ("offen", "ouvert"), "lost": ("verloren", "perdu"), "empty": ("leer", "vide"), "old": ("alt", "vieux")}


def catalogue(texts):
    texts = sorted((a.encode(), b.encode()) for a, b in texts.items())
    tables, strings, begin = b"", b"", 28 + 16 * len(texts)
    for column in (0, 1):
        for pair in texts:
            tables += struct.pack("<2I", len(pair[column]), begin + len(strings))
            strings += pair[column] + b"\0"
    return struct.pack("<7I", 0x950412de, 0, len(texts), 28, 28 + 8 * len(texts), 0, begin) + tables + strings


class Translate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        for index, language in enumerate(("de", "fr")):
            texts = {"": "Content-Type: text/plain; charset=UTF-8\n"}
            for number in range(12):
                for noun, nouns in NOUNS.items():
                    for verb, verbs in VERBS.items():
                        texts[f"{noun} {number} is {verb}"] = f"{nouns[index]} {number} {('ist', 'est')[index]} {verbs[index]}"
            path = Path(self.folder.name, language, "LC_MESSAGES")
            path.mkdir(parents=True)
            (path / "a.mo").write_bytes(catalogue(texts))
            (path / "b.mo").write_bytes(catalogue({"": "Content-Type: text/plain; charset=ISO-8859-1\n"}))

    def tearDown(self):
        self.folder.cleanup()

    def run_translate(self, *arguments):
        return subprocess.run([PROGRAM, "--catalogues", "*/LC_MESSAGES/*.mo", *arguments], cwd=self.folder.name, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8")

    def test_what_was_kept_back_is_translated(self):
        result = self.run_translate("--steps", "60", "--judge", "40", "--show", "2", "--lr", "4e-3")
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        self.assertRegex(result.stdout, r"\A3 languages, \d+ messages for training, \d+ kept back, in 2 catalogues \(2 left out: other charsets\)\n")
        losses = [float(loss) for loss in re.findall(r"loss (\d+\.\d+)", result.stdout)]
        self.assertLess(losses[-1], 0.7 * losses[0])
        bleu = re.search(r"\ntranslate_bleu (\d+\.\d\d) \(40 messages that were kept back, from English to 2 languages\)\n\Z", result.stdout)
        self.assertGreater(float(bleu[1]), 1)
        again = self.run_translate("--steps", "60", "--judge", "40", "--show", "2", "--lr", "4e-3")
        self.assertIn("resumed: after step 60 of 60", again.stdout)
        self.assertEqual(bleu[0], re.search(r"\ntranslate_bleu .*\n\Z", again.stdout)[0])
        other = self.run_translate("--steps", "61")
        self.assertEqual(1, other.returncode)
        self.assertRegex(other.stderr, r"\Atranslate: 'translate-checkpoints' has another run, --steps 60 .*: --checkpoints FOLDER begins this one\n\Z")

    def test_messages_that_are_all_too_long(self):
        draw = random.Random(1)
        long_ones = {"".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=60)): "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=60))
                     for _ in range(1000)}
        for language in ("de", "fr"):
            Path(self.folder.name, language, "LC_MESSAGES", "a.mo").write_bytes(
                catalogue({"": "Content-Type: text/plain; charset=UTF-8\n", **long_ones}))
        result = self.run_translate("--steps", "1")
        self.assertEqual(1, result.returncode)
        self.assertRegex(result.stderr, r"\Atranslate: '\*/LC_MESSAGES/\*\.mo': expected 32 messages of at most 23 tokens, found 0 among 32000\n\Z")

    def test_a_run_that_is_stopped_goes_on(self):
        run = subprocess.Popen([PROGRAM, "--catalogues", "*/LC_MESSAGES/*.mo", "--steps", "100000"], cwd=self.folder.name, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, encoding="utf-8", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        for line in run.stdout:
            if line.startswith("step"):
                run.send_signal(signal.SIGINT)
                break
        errors = run.communicate(timeout=120)[1]
        self.assertEqual(130, run.returncode, errors)
        stopped = re.fullmatch(r"translate: stopped by SIGINT after step (\d+) of 100000; the same command goes on\n", errors)
        self.assertTrue(stopped, errors)
        self.assertLessEqual({"tokenizer.json", f"step-{stopped[1]}.safetensors"}, set(os.listdir(Path(self.folder.name, "translate-checkpoints"))))

    def test_wrong_options(self):
        for arguments, code, says in ((("--languages", "0"), 2, "needs names, a number from 1 to 999, or all"), (("--steps", "x"), 2, "steps"),
                                      (("--plain-init",), 2, "--plain-init requires --deep"),
                                      (("--languages", "de,it,xx"), 1, "found no catalogue to read for it, xx; there are de, fr"),
                                      (("--languages", "it"), 1, "found no catalogue to read for it; there are de, fr"),
                                      (("--languages=-3",), 2, "needs names, a number from 1 to 999, or all, got '-3'"),
                                      (("--languages", "de,"), 2, "needs names, a number from 1 to 999, or all, got 'de,'"),
                                      (("--lr", "0"), 2, r"--lr: needs a number above 0, got '0' \("),
                                      (("--show", "-1"), 2, r"--show: needs a whole number of at least 0 and at most \d{19}, got '-1' \("),
                                      (("--judge", "0"), 2, r"--judge: needs a whole number of at least 1 and at most \d{19}, got '0' \("),
                                      (("--seed", "-1"), 2, r"--seed: needs a whole number of at least 0 and at most \d{20}, got '-1' \("),
                                      (("--checkpoints", "/proc/x"), 1, "cannot make the folder '/proc/x': No such file or directory"),
                                      (("--catalogues", "no/*.mo"), 2, "catalogues")):
            result = self.run_translate(*arguments)
            self.assertEqual(code, result.returncode, result.stderr)
            self.assertRegex(result.stderr, rf"\Atranslate: .*{says}.*\n\Z")

    def test_the_deep_model_has_32_layers_on_each_side(self):
        for more in ((), ("--plain-init",)):
            result = self.run_translate("--plan", "--deep", *more)
            self.assertEqual(0, result.returncode)
            self.assertIn("2 stages", result.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
