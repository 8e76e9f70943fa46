#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The list of what tests cost, tests/costs.txt, by which CMake leaves out what takes long: cmake/costs.cmake.

    costs.py ROOT                              every line is one of the two below, and its source is there
    costs.py ROOT --of BUILD [--record]        prints what a run of the tests has cost, by program and the longest, and what is left out without --all;
                                               with --record writes it into the list

A line of the list is `SECONDS compile PROGRAM SOURCE`, as ninja has logged it, or `SECONDS test NAME`, as ctest has. What the run did not compile or
test keeps its line; what takes less than a second has none. Seconds count in a build that finds nothing compiled: tests/run.sh --costs makes it so.
"""
import argparse
import re
import sys
import xml.etree.ElementTree as xml
from collections import defaultdict
from pathlib import Path

LINE = re.compile(r"(?P<seconds>\d+\.\d) (compile (?P<program>\S+) (?P<source>\S+)|test (?P<name>\S+))$")
OBJECT = re.compile(r"(?P<folder>.*?)/?CMakeFiles/(?P<program>[^/]+)\.dir/(?P<source>.+)\.o$")
LONGEST = 40


def read(path):
    """What sources and tests cost, {(program, source): seconds} and {name: seconds}, and the problems of a list."""
    sources, tests, problems = {}, {}, []
    for line in path.read_text().splitlines():
        if match := LINE.match(line):
            key = (match["program"], match["source"]) if match["source"] else match["name"]
            (sources if match["source"] else tests)[key] = float(match["seconds"])
        elif not line.startswith("#"):
            problems.append(f"{path.name}: not a line of costs: {line}")
    return sources, tests, problems


def check(root):
    sources, _, problems = read(root / "tests" / "costs.txt")
    yield from problems
    for program, source in sources:
        if not (root / source).exists():
            yield f"costs.txt: {program} has no {source}: remove the line"


def compiled(root, build):
    """{(program, source): seconds} of the newest compilation of each object."""
    found = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        begin, end, _, output, _ = line.split("\t")
        if match := OBJECT.match(output):
            source = (root / match["folder"] / match["source"].replace("__/", "../")).resolve()
            if source.is_relative_to(root) and source.exists():
                found[match["program"], str(source.relative_to(root))] = (int(end) - int(begin)) / 1000
    return found


def tested(build):
    """{name: seconds} of the last tests."""
    results = build / "results.xml"
    if not results.exists():
        return {}
    return {case.get("name"): float(case.get("time")) for case in xml.parse(results).iter("testcase") if case.get("status") == "run"}


def record(root, sources, tests):
    path = root / "tests" / "costs.txt"
    old_sources, old_tests, _ = read(path)
    sources = {key: seconds for key, seconds in {**old_sources, **sources}.items() if (root / key[1]).exists()}
    lines = [f"{seconds:.1f} compile {program} {source}" for (program, source), seconds in sorted(sources.items()) if seconds >= 1]
    lines += [f"{seconds:.1f} test {name}" for name, seconds in sorted({**old_tests, **tests}.items()) if seconds >= 1]
    path.write_text("\n".join(["# Seconds of one core: tests/structure/costs.py, which writes this file.", *lines]) + "\n")


def longest(costs):
    return "".join(f"{seconds:8.1f} {key if isinstance(key, str) else ' '.join(key)}\n"
                   for key, seconds in sorted(costs.items(), key=lambda item: -item[1])[:LONGEST])


def report(root, build):
    sources, tests = compiled(root, build), tested(build)
    programs = defaultdict(float)
    for (program, _), seconds in sources.items():
        programs[program] += seconds
    left_out = (build / "left_out.txt").read_text()
    print(f"{sum(sources.values()):.0f} s to compile {len(sources)} sources, by program:\n{longest(programs)}the longest:\n{longest(sources)}"
          f"{sum(tests.values()):.0f} s of {len(tests)} tests, the longest:\n{longest(tests)}left out without --all:\n{left_out}")
    return sources, tests


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=lambda text: Path(text).resolve())
    parser.add_argument("--of", type=Path, metavar="BUILD")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    if arguments.of:
        costs = report(arguments.root, arguments.of)
        if arguments.record:
            record(arguments.root, *costs)
        return 0
    problems = list(check(arguments.root))
    print("\n".join(problems) or "every cost is of a source that is there")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
