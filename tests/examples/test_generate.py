#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Lets the small model learn a text that this test writes, and continue it: what is kept, that it is loaded as a hub's, what a seed decides, and errors."""
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()


class Generate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        (cls.folder / "text").write_text("".join(f"The number {i} is before {i + 1}.\n" for i in range(400)))
        cls.learned = cls.run_generate(cls, "--text", "text", "--steps", "60", "--prompt", "The number", "--tokens", "12")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_generate(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def test_a_text_is_learned_and_continued(self):
        self.assertEqual(0, self.learned.returncode, self.learned.stderr)
        self.assertRegex(self.learned.stderr, r"(?s)\Ano --weights: a small GPT-2 learns \d+ tokens of 'text', and is kept in 'generate-model'\n.*"
                                              r"\nloaded 'generate-model': 0\.4 million parameters in .* s\n12 tokens, .* tokens per second\n\Z")
        self.assertRegex(self.learned.stdout, r"(?s)\AThe number.*\n\Z")
        self.assertEqual({"model.safetensors", "tokenizer.json"}, {path.name for path in (self.folder / "generate-model").iterdir()})

    def test_what_was_learned_is_loaded_as_a_model_of_a_hub(self):
        given = ("--prompt", "The number", "--tokens", "12")
        for more in ((), ("--weights", "generate-model"), ("--weights", "generate-model/model.safetensors", "--model", "small")):
            again = self.run_generate(*given, *more)
            self.assertEqual((0, self.learned.stdout), (again.returncode, again.stdout), again.stderr)
            self.assertNotIn("learns", again.stderr)

    def test_draws_are_those_of_the_settings(self):
        given = ("--prompt", "The number", "--tokens", "40")
        greedy = self.run_generate(*given, "--greedy")
        self.assertEqual(0, greedy.returncode, greedy.stderr)
        for same in (("--temperature", "0"), ("--top-k", "1", "--seed", "5"), ("--top-p", "1e-6", "--seed", "6")):
            self.assertEqual(greedy.stdout, self.run_generate(*given, *same).stdout)
        hot = [self.run_generate(*given, "--temperature", "3", "--top-k", "0", "--top-p", "1", "--seed", seed).stdout for seed in "112"]
        self.assertEqual(hot[0], hot[1])
        self.assertNotEqual(hot[0], hot[2])

    def test_tokens_in_place_of_a_text(self):
        result = self.run_generate("--ids", "1,2,3", "--tokens", "5")
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertRegex(result.stdout, r"\A1 2 3( \d+){5}\n\Z")

    def test_rounded_weights_continue_a_text_too(self):
        given = ("--prompt", "The number", "--tokens", "12")
        for numbers in ("fp32", "bf16", "int8"):
            result = self.run_generate(*given, "--numbers", numbers, "--threads", "2")
            self.assertEqual(0, result.returncode, result.stderr)
            self.assertRegex(result.stdout, r"(?s)\AThe number.*\n\Z")
            if numbers == "fp32":
                self.assertEqual(self.learned.stdout, result.stdout)
        result = self.run_generate(*given, "--keys-in-bf16")
        self.assertEqual(0, result.returncode, result.stderr)
        self.assertRegex(result.stdout, r"(?s)\AThe number.*\n\Z")

    def test_the_perplexity_of_a_text_by_all_kinds_of_weights(self):
        found = {}
        for text in ("text", "other"):
            (self.folder / "other").write_text("Quite another sentence, of other words: was it seen before?\n" * 5)
            result = self.run_generate("--perplexity", text)
            self.assertEqual(0, result.returncode, result.stderr)
            lines = re.findall(r"^(\S+(?:, keys in bf16)?): perplexity (\d+\.\d{4}) of (\d+) tokens$", result.stdout, re.MULTILINE)
            self.assertEqual([weights + keys for weights in ("fp32", "bf16", "int8") for keys in ("", ", keys in bf16")],
                             [line[0] for line in lines], result.stdout)
            found[text] = [float(line[1]) for line in lines]
            for value in found[text]:
                self.assertAlmostEqual(1, value / found[text][0], delta=0.05)
        self.assertLess(found["text"][0], found["other"][0])

    def test_wrong_options_and_files(self):
        (self.folder / "empty").mkdir(exist_ok=True)
        (self.folder / "tokenizer.json").write_text("{}")
        (self.folder / "cut.safetensors").write_bytes((self.folder / "generate-model/model.safetensors").read_bytes()[:5000])
        for arguments, code, says in (
                (("--model", "gpt2"), 1, "--model gpt2 needs --weights FOLDER"), (("--weights", "none"), 1, "cannot read 'none'"),
                (("--weights", "empty"), 1, "'empty' has neither model.safetensors nor"), (("--weights", "cut.safetensors"), 1, "'cut.safetensors': "),
                (("--weights", "generate-model", "--model", "gpt2"), 1, r"'wte.weight': expected shape \[50257, 768\], found \[512, 96\]"),
                (("--weights", "generate-model", "--tokenizer", "empty"), 1, "'empty' has neither tokenizer.json nor vocab.json"),
                (("--weights", "generate-model", "--tokenizer", "tokenizer.json"), 1, "'tokenizer.json': there is no model"),
                (("--ids", "600"), 1, r"token 600 of the prompt is not in \[0, 512\)"), (("--learned", "x", "--text", "none"), 1, "cannot read 'none': No such file or directory"),
                (("--learned", "x", "--text", "empty"), 1, "'empty' has too little to learn"),
                (("--learned", "text/x", "--text", "text"), 1, "cannot make the folder 'text/x': Not a directory"),
                (("--top-k", "-2"), 2, r"--top-k: needs a whole number of at least 0 and at most 2147483647, got '-2' \("),
                (("--temperature", "-1"), 2, r"--temperature: needs a number of at least 0, got '-1' \("),
                (("--seed", "-1"), 2, r"--seed: needs a whole number of at least 0 and at most \d{20}, got '-1' \("),
                (("--numbers", "int4"), 2, "--numbers"), (("--perplexity", "none"), 2, "--perplexity"),
                (("--model", "gpt3"), 2, "--model"), (("--top-p", "2"), 2, "--top-p"), (("--greedy", "--temperature", "1"), 2, "--greedy|--temperature")):
            with self.subTest(arguments):
                result = self.run_generate(*arguments)
                self.assertEqual((code, ""), (result.returncode, result.stdout), result.stderr)
                self.assertRegex(result.stderr, rf"\Agenerate: .*{says}.*\n\Z")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
