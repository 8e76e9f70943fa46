#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What a run of the tests has cost: seconds to compile each source, as ninja has logged them, and seconds of each test, as ctest has.

    costs.py BUILD                   prints them, by program and the longest, and what is left out without --all
    costs.py BUILD --record FILE     writes them into a list of costs, which CMake reads: tests/costs.txt

A line of the list is `SECONDS compile PROGRAM SOURCE` or `SECONDS test NAME`. What the run did not compile or test keeps its line, as long as there is
such a source; what takes less than a second has none. Seconds count in a build that finds nothing compiled: tests/run.sh --costs makes it so.
"""
import argparse
import re
import xml.etree.ElementTree as xml
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "costs.txt"
OBJECT = re.compile(r"(?P<folder>.*?)/?CMakeFiles/(?P<program>[^/]+)\.dir/(?P<source>.+)\.o$")


def compiled(build):
    """{(program, source): seconds} of the newest compilation of each object."""
    found = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        begin, end, _, output, _ = line.split("\t")
        if match := OBJECT.match(output):
            source = Path(ROOT, match["folder"], match["source"].replace("__/", "../")).resolve()
            if source.is_relative_to(ROOT) and source.exists():
                found[match["program"], str(source.relative_to(ROOT))] = (int(end) - int(begin)) / 1000
    return found


def tested(build):
    """{name: seconds} of the last tests."""
    results = build / "results.xml"
    if not results.exists():
        return {}
    return {case.get("name"): float(case.get("time")) for case in xml.parse(results).iter("testcase") if case.get("status") == "run"}


def read(path):
    """The two dictionaries of a list of costs."""
    sources, tests = {}, {}
    for line in path.read_text().splitlines() if path.exists() else []:
        match line.split():
            case [seconds, "compile", program, source]:
                sources[program, source] = float(seconds)
            case [seconds, "test", name]:
                tests[name] = float(seconds)
    return sources, tests


def record(path, sources, tests):
    old_sources, old_tests = read(path)
    sources = {key: seconds for key, seconds in {**old_sources, **sources}.items() if (ROOT / key[1]).exists()}
    tests = {**old_tests, **tests}
    lines = [f"{seconds:.1f} compile {program} {source}" for (program, source), seconds in sorted(sources.items()) if seconds >= 1]
    lines += [f"{seconds:.1f} test {name}" for name, seconds in sorted(tests.items()) if seconds >= 1]
    path.write_text("\n".join(["# Seconds of one core: see tests/costs.py, which writes this file.", *lines]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--record", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    sources, tests = compiled(arguments.build), tested(arguments.build)
    if arguments.record:
        record(arguments.record, sources, tests)
    programs = defaultdict(float)
    for (program, _), seconds in sources.items():
        programs[program] += seconds
    print(f"{sum(sources.values()):.0f} s to compile {len(sources)} sources, by program:")
    for program, seconds in sorted(programs.items(), key=lambda item: -item[1]):
        print(f"{seconds:8.1f} {program}")
    print("the longest:")
    for (program, source), seconds in sorted(sources.items(), key=lambda item: -item[1])[:40]:
        print(f"{seconds:8.1f} {program} {source}")
    print(f"{sum(tests.values()):.0f} s of {len(tests)} tests, the longest:")
    for name, seconds in sorted(tests.items(), key=lambda item: -item[1])[:40]:
        print(f"{seconds:8.1f} {name}")
    left_out = (arguments.build / "left_out.txt").read_text().splitlines()
    print(f"left out without --all: {len(left_out)} of these costs")
    print("\n".join(f"    {line}" for line in left_out))


if __name__ == "__main__":
    main()
