#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs the GPT example for a few steps: what it prints, that it repeats itself, and what it says to bad input.

test_gpt.py PROGRAM COMPILER INCLUDE...: the compiler reads the header that --profile writes.
"""
import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(sys.argv[1]).resolve()
COMPILE = [sys.argv[2], "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
           *(f"-I{folder}" for folder in sys.argv[3:])]
DONE = r"done: (\d+) steps, train \d+\.\d{3} bits/byte, validation (\d+\.\d{3}) bits/byte, \d+ tokens/s"
NO_FLUSH = {"pipedream", "pipedream-2bw", "paci"}  # other versions of the weights, so other bits
# A shell's background jobs are started to ignore it, and so would be what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
TEXT = "".join(f"{i} times {i + 1} makes {i * (i + 1)}.\n" for i in range(400))


class Gpt(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        (self.path / "text").write_text(TEXT)

    def tearDown(self):
        self.folder.cleanup()

    def run_gpt(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              encoding="utf-8")

    def good(self, *arguments):
        result = self.run_gpt("--data", "text", *arguments)
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        return result.stdout

    def losses(self, name="metrics.csv"):
        with open(self.path / name) as file:
            return [(row["step"], row["loss"], row["gradient_norm"]) for row in csv.DictReader(file)]

    def refused(self, says, *arguments, code=(1, 2)):
        result = self.run_gpt(*arguments)
        self.assertIn(result.returncode, code)
        self.assertRegex(result.stderr, rf"\Agpt: [^\n]*{says}[^\n]*\n\Z")
        return result

    def test_a_run_ends_with_the_line_of_results(self):
        output = self.good("--steps", "3", "--generate", "20", "--prompt", "2 times ")
        lines = output.splitlines()
        self.assertRegex(lines[-1], rf"\A{DONE}\Z")
        self.assertTrue(lines[0].startswith("GPT: 956,608 parameters"), lines[0])
        self.assertEqual(3, len([line for line in lines if line.startswith("step ")]))
        self.assertEqual(1, len([line for line in lines if line.startswith("2 times ")]))
        self.assertEqual(["1", "2", "3"], [step for step, _, _ in self.losses()])

    def test_it_learns(self):
        match = re.search(DONE, self.good("--steps", "30", "--generate", "0"))
        self.assertEqual("30", match[1])
        self.assertLess(float(match[2]), 5)

    def test_saved_weights_are_where_the_next_run_begins(self):
        def result(*arguments):
            output = self.good("--generate", "30", "--prompt", "2 times ", *arguments)
            return output[output.index("\n2 times "):output.index("\ndone:")], re.search(r"validation \S+", output)[0]

        trained = result("--steps", "3", "--save", "a.safetensors")
        self.assertNotEqual(trained, result("--steps", "0"))
        self.assertEqual(trained, result("--steps", "0", "--load", "a.safetensors", "--save", "b.safetensors"))
        self.assertEqual((self.path / "a.safetensors").read_bytes(), (self.path / "b.safetensors").read_bytes())
        self.good("--steps", "1", "--generate", "0", "--metrics", "fresh")
        self.good("--steps", "1", "--generate", "0", "--metrics", "on", "--load", "a.safetensors", "--schedule", "gpipe")
        self.assertLess(float(self.losses("on")[0][1]), float(self.losses("fresh")[0][1]))

    def test_weights_that_cannot_be_loaded_or_saved_are_one_sentence(self):
        (self.path / "short").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
        (self.path / "other").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
        self.refused("cannot read 'nowhere': No such file or directory", "--data", "text", "--load", "nowhere")
        self.refused("'short'", "--data", "text", "--load", "short")
        self.refused("the weights in 'other' do not fit the model: parameter '0.weight': not in the file", "--data", "text",
                     "--load", "other")
        result = self.refused("cannot write 'no/where': No such file or directory", "--data", "text", "--save", "no/where")
        self.assertNotIn("step ", result.stdout)  # it is told before the training, not after
        self.refused("cannot make the folder 'short': ", "--data", "text", "--tensorboard", "short")

    def test_a_run_is_logged_for_tensorboard(self):
        self.good("--steps", "2", "--generate", "0", "--tensorboard", "runs/1")
        events, = (self.path / "runs/1").glob("events.out.tfevents.*")
        self.assertEqual(2, events.read_bytes().count(b"bits_per_byte"))

    def test_metrics_may_be_json_lines_and_a_page(self):
        self.good("--steps", "2", "--generate", "0", "--metrics", "m.jsonl", "--watch-file", "run.html")
        lines = [json.loads(line) for line in (self.path / "m.jsonl").read_text().splitlines()]
        self.assertEqual([1, 2], [line["step"] for line in lines])
        self.assertEqual({"loss", "bubble", "bits_per_byte"}, {"loss", "bubble", "bits_per_byte"} & set(lines[0]))
        self.assertIn('"ended":true', (self.path / "run.html").read_text())
        self.refused("--watch", "--data", "text", "--watch", "99999", code=[2])
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            self.refused(f"cannot serve a page at 127.0.0.1:{port}: Address already in use", "--data", "text", "--watch", port,
                         "--checkpoints", "other")

    def compiles(self, text):
        (self.path / "program.cpp").write_text(text)
        result = subprocess.run([*COMPILE, self.path / "program.cpp"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                encoding="utf-8")
        self.assertEqual((0, ""), (result.returncode, result.stdout))

    def test_a_profile_is_a_header_of_positive_times(self):
        result = self.run_gpt("--profile", "gpt_profile.hpp", "--profile-spread", "1e9")
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        self.assertRegex(result.stdout, r"\Atimes of a micro-batch, of GPT: (.*\n){22}4 stages, 1f1b, by these times:\ncut +stages begin at .*\n"
                                        r"ByCost +0, .*\nby these times +0, .*\nwrote the times of 20 layers to 'gpt_profile.hpp', spread \d+ %: build again [^\n]*\n\Z")
        self.assertFalse((self.path / "metrics.csv").exists())
        self.compiles("""
            #include "gpt_profile.hpp"
            static_assert(gpt_profile::layers == 20 && sizeof gpt_profile::forward_nanoseconds == 20 * sizeof(long));
            constexpr bool all_take_time() {  // no gradient goes to the tokens, nor to the table of positions
              for (int i = 0; i < 20; ++i)
                if (gpt_profile::forward_nanoseconds[i] <= 0 || gpt_profile::backward_weight_nanoseconds[i] <= 0 ||
                    (gpt_profile::backward_input_nanoseconds[i] > 0) != (i > 1))
                  return false;
              return true;
            }
            static_assert(all_take_time());
            """)
        self.refused("cannot write 'no/where': No such file or directory", "--profile", "no/where")
        busy = self.run_gpt("--profile", "busy.hpp", "--profile-spread", "-1")  # as if the machine were busy
        self.assertEqual(busy.returncode, 1)
        self.assertRegex(busy.stderr, r"measure_layers: the middle half of a launch's times spans \d+ % of their median, more than -1?\d* ?%?")
        self.assertFalse((self.path / "busy.hpp").exists())

    def test_a_profile_cuts_the_next_build(self):
        one = ["1"] * 20
        # As --profile wrote it before: one time for B and W.
        (self.path / "slow.hpp").write_text("struct gpt_profile {\n  static constexpr int layers = 20;\n" + "".join(
            f"  static constexpr long {of}_nanoseconds[] = {{{times}}};\n" for of, times in
            {"forward": ", ".join(["900", *one[1:]]), "backward": ", ".join([*one[1:], "700"])}.items()) + "};\n")
        self.compiles(f"""
            #define PIPE_GPT_PROFILE "{self.path}/slow.hpp"
            #include "gpt.hpp"
            constexpr auto& stages = Trainer<pp::OneFOneB>::plan.stages;
            static_assert(stages[0].end_layer == 1 && stages[3].first_layer == 19);
            static_assert(Trainer<pp::OneFOneB>::compiled::times().cost(0).forward == 900);
            """)

    def test_every_schedule_and_a_second_run_give_the_same_bits(self):
        def run(schedule):
            number = len(list(self.path.glob("metrics*.csv"))) + 1  # a file of the run before is left alone
            output = self.good("--steps", "3", "--generate", "30", "--schedule", schedule)
            return (output[output.rindex(" %\n"):output.index("done:")],
                    self.losses(f"metrics-{number}.csv" if number > 1 else "metrics.csv"))

        schedules = re.search(r"--schedule TEXT:\{([^}]+)\}", self.run_gpt("--help").stdout)[1].split(",")
        self.assertLessEqual(NO_FLUSH, set(schedules))
        self.assertLessEqual({"1f1b", "gpipe"}, set(schedules))
        first = run("1f1b")
        for schedule in sorted(set(schedules) - NO_FLUSH):
            self.assertEqual(first, run(schedule), schedule)

    def test_steps_overlap_with_the_same_bits_and_without_a_flush_with_others(self):
        run = "--steps", "24", "--checkpoint-every", "8", "--generate", "0"
        self.good(*run, "--metrics", "a.csv", "--checkpoints", "a")
        barrier = self.losses("a.csv")
        self.good(*run, "--metrics", "b.csv", "--checkpoints", "b", "--schedule", "steady zb-h2")
        self.assertEqual(barrier, self.losses("b.csv"))
        for schedule in NO_FLUSH:
            metrics = "--metrics", f"{schedule}.csv", "--checkpoints", schedule, "--schedule", schedule
            self.good(*run, *metrics)
            self.assertEqual(len(barrier), len(self.losses(f"{schedule}.csv")))
        self.assertEqual(4, len({tuple(self.losses(f"{name}.csv")) for name in ["a", *NO_FLUSH]}))
        # Steps are made again from a checkpoint, one by one: those in flight have left their versions.
        made = "replay: steps 17 to 20 are bit for bit as recorded: "
        for folder, schedule in ("b", "gpipe"), ("a", "steady zb-h2"), ("pipedream", "pipedream"), ("pipedream-2bw", "pipedream-2bw"):
            self.assertIn(made, self.good(*run, "--replay", "20", "--checkpoints", folder, "--schedule", schedule))
        self.refused("under paci a step depends on those that were in progress with it", "--data", "text", *run, "--replay", "20",
                     "--checkpoints", "paci", "--schedule", "paci")
        self.refused("has a run with other options: .* --schedule pipedream ", "--data", "text", *run, "--replay", "20", "--checkpoints",
                     "pipedream")

    def test_steps_that_overlap_refuse_what_does_not_go_with_them(self):
        for schedule, says in ("steady 1f1b", "first appears in"), ("pipedream", "this trainer is broken"):
            self.refused(rf"step [0-9]+ rejected: .*{says}.*--lr", "--data", "text", "--schedule", schedule, "--lr", "1e30", "--steps",
                         "9", "--checkpoints", schedule, code=(1,))

    def test_steps_that_overlap_are_interrupted_and_go_on(self):
        run = "--steps", "24", "--checkpoint-every", "8", "--schedule"
        for schedule in "steady zb-h2", "pipedream":
            metrics = "--metrics", f"{schedule}.csv", "--checkpoints", schedule
            returned, output, _ = self.interrupted(signal.SIGINT, *run, schedule, *metrics, at=5)
            self.assertEqual(130, returned)
            done = int(re.search(DONE, output)[1])
            self.assertIn(f"resumed: after step {done} of 24", self.good(*run, schedule, *metrics, "--generate", "0"))
            self.good(*run, schedule, "--metrics", f"whole {schedule}.csv", "--checkpoints", f"whole {schedule}", "--generate", "0")
            self.assertEqual(self.losses(f"whole {schedule}.csv"), self.losses(f"{schedule}.csv"))

    def test_the_last_of_steps_that_overlap_are_drawn(self):
        for schedule in "steady zb-h2", "pipedream":
            output = self.good("--schedule", schedule, "--steps", "6", "--generate", "0", "--timeline", "--page", "steps.html")
            for title in "GPT, predicted", "GPT, measured":
                drawing = re.search(rf"(?m)^{title}\n[^\n]*\n((?:rank \d  [^ ]{{88}}\n){{4}})0 1 2 .*, \* update", output)
                self.assertIsNotNone(drawing, f"{schedule}: {title}")
                self.assertTrue(all(row.count("*") >= 4 for row in drawing[1].splitlines()), output)
            page = (self.path / "steps.html").read_text()
            self.assertRegex(page, r"(?s)GPT, predicted.*GPT, measured")
            self.assertIn("U update", page)

    def test_the_last_step_is_drawn_as_predicted_and_as_it_went(self):
        output = self.good("--steps", "2", "--generate", "0", "--timeline", "--page", "step.html")
        for title in "GPT, predicted", "GPT, measured":
            drawing = re.search(rf"(?m)^{title}\n[^\n]*bubble[^\n]*\n((?:rank \d  [0-9a-h.]{{88}}\n){{4}})0 1 2 ", output)
            self.assertIsNotNone(drawing, title)
            self.assertLessEqual(set("01234567abcdefgh"), set(drawing[1]))  # each is long enough to be seen
        self.assertRegex((self.path / "step.html").read_text(), r"(?s)GPT, predicted.*GPT, measured")
        self.assertNotIn("predicted", self.good("--steps", "0", "--generate", "0", "--timeline"))
        self.refused("cannot write 'no/where'", "--data", "text", "--page", "no/where")

    def test_another_seed_is_another_run(self):
        self.good("--steps", "1", "--generate", "0")
        self.good("--steps", "1", "--generate", "0", "--seed", "18446744073709551615", "--metrics", "other")
        self.assertNotEqual(self.losses(), self.losses("other"))

    def test_without_data_it_reads_the_standard_library(self):
        result = self.run_gpt("--steps", "1", "--generate", "5")
        self.assertEqual((0, ""), (result.returncode, result.stderr))
        self.assertRegex(result.stdout, r"(?m)^text: .*c\+\+.*, \d+\.\d MiB in \d+ files$")

    def test_a_directory_is_text_too(self):
        (self.path / "more/below").mkdir(parents=True)
        (self.path / "more/a.txt").write_text(TEXT)
        (self.path / "more/below/b.txt").write_text(TEXT)
        result = self.run_gpt("--data", "more", "--steps", "1", "--generate", "0")
        self.assertIn(" in 2 files\n", result.stdout)

    def test_the_plan_alone_touches_nothing(self):
        output = self.run_gpt("--plan").stdout
        self.assertIn("rank 3  ", output)
        self.assertIn("matmul 128 x 384 k96 + bias + GELUTanh\n", output)
        self.assertNotIn("done:", output)
        self.assertFalse((self.path / "metrics.csv").exists())

    def test_bad_input_is_one_sentence(self):
        (self.path / "empty").write_text("")
        (self.path / "short").write_text("x" * 2579)
        self.refused("cannot read the text at 'nowhere': No such file", "--data", "nowhere")
        self.refused("the text in 'empty' is empty", "--data", "empty")
        self.refused("too short.* at least 2580 bytes, found 2579", "--data", "short")
        self.refused("cannot write metrics to 'nowhere/m.csv': No such file or directory", "--data", "text", "--metrics",
                     "nowhere/m.csv")
        self.refused("--flavour", "--flavour", "sweet")
        self.refused("--steps.*at least 0.*-1", "--steps", "-1")
        self.refused("--steps", "--steps", "many")
        self.refused("--steps", "--steps", "2.5")
        self.refused("--lr.*above 0", "--lr", "-1")
        self.refused("--lr", "--lr", "nan")
        self.refused("--seed.*at most 18446744073709551615, got '18446744073709551616'", "--seed", "18446744073709551616")
        self.refused("--seed", "--seed", "-3")
        self.refused("--generate", "--generate", "-3")
        self.refused("--schedule.*zigzag", "--schedule", "zigzag")
        self.refused("--device.*tpu", "--device", "tpu")
        self.refused("compiled without CUDA.*examples/run.sh --device cuda", "--device", "cuda")

    def test_a_loss_that_is_no_number_stops_the_run(self):
        result = self.refused("step [0-9]+ rejected: a number that is not finite first appears in forward.*--lr",
                              "--data", "text", "--lr", "1e30", "--steps", "9", code=(1,))
        self.assertNotIn("done:", result.stdout)
        for _, loss, _ in self.losses():
            self.assertNotIn("nan", loss)

    def test_it_says_how_it_is_used(self):
        result = self.run_gpt("--help")
        self.assertEqual(0, result.returncode)
        for flag in ("data", "steps", "lr", "seed", "schedule", "device", "generate", "prompt", "plan", "metrics", "load", "save",
                     "tensorboard", "profile", "profile-spread", "timeline", "page", "watch", "watch-file", "checkpoints", "checkpoint-every", "resume",
                     "replay"):
            self.assertIn(f"--{flag} ", result.stdout)

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs a device that is always full")
    def test_a_full_disk_is_told(self):
        self.refused("cannot write metrics to '/dev/full': No space left on device", "--data", "text", "--metrics",
                     "/dev/full")
        for arguments in (["--plan"], ["--help"], ["--data", "text", "--steps", "1", "--save", "a"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([PROGRAM, *arguments], cwd=self.path, stdout=full, stderr=subprocess.PIPE,
                                        encoding="utf-8")
            self.assertEqual(1, result.returncode)
            self.assertRegex(result.stderr, r"\Agpt: cannot write all of the output[^\n]*\n\Z")
        self.assertTrue((self.path / "a").exists())

    def test_no_file_is_written_over_that_is_read_or_written_twice(self):
        (self.path / "texts").mkdir()
        (self.path / "texts/a").write_text(TEXT)
        (self.path / "weights").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
        os.link(self.path / "text", self.path / "hard")
        os.link(self.path / "texts/a", self.path / "part")
        os.symlink("weights", self.path / "soft")
        files = ("text", "texts/a", "weights")
        before = [(self.path / name).read_bytes() for name in files]
        writes = "--metrics", "--save", "--page", "--profile", "--tensorboard", "--checkpoints"
        for write in writes:
            for names in (("--data", "text", write, "text"), ("--data", "text", write, "hard"),
                          ("--data", "text", "--load", "weights", write, "soft"), ("--data", "texts", write, "part"),
                          ("--data", "texts", write, "texts/new")):
                self.refused(rf"{write} '[^']*' would write (over|into)", *names)
        for i, write in enumerate(writes):
            for other in writes[:i]:
                if {write, other} != {"--tensorboard", "--checkpoints"}:  # two folders that files are added to
                    self.refused("would write over", "--data", "text", write, "new", other, "./new")
        self.refused("--metrics 'metrics.csv' would write into the folder that is read, --data '.'", "--data", ".")
        self.assertEqual(before, [(self.path / name).read_bytes() for name in files])
        self.assertEqual({"text", "texts", "weights", "hard", "part", "soft"}, {p.name for p in self.path.iterdir()})

    def started(self, *arguments, generate=0):
        return subprocess.Popen([PROGRAM, "--data", "text", "--generate", str(generate), *arguments], cwd=self.path,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    def test_weights_find_another_place(self):
        (self.path / "folder").mkdir()
        run = self.started("--steps", "20", "--save", "folder/a.safetensors")
        for line in run.stdout:
            if line.startswith("step"):
                (self.path / "folder").rmdir()
                break
        output, complaint = run.communicate()
        self.assertEqual(1, run.returncode)
        self.assertRegex(output, DONE)
        place = re.fullmatch(r"gpt: cannot write 'folder/a.safetensors': [^\n]*; the weights are in '([^']*)'\n", complaint)
        self.assertIsNotNone(place, complaint)
        self.assertEqual(self.path.resolve() / "a.safetensors", Path(place[1]).resolve())
        self.good("--steps", "0", "--load", place[1])

    def interrupted(self, how, *arguments, at=1):
        """What a run printed and its code: it gets a signal after step `at`."""
        run = self.started(*arguments)
        for line in run.stdout:
            if re.match(rf"step +{at}/", line):
                run.send_signal(how)
                break
        output, complaint = run.communicate(timeout=120)
        return run.returncode, line + output, complaint

    def test_the_first_signal_ends_the_training_and_saves(self):
        first = 0
        for how, code in (signal.SIGINT, 130), (signal.SIGTERM, 143):
            name = how.name
            returned, output, complaint = self.interrupted(how, "--steps", "1000000", "--save", name, "--metrics", f"{name}.csv",
                                                           at=first + 1)
            self.assertEqual(code, returned)
            done = int(re.search(DONE, output)[1])
            self.assertLess(done, 10_000)
            self.assertEqual(f"gpt: stopped by {name} after step {done} of 1000000; the same command goes on\n", complaint)
            self.assertEqual([str(step) for step in range(first + 1, done + 1)], [step for step, _, _ in self.losses(f"{name}.csv")])
            first = done  # where the next run goes on
        self.good("--steps", "0", "--load", "SIGINT", "--generate", "0")

    def test_a_lost_terminal_does_not_end_the_training(self):
        returned, output, complaint = self.interrupted(signal.SIGHUP, "--steps", "20")
        self.assertEqual((0, "20"), (returned, re.search(DONE, output)[1]))
        self.assertEqual("gpt: the terminal is lost (SIGHUP); the training goes on\n", complaint)

    def test_a_run_that_was_killed_goes_on_with_the_same_bits(self):
        run = "--steps", "40", "--checkpoint-every", "8"
        for at in 20, 30:
            self.interrupted(signal.SIGKILL, *run, at=at)
        last = max(int(path.stem.removeprefix("step-")) for path in (self.path / "gpt-checkpoints").glob("step-*.safetensors"))
        self.assertGreaterEqual(last, 16)
        self.assertIn(f"resumed: after step {last} of 40, from 'gpt-checkpoints/step-{last}.safetensors'\n",
                      self.good(*run, "--save", "a"))
        self.good("--steps", "40", "--save", "b", "--checkpoints", "other", "--metrics", "other.csv")
        self.assertEqual((self.path / "a").read_bytes(), (self.path / "b").read_bytes())
        self.assertEqual(self.losses("other.csv"), self.losses())  # the file goes on with the run

    def test_a_checkpoint_that_is_skipped_costs_a_warning(self):
        run = "--data", "text", "--generate", "0", "--checkpoint-every", "8", "--steps", "40"
        self.interrupted(signal.SIGKILL, "--checkpoint-every", "8", "--steps", "40", at=30)
        steps = sorted(int(path.stem.removeprefix("step-")) for path in (self.path / "gpt-checkpoints").glob("step-*.safetensors"))
        (self.path / f"gpt-checkpoints/step-{steps[-1]}.safetensors").write_text("damaged")
        result = self.run_gpt(*run)
        self.assertEqual(0, result.returncode)
        self.assertRegex(result.stderr, rf"\Agpt: [^\n]*step-{steps[-1]}.safetensors[^\n]*\n\Z")
        self.assertIn(f"resumed: after step {steps[-2]} of 40", result.stdout)
        self.assertEqual("40", re.search(DONE, result.stdout)[1])

    def test_a_run_never_starts_over_by_mistake(self):
        self.refused("--resume: there is no checkpoint in 'gpt-checkpoints'", "--data", "text", "--resume")
        _, output, _ = self.interrupted(signal.SIGINT, "--steps", "1000")
        done = re.search(DONE, output)[1]
        self.refused(f"'gpt-checkpoints' has another run, ended after step {done}: --steps 1000 --seed 1 --lr 0.003 --data text, "
                     "[0-9]+ bytes of text; --resume goes on with it, --checkpoints FOLDER begins another one",
                     "--data", "text", "--steps", "10")
        output = self.good("--steps", str(int(done) + 2), "--resume", "--generate", "0")
        self.assertIn(f"resumed: after step {done} of {int(done) + 2}, from 'gpt-checkpoints/step-{done}.safetensors'\n"
                      "resumed: the run was begun with --steps 1000 ", output)
        self.assertEqual(2, len(re.findall(r"(?m)^step ", output)))
        # One that is done stays, and the next is another one.
        output = self.good("--steps", "2", "--generate", "0")
        self.assertIn("checkpoints: the finished run of 'gpt-checkpoints' is kept in 'gpt-checkpoints-2'\n", output)
        self.assertEqual({"gpt-checkpoints", "gpt-checkpoints-2"}, {path.name for path in self.path.glob("gpt-c*")})
        (self.path / "gpt-checkpoints/step-2.safetensors").write_text("damaged")
        self.refused("none of its 1 checkpoints can be loaded; .*step-2.safetensors", "--data", "text", "--resume")

    def test_a_step_is_made_again_and_compared_with_what_was_recorded(self):
        run = "--data", "text", "--steps", "24"
        self.refused("cannot read 'gpt-checkpoints/step-log.csv': No such file", *run, "--replay", "3")
        self.interrupted(signal.SIGKILL, *run[2:], "--checkpoint-every", "8", at=20)  # the log goes on with the run
        self.good(*run[2:], "--checkpoint-every", "8", "--generate", "0")
        files = {path.name: path.read_bytes() for path in (self.path / "gpt-checkpoints").iterdir()}

        def replayed(step, says, *more):
            output = self.good(*run[2:], "--replay", str(step), *more)
            self.assertTrue(output.endswith(says), output)

        good = ("replay: steps {} to {} are bit for bit as recorded: loss and gradient norm of each, hash of all parameters "
                "after {} of them\n")
        self.assertLessEqual({"step-16.safetensors", "step-24.safetensors", "step-log.csv"}, set(files))
        replayed(20, "replay: from 'gpt-checkpoints/step-16.safetensors'\n" + good.format(17, 20, 1))
        replayed(24, good.format(17, 24, 1), "--schedule", "zb-v")
        replayed(5, "replay: from the beginning, as no checkpoint is before\n" + good.format(1, 5, 0))
        self.assertEqual(files, {path.name: path.read_bytes() for path in (self.path / "gpt-checkpoints").iterdir()})

        self.refused("--replay: 'gpt-checkpoints/step-log.csv' has no step 25, the last one is 24", *run, "--replay", "25")
        self.refused("--replay: 'gpt-checkpoints' has a run with other options: --steps 24 ", "--data", "text", "--replay", "20")
        self.refused("--replay: needs a whole number of at least 1 .*'0'", *run, "--replay", "0")
        self.refused("--resume excludes --replay", *run, "--replay", "20", "--resume")
        log = self.path / "gpt-checkpoints/step-log.csv"
        rows = log.read_text().splitlines()
        last = "1" if rows[19][18] == "0" else "0"  # of the bits of the loss of step 19
        rows[19] = rows[19][:18] + last + rows[19][19:]
        log.write_text("\n".join(rows) + "\n")
        result = self.refused(r"replay: step 19: the loss is \S+ \(bits [0-9a-f]{16}\), recorded was ", *run, "--replay", "22", code=(3,))
        self.assertTrue(result.stdout.endswith(good.format(17, 18, 0)))

    def test_two_runs_do_not_share_checkpoints(self):
        run = self.started("--steps", "1000000")
        for line in run.stdout:
            if line.startswith("step"):
                self.refused("'gpt-checkpoints' has the checkpoints of a run that is still going on: take another folder", "--data", "text")
                break
        run.kill()
        run.communicate()

    def test_the_second_signal_ends_the_program(self):
        run = self.started("--steps", "1000000", "--save", "a", generate=100_000_000)
        for line in run.stdout:
            if line.startswith("step"):
                run.send_signal(signal.SIGINT)
                break
        self.assertIn("stopped by SIGINT", run.stderr.readline())
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=120)
        self.assertEqual(-signal.SIGTERM, run.returncode)

    def test_an_ignored_signal_stays_ignored(self):
        run = subprocess.Popen(["nohup", PROGRAM, "--data", "text", "--generate", "0", "--steps", "20"], cwd=self.path,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8")
        for line in run.stdout:
            if line.startswith("step"):
                run.send_signal(signal.SIGHUP)
                break
        output, _ = run.communicate(timeout=120)
        self.assertEqual((0, "20"), (run.returncode, re.search(DONE, output)[1]))

    def test_metrics_that_cannot_be_written_do_not_end_the_training(self):
        os.mkfifo(self.path / "pipe")
        self.refused("cannot write metrics to 'pipe': it is a pipe without a reader", "--data", "text", "--metrics", "pipe")
        reader = os.open(self.path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        run = self.started("--steps", "30", "--metrics", "pipe", "--save", "a")
        for line in run.stdout:
            if line.startswith("step"):
                os.close(reader)
                break
        output, complaint = run.communicate()
        self.assertEqual(1, run.returncode)
        self.assertRegex(output, DONE)
        self.assertRegex(complaint, r"\Agpt: cannot write metrics to 'pipe': Broken pipe \(step \d+; the training goes on\)\n\Z")
        self.good("--steps", "0", "--load", "a", "--metrics", "m")

    def test_any_number_of_steps_can_begin(self):
        run = self.started("--steps", "9223372036854775807")
        lines = []
        for line in run.stdout:
            lines.append(line)
            if line.startswith("step"):
                break
        run.kill()
        run.communicate()
        self.assertRegex(lines[-1], r"\Astep +1/9223372036854775807 ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
