#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Puts faults into the headers of steps that overlap and of samples of several lengths, one at a time, and expects that a law finds each.

    runtime.py [--compiler COMPILER] [--only TEXT]

A mutant replaces one text in one header, and a law of tests/laws is compiled with it. It is killed if the law fails, crashes or hangs. Any other
end is an error: a text that is no longer there once, a law that does not compile, or a mutant that survives, as then a check is missing. Each law
also has to pass without a fault. Some twenty seconds for each.

Not here, as no law can tell them apart, or only by chance:
* flow_ranks::judge without its wait for the ranks here. The first rank at the end of its early part has seldom come there before another one's
  update, and whether it has is a matter of time.
* flow_ranks::run_accumulation where a holder waits for the owner's update only, not for its shared weights. It is a race, which laws.tsan finds.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
HANGS_AFTER = 120  # seconds; a law takes less than ten


class Mutant(NamedTuple):
    fault: str
    law: str
    header: str  # in include/pipe
    text: str
    instead: str


# The gradients' factor from the labels of a micro-batch alone.
MEAN_OF_MEANS = """a.loss_scale = T(1 / j.loss.gradient_terms);
  if (j.batch.segments != nullptr && j.batch.label != nullptr) {
    detail::segment_list const& here = j.batch.segments[micro_batch];
    int terms = 0;
    for (int r = 0; r < here.rows; ++r) terms += static_cast<int const*>(j.batch.label)[micro_batch * here.planned_rows + r] >= 0;
    a.loss_scale = T(1.0 / (terms > 0 ? terms : 1) / d.micro_batches);
  }"""

MUTANTS = [
    Mutant("a version is one too old", "weight_versions", "schedule/families/pipedream.hpp",
           "VerticalSync ? q.ranks - 1 : q.ahead;", "(VerticalSync ? q.ranks - 1 : q.ahead) + 1;"),
    Mutant("a backward of PACI reads the version of its forward", "weight_versions", "schedule/families/pipedream.hpp",
           "q.kind == schedules::action_kind::forward ? q.ahead : 0", "q.ahead"),
    Mutant("a ring of versions is one too short", "weight_versions", "plan/compiled/flow_schedule.hpp",
           "return peak_versions(run, rank) +", "return peak_versions(run, rank) - (peak_versions(run, rank) > 1) +"),
    Mutant("a ring of activations is one too short", "weight_versions", "plan/compiled/flow_schedule.hpp",
           "return peak_in_chunk(table(), chunk);", "return peak_in_chunk(table(), chunk) - 1;"),
    Mutant("a ring has room for the micro-batches of one mini-batch", "weight_versions", "plan/compiled/chunk_layout.hpp",
           "if (Work::is_free && f.keeping_micro_batches > 0) f.keeping_micro_batches = f.in_flight;", ""),
    Mutant("a boundary's number is one too large for its writer", "weight_versions", "runtime/actions.hpp",
           "values + chunk.rings.boundary.at(n)", "values + chunk.rings.boundary.at(n + 1)"),
    Mutant("a step is judged before all ranks have updated", "weight_versions", "runtime/host/overlap/flow_ranks.hpp",
           "    context_.for_each_rank([&](int r) { all &= updated_[r].now() >= count(n + 1); });\n", ""),
    Mutant("versions are not brought forward after a run", "weight_versions", "runtime/host/core/weight_versions.hpp",
           "if (slot > 0) reverse(0, slot), reverse(slot, c.versions.slots), reverse(0, c.versions.slots);", ""),
    Mutant("a rollback forgets the state", "steady", "runtime/host/core/weight_versions.hpp",
           "    std::memcpy(state, state + c.versions.to_kept_state, std::size_t(c.sizes.state));\n", "    (void)state;\n"),
    Mutant("a rollback forgets the weights", "steady", "runtime/host/core/weight_versions.hpp", "    s.newest = s.before;\n", "    (void)s;\n"),
    Mutant("buffers do not go into the next version", "steady", "runtime/host/core/weight_versions.hpp", "if (s.before != s.newest)", "if (false)"),
    Mutant("the last step of a run is confirmed unseen", "steady", "runtime/host/overlap/step_flow.hpp",
           "ranks_.judge(context_.place.first_rank, n);", "ranks_.confirm(n, steps_.at(n).outcome());"),
    Mutant("a rank goes on after a step that is not right", "steady", "runtime/host/overlap/flow_ranks.hpp", "    if (!was_right) return false;\n", ""),
    Mutant("later places keep what was shared before a rollback", "steady", "runtime/host/overlap/flow_ranks.hpp",
           "      if (n >= begin_) {\n", "      if (n > begin_) {\n"),
    Mutant("squares are added from the last to the first", "steady", "runtime/host/overlap/flow_step.hpp",
           "for (long i = 0; i < squares(); ++i) sums[i % 2] += report_[i];",
           "for (long i = squares(); i-- > 0;) sums[i % 2] += report_[i];"),
    Mutant("gradients of a stage on several ranks are not joined", "steps_of_accumulations", "runtime/host/core/step_operations.hpp",
           "        require(me.sums.finish());\n", ""),
    Mutant("losses of accumulations are not added up", "steps_of_accumulations", "runtime/host/overlap/flow_step.hpp",
           "j.part.accumulation = i, j.part.accumulations = own.count;", "j.part.accumulations = own.count, j.part.accumulation = own.count - 1;"),
    Mutant("numbers after a short step are those of other holders", "steady_copies", "runtime/host/overlap/flow_step.hpp",
           "    next += micro_batches(d) + pairs - 1;\n    next -= next % pairs;\n", "    next += micro_batches(d) + 0 * pairs;\n"),
    Mutant("R reads other weights than its forward", "steps_ahead", "runtime/host/overlap/flow_weights.hpp",
           "return slot_of(a.chunk, n + a.version);", "return slot_of(a.chunk, n + a.version - (a.kind == action_kind::recompute));"),
    Mutant("a pair waits for the input of its forward only", "pairs", "runtime/host/core/action_runner.hpp",
           "if (a.with_next) await(r, at, *second, arrived), me.doing.begin(a);", ""),
    Mutant("lengths: a position is the number of a row", "lengths_random", "backend/segments.hpp",
           "return {s, row - first[s]};", "return {s, row};"),
    Mutant("lengths: a sample is the number of a row", "lengths_random", "backend/segments.hpp",
           "return {s, row - first[s]};", "return {row, row - first[s]};"),
    Mutant("lengths: a segment ends one row late", "lengths_random", "backend/segments.hpp",
           "return first[s + 1] - first[s];", "return first[s + 1] - first[s] + (first[s + 1] < rows);"),
    Mutant("lengths: a segment ends one row early", "lengths_random", "backend/segments.hpp",
           "return first[s + 1] - first[s];", "return first[s + 1] - first[s] - 1;"),
    Mutant("lengths: the divisor is that of a micro-batch, in a mean of means", "lengths_random", "runtime/host/core/launches.hpp",
           "a.loss_scale = T(1 / j.loss.gradient_terms);", MEAN_OF_MEANS),
    Mutant("lengths: B has the list of another micro-batch", "lengths_random", "runtime/host/core/action_runner.hpp",
           "a.segments = segments_in(j, mb, l.axis);", "a.segments = segments_in(j, p == program::forward ? mb : 0, l.axis);"),
    Mutant("lengths: keys have the list of the queries' axis", "lengths_inputs", "runtime/host/core/action_runner.hpp",
           "a.key_segments = segments_in(j, mb, l.key_axis);", "a.key_segments = segments_in(j, mb, l.key_axis == 0 ? 0 : l.axis);"),
    Mutant("lengths: rows that round up a segment keep the ids and labels before", "lengths_random", "train/parts/lengths.hpp",
           "for (int r = count; r < rows; ++r) to[r] = -1;", "(void)rows;"),
    Mutant("lengths: a micro-batch without samples keeps its list", "lengths_random", "train/parts/lengths.hpp",
           "lists_[mb * inputs + input()].count = count;", "if (count > 0) lists_[mb * inputs + input()].count = count;"),
    Mutant("lengths: the samples of dropout are counted from those of equal micro-batches", "lengths_random", "runtime/actions.hpp",
           ": segments->first_sample);", ": long(micro_batch) * d.samples);"),
]


def fate(compiler, libraries, law, folder, overlay):
    """Compiles and runs a law, whose headers come from `overlay` where it has them: what happened, and whether the law passed."""
    program = folder / "law"
    command = [*compiler.split(), "-std=c++20", "-O0", "-w", f"-I{overlay}", f"-I{ROOT}/include", f"-I{ROOT}/tests",
               f"{ROOT}/tests/laws/{law}.cpp", folder / "main.o", *libraries, "-o", program, "-pthread"]
    compiled = subprocess.run(command, capture_output=True, text=True)
    if compiled.returncode != 0:
        return "does not compile:\n" + compiled.stderr, None
    try:
        ended = subprocess.run([program, "--abort"], capture_output=True, timeout=HANGS_AFTER)
    except subprocess.TimeoutExpired:
        return "hangs", False
    return ("passes", True) if ended.returncode == 0 else ("fails" if ended.returncode > 0 else "crashes", False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--libraries", nargs="*", default=[], help="that tests are linked with: of Catch2 3")
    parser.add_argument("--only", default="", help="the mutants whose fault has this text")
    arguments = parser.parse_args()
    chosen = [m for m in MUTANTS if arguments.only in m.fault]
    wrong = []

    def expect(what, law, folder, overlay, passes):
        how, passed = fate(arguments.compiler, arguments.libraries, law, folder, overlay)
        print(f"{what}: {law} {how}", flush=True)
        if passed is not passes:
            wrong.append(what)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([*arguments.compiler.split(), "-std=c++20", "-O0", f"-I{ROOT}/tests", "-c", f"{ROOT}/tests/main.cpp", "-o", folder / "main.o"], check=True)
        for law in dict.fromkeys(m.law for m in chosen):
            expect("no fault", law, folder, folder / "none", True)
        for number, m in enumerate(chosen):
            header = (ROOT / "include/pipe" / m.header).read_text()
            if header.count(m.text) != 1:
                print(f"{m.fault}: the text to replace is {header.count(m.text)} times in {m.header}, not once")
                wrong.append(m.fault)
                continue
            overlay = folder / str(number)
            mutated = overlay / "pipe" / m.header
            mutated.parent.mkdir(parents=True)
            mutated.write_text(header.replace(m.text, m.instead))
            expect(m.fault, m.law, folder, overlay, False)
    return f"not as expected: {', '.join(wrong)}" if wrong or not chosen else None


if __name__ == "__main__":
    sys.exit(main())
